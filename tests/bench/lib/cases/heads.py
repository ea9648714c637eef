"""Rules 10 to 12: which service, and what of a head passes."""
import time

from cases import case
from wire import Wrong, dial


def ask(proxy, head, body=b""):
    """One request on a connection of its own; `head` is without its empty line."""
    pipe = dial(proxy.http)
    pipe.send(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
    answer = pipe.answer()
    pipe.close()
    return answer


def expect(answer, status):
    if answer.status != status:
        raise Wrong(str(answer.status))


@case(10, "an absolute target beats `Host`")
def absolute(proxy, a, b):
    answer = ask(proxy, "GET http://b.test/ HTTP/1.1\nHost: a.test")
    expect(answer, 200)
    if answer.data != b"B":
        raise Wrong("routed by `Host`")


@case(10, "`A.TEST.:8088` is `a.test`")
def spelled(proxy, a, b):
    expect(ask(proxy, "GET / HTTP/1.1\nHost: A.TEST.:8088"), 200)


@case(10, "two `Host`, or none in 1.1: 400")
def hosts(proxy, a, b):
    for what, lines in (("two", "\nHost: a.test\nHost: b.test"), ("none", "")):
        answer = ask(proxy, "GET / HTTP/1.1" + lines)
        if answer.status != 400:
            raise Wrong(f"{what}: {answer.status}")


@case(10, "unknown host: 404 that names it and what is known, escaped")
def unknown(proxy, a, b):
    answer = ask(proxy, "GET /<script> HTTP/1.1\nHost: <b>x.test\nAccept: text/html")
    if b"<b>x" in answer.data or b"<script>" in answer.data:
        raise Wrong("reflects what was sent")
    answer = ask(proxy, "GET / HTTP/1.1\nHost: x.test")
    expect(answer, 404)
    if b"x.test" not in answer.data or b"a.test" not in answer.data:
        raise Wrong("404 without names")


@case(10, "known and unavailable: 503 that says why")
def unavailable(proxy, a, b):
    answer = ask(proxy, "GET / HTTP/1.1\nHost: away.test")
    expect(answer, 503)
    if b"away" not in answer.data:
        raise Wrong("503 without a reason")


@case(10, "a backend that refuses: 502 at once, with its address")
def refused(proxy, a, b):
    begun = time.monotonic()
    answer = ask(proxy, "GET / HTTP/1.1\nHost: down.test")
    if time.monotonic() - begun > 2:
        raise Wrong(f"{answer.status} after {time.monotonic() - begun:.0f} s")
    expect(answer, 502)
    if str(proxy.hosts["down.test"]).encode() not in answer.data:
        raise Wrong("502 without an address")


@case(10, "a request that comes back: 508")
def loop(proxy, a, b):
    seen = []

    def play(backend, pipe):
        head = backend.request(pipe)
        if len(backend.heads) > 3:
            pipe.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        again = dial(proxy.http)
        again.send(head.raw)
        answer = again.answer()
        seen.append(answer.status)
        pipe.send(b"HTTP/1.1 %d Back\r\nContent-Length: 0\r\n\r\n" % answer.status)

    a.begin(play)
    ask(proxy, "GET / HTTP/1.1\nHost: a.test")
    if seen[:1] != [508]:
        raise Wrong("goes round")


@case(11, "`Host` as it was written, with its port")
def host(proxy, a, b):
    ask(proxy, "GET / HTTP/1.1\nHost: A.test:8088")
    if a.one().get("host") != "A.test:8088":
        raise Wrong(f"`{a.one().get('host')}`")


@case(11, "path and query byte for byte")
def path(proxy, a, b):
    target = "/a//b/./../c%2f%41;p?x=%20&&y='"
    ask(proxy, f"GET {target} HTTP/1.1\nHost: a.test")
    if a.one().target != target:
        raise Wrong(f"`{a.one().target}`")


@case(11, "`Accept-Encoding` neither added nor changed")
def encodings(proxy, a, b):
    for sent in (None, "br;q=0.5, gzip"):
        a.begin(None)
        ask(proxy, "GET / HTTP/1.1\nHost: a.test" + (f"\nAccept-Encoding: {sent}" if sent else ""))
        got = a.one().get("accept-encoding")
        if got != sent:
            raise Wrong(f"`{got}` for {f'`{sent}`' if sent else 'none'}")


@case(12, "fields of one hop are removed, both ways")
def hop(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(b"HTTP/1.1 200 OK\r\nConnection: X-Back\r\nX-Back: 1\r\nKeep-Alive: timeout=9\r\n"
                  b"Proxy-Connection: keep-alive\r\nContent-Length: 0\r\n\r\n")
        pipe.rest()

    a.begin(play)
    answer = ask(proxy, "GET / HTTP/1.1\nHost: a.test\nConnection: X-There\nX-There: 1\nKeep-Alive: timeout=9\n"
                        "Proxy-Connection: keep-alive\nTE: gzip")
    there = [name for name in ("X-There", "Keep-Alive", "Proxy-Connection", "TE") if a.one().has(name.lower())]
    back = [name for name in ("X-Back", "Keep-Alive", "Proxy-Connection") if answer.has(name.lower())]
    if there or back:
        raise Wrong("; ".join(f"{way} `{', '.join(names)}`" for way, names in (("there", there), ("back", back)) if names))


@case(12, "a client's `X-Forwarded-*`, `X-Real-IP`, `Forwarded` are replaced")
def forwarded(proxy, a, b):
    ask(proxy, "GET / HTTP/1.1\nHost: a.test\nX-Forwarded-For: 192.0.2.66\nX-Forwarded-Host: liar.test\n"
               "X-Forwarded-Proto: https\nX-Forwarded-Port: 66\nX-Real-IP: 192.0.2.66\nForwarded: for=192.0.2.66")
    lies = [name for name, value in a.one().fields if name.lower().startswith(("x-forwarded", "x-real", "forwarded"))
            and (value in ("liar.test", "https", "66") or "192.0.2.66" in value)]
    if lies:
        raise Wrong(f"passes `{', '.join(sorted(lies))}`")
