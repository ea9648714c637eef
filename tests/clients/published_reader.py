"""Reads what a resolver has published, from the fleet contract alone (4.6 to 4.9), and prints it as one JSON document.

published_reader.py STATE_FILE REFRESH_SECONDS

Uses nothing of Stado: the lock rule, the waiting list and the answers as a program in another language would read them.
"""
import datetime
import fcntl
import json
import os
import sys


def lock_holder(path):
    """None: nobody holds it. Else the pid inside, or 0 where none can be read."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        try:
            # Shared and given back at once: a probe never looks like a resolver that runs.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            text = os.pread(fd, 64, 0).split(b"\n")[0].strip()
            return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)


def publisher(state_path, lock_path):
    """What the state is worth: never, alive, dead or replaced, with the state and the holder."""
    for _ in range(2):
        try:
            with open(state_path, encoding="utf-8") as file:
                state = json.load(file)
        except FileNotFoundError:
            return "never", None, lock_holder(lock_path)
        holder = lock_holder(lock_path)
        if holder is None:
            return "dead", state, None
        if holder == state["pid"]:
            return "alive", state, holder
        # A new resolver may have published between the two looks.
    return "replaced", state, holder


def load(path, absent):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return absent


def age(since):
    begun = datetime.datetime.fromisoformat(since)
    return (datetime.datetime.now(datetime.timezone.utc) - begun).total_seconds()


def main():
    state_path, refresh = sys.argv[1], float(sys.argv[2])
    beside = os.path.dirname(state_path)
    verdict, state, holder = publisher(state_path, os.path.join(beside, "resolver-state.lock"))
    waits = load(os.path.join(beside, "resolver-waiting.json"), None)
    answers = load(os.path.join(beside, "resolver-answers.json"), {})
    held = {}
    if verdict == "alive":
        for wait in waits or []:
            assert wait.get("phase", "open") in ("open", "answer"), wait
            if age(wait["since"]) > refresh:
                held[wait["bind"]] = held.get(wait["bind"], 0) + 1
    unanswered = {}
    for service, row in answers.items():
        first, last = row.get("first_unanswered_at"), row.get("last_unanswered_at")
        assert (first is None) == (last is None), row
        if first is not None:
            assert datetime.datetime.fromisoformat(first) <= datetime.datetime.fromisoformat(last), row
            unanswered[service] = first
    counts = state if verdict == "alive" else None
    print(
        json.dumps(
            {
                "publisher": verdict,
                "holder": holder,
                "pid": state and state["pid"],
                "state": counts and counts["state"],
                "generation": counts and counts["generation"],
                "listening": [a["bind"] for a in counts["adapters"]] if counts else [],
                "unserved": {u["bind"]: u["reason"] for u in counts["unserved"]} if counts else {},
                "waits": waits,
                "held": held,
                "unanswered": unanswered,
                "answered": sorted(s for s, row in answers.items() if row.get("last_answered_at")),
            }
        )
    )


main()
