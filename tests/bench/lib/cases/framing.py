"""Rule 13: requests that two readers could read differently."""
import time

from cases import case
from wire import PATIENCE, SILENCE, Wrong, dial


def refuse(proxy, a, text):
    """400, the end of the connection, and nothing at the backend."""
    pipe = dial(proxy.http)
    pipe.send(text)
    status = pipe.answer().status
    pipe.rest(PATIENCE)
    pipe_ended = pipe.end is not None
    pipe.close()
    time.sleep(SILENCE)
    if a.heads:
        raise Wrong(f"{status}, passes it on")
    if status != 400:
        raise Wrong(str(status))
    if not pipe_ended:
        raise Wrong("400, stays open")


def both(proxy, a, cases):
    """The first of several that is not refused."""
    for what, text in cases:
        a.begin(None)
        try:
            refuse(proxy, a, text)
        except Wrong as wrong:
            raise Wrong(f"{what}: {wrong}") from None


@case(13, "`Content-Length` with `Transfer-Encoding`: 400")
def smuggle(proxy, a, b):
    refuse(proxy, a, b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")


@case(13, "differing lengths: 400")
def lengths(proxy, a, b):
    refuse(proxy, a, b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")


@case(13, "a transfer coding but `chunked`: 400")
def codings(proxy, a, b):
    head = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: %s\r\n\r\n0\r\n\r\n"
    both(proxy, a, [(f"`{coding}`", head % coding.encode()) for coding in ("gzip, chunked", "xchunked")])


@case(13, "space before a colon, a bare LF: 400")
def lines(proxy, a, b):
    both(proxy, a, [("space", b"GET / HTTP/1.1\r\nHost: a.test\r\nX-A : 1\r\n\r\n"),
                    ("LF", b"GET / HTTP/1.1\nHost: a.test\n\n")])


@case(13, "bytes behind a refused upgrade are the next request")
def behind(proxy, a, b):
    pipe = dial(proxy.http)
    pipe.send(b"GET /1 HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
              b"GET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n")
    first, second = pipe.answer(), pipe.answer()
    pipe.close()
    if (first.data, second.data) != (b"A", b"B"):
        raise Wrong(f"{first.status} {first.data}, {second.status} {second.data}")
