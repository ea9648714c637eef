"""Rules 18 to 20: HTTP/2, deadlines, TLS."""
import time

from cases import case
from wire import PATIENCE, Wrong, dial

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # with empty settings


def h2_get(pipe, scheme):
    """GET / of a.test in HTTP/2: the body, or what came instead."""
    block = b"\x82" + {"http": b"\x86", "https": b"\x87"}[scheme] + b"\x84\x41\x06a.test"
    pipe.send(PREFACE + len(block).to_bytes(3, "big") + b"\1\5\0\0\0\1" + block)
    data = b""
    while (frame := pipe.exactly(9)) is not None:
        size, kind, flags = int.from_bytes(frame[:3], "big"), frame[3], frame[4]
        payload = pipe.exactly(size)
        if payload is None or kind in (3, 7):
            return None
        if kind == 4 and not flags & 1:
            pipe.send(b"\0\0\0\4\1\0\0\0\0")
        if kind == 0:
            data += payload
        if kind in (0, 1) and flags & 1:
            return data
    return None


@case(18, "HTTP/2 in clear with prior knowledge, and by ALPN")
def h2(proxy, a, b):
    pipe = dial(proxy.https, "a.test", ["h2", "http/1.1"])
    chosen = pipe.sock.selected_alpn_protocol()
    over_tls = chosen == "h2" and h2_get(pipe, "https") == b"A"
    pipe.close()
    pipe = dial(proxy.http)
    in_clear = h2_get(pipe, "http") == b"A"
    pipe.close()
    if not (over_tls and in_clear):
        raise Wrong(" and ".join(["not in clear"] * (not in_clear) + [f"ALPN: {chosen}"] * (not over_tls)))


def drip(proxy):
    """How long a head may take whose bytes come one by one; None is more than 40 seconds."""
    pipe, begun = dial(proxy.http), time.monotonic()
    pipe.send(b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: ")
    while time.monotonic() < begun + 40:
        try:
            pipe.send(b"a")
        except OSError:
            pipe.end = "closed"
        pipe.more(1)
        if pipe.end or pipe.buf:
            return time.monotonic() - begun
    return None


@case(19, "a head that drips in for ever is ended after 30 s in all")
def slow(proxy, a, b):
    proxy.drip.join()
    took = proxy.dripped[0]
    if took is None:
        raise Wrong("goes on")
    if not 25 < took < 38:
        raise Wrong(f"after {took:.0f} s")


@case(20, "plain HTTP on the TLS port: a redirect or a clear 400")
def plain(proxy, a, b):
    pipe = dial(proxy.https)
    pipe.send(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    status = pipe.answer().status
    pipe.close()
    if status not in (301, 302, 307, 308, 400):
        raise Wrong(str(status))


@case(20, "a host that this connection's certificate does not cover: 421")
def misdirected(proxy, a, b):
    pipe = dial(proxy.https, "a.test")
    pipe.send(b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n")
    status = pipe.answer().status
    pipe.close()
    if status != 421:
        raise Wrong(f"{status}, {'served' if status == 200 else 'not served'}")
