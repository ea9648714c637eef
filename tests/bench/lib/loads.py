"""What is asked of a proxy to see how fast it is: each returns what it saw, for a port where `a.test` is served."""
import contextlib
import os
import pathlib
import re
import socket
import statistics
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
GIB = 1 << 30
CONNECTIONS = 64
STREAMS = 8  # of one connection in HTTP/2
SAMPLE_KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455 1.3: the backend knows its answer
FRAME = b"\x81\xc0\0\0\0\0" + b"a" * 64  # a text of 64 bytes, masked with nothing


def processes(pid):
    """A process and its children that live: the fields of each one's `stat` behind its name."""
    every = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                every[int(entry)] = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
    found = [pid]
    for one in found:
        found += [child for child, fields in every.items() if int(fields[1]) == one]
    return {one: every[one] for one in found if one in every}


def cpu(pid):
    """CPU seconds of a process and its children that live."""
    return sum(int(fields[11]) + int(fields[12]) for fields in processes(pid).values()) / TICK


def memory(pid):
    """MiB of a process and its children: what they share counts once."""
    pages = (pathlib.Path("/proc", str(one), "smaps_rollup").read_text() for one in processes(pid))
    return sum(int(re.search(r"^Pss:\s+(\d+) kB", page, re.M).group(1)) for page in pages) / 1024


def wrk(origin, seconds, *more):
    """Requests, requests per second, p99 in ms."""
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-H", "Host: a.test", *more, f"{origin}/1k"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count = int(re.search(r"(\d+) requests in", text).group(1))
    failed = re.search(r"Non-2xx.*", text)
    if failed or not count:
        raise SystemExit(f"{origin}: {failed.group() if failed else 'no answers'}")
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    return count, float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def h2load(port, seconds):
    """Requests and requests per second in clear-text HTTP/2."""
    command = ["h2load", "-t1", f"-c{CONNECTIONS}", f"-m{STREAMS}", f"-D{seconds}", f"--connect-to=127.0.0.1:{port}", "http://a.test/1k"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count, others = re.search(r"status codes: (\d+) 2xx, (.*)", text).groups()
    if not int(count) or re.search(r"[1-9]", re.sub(r"\dxx", "", others)):
        raise SystemExit(f"{port}: HTTP/2 answers: {count} 2xx, {others}")
    return int(count), int(count) / seconds


def stream(port):
    """Seconds for 1 GiB."""
    buffer, got = bytearray(1 << 20), 0
    with dial(port, b"GET /1g HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n") as sock:
        begun = time.monotonic()
        while count := sock.recv_into(buffer):
            got += count
    if got < GIB:
        raise SystemExit(f"{port}: {got} bytes of 1 GiB")
    return time.monotonic() - begun


def websocket(port, seconds):
    """The median of a message's round trip, in µs."""
    upgrade = (b"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + SAMPLE_KEY + b"\r\n\r\n")
    took, stop = [], time.monotonic() + seconds
    with dial(port, upgrade) as sock:
        head(sock, port, b" 101 ")
        while (begun := time.perf_counter()) and time.monotonic() < stop:
            sock.sendall(FRAME)
            left = len(FRAME)
            while left:
                got = len(sock.recv(left))
                if not got:
                    raise SystemExit(f"{port}: the WebSocket ended")
                left -= got
            took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1e6


def events(port, seconds):
    """The median of what passes between an event's being written and its being read, in µs."""
    delays, stop = [], time.monotonic() + seconds
    with dial(port, b"GET /events HTTP/1.1\r\nHost: a.test\r\nAccept: text/event-stream\r\n\r\n") as sock:
        held = head(sock, port, b" 200 ")
        while time.monotonic() < stop:
            data, now = sock.recv(65536), time.time_ns()
            if not data:
                raise SystemExit(f"{port}: the event stream ended")
            whole, _, held = (held + data).rpartition(b"\n\n")
            delays += [now - int(sent) for sent in re.findall(rb"data: (\d+)", whole)]
    return statistics.median(delays) / 1e3


def idle(port, pid, clients):
    """MiB of a proxy while so many clients, each with one answer behind it, stay connected."""
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            sock = stack.enter_context(dial(port, b"GET /1k HTTP/1.1\r\nHost: a.test\r\n\r\n"))
            left = 1024 - len(head(sock, port, b" 200 "))
            while left > 0:
                left -= len(sock.recv(left)) or 1024
        return memory(pid)


def dial(port, request):
    sock = socket.create_connection(("127.0.0.1", port), 10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(request)
    return sock


def head(sock, port, status):
    """What came behind the head of an answer that has this status."""
    held = b""
    while b"\r\n\r\n" not in held:
        data = sock.recv(65536)
        if not data:
            break
        held += data
    first, _, rest = held.partition(b"\r\n\r\n")
    if status not in first.split(b"\r\n")[0]:
        raise SystemExit(f"{port}: {first[:200]}")
    return rest
