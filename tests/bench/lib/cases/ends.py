"""Rules 15 to 17: half-closes, resets, kept connections, upgrades."""
import time

from cases import case
from wire import PATIENCE, Wrong, dial

GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nA"
UPGRADE = (b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SWITCH = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")


@case(15, "a half-close behind the request does not lose the answer")
def half(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        time.sleep(0.5)  # the answer is to come behind the half-close
        pipe.send(OK)
        pipe.rest()

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(GET)
    pipe.finish()
    answer = pipe.answer()
    pipe.close()
    if answer.data != b"A":
        raise Wrong(f"{answer.status} without its body")


@case(15, "a client's reset reaches the backend within a second")
def reset(proxy, a, b):
    ended = []

    def play(backend, pipe):
        backend.request(pipe)
        pipe.rest(PATIENCE)
        ended.append((time.monotonic(), pipe.end))

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(GET)
    a.one()
    begun = time.monotonic()
    pipe.reset()
    while not ended and time.monotonic() < begun + PATIENCE + 1:
        time.sleep(0.01)
    if not ended or ended[0][1] is None:
        raise Wrong("never")
    if ended[0][0] - begun > 1:
        raise Wrong(f"after {ended[0][0] - begun:.1f} s")


def dies(proxy, a, request):
    """How often a request reaches a backend whose kept connection ends under it, and the client's answer."""
    def play(backend, pipe):
        backend.request(pipe)
        if len(backend.heads) == 2:
            return
        pipe.send(OK)
        while True:
            backend.request(pipe)
            if len(backend.heads) == 2:
                return
            pipe.send(OK)

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(GET)
    pipe.answer()
    pipe.send(request)
    try:
        status = pipe.answer().status
    except Wrong as wrong:
        status = wrong
    pipe.close()
    return len(a.heads) - 1, status


@case(16, "GET is sent again when a kept connection ends under it; POST never twice")
def again(proxy, a, b):
    times, status = dies(proxy, a, GET)
    if status != 200:
        raise Wrong(f"GET: {status}")
    times, status = dies(proxy, a, b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n")
    if times > 1:
        raise Wrong(f"POST: {times} times")


@case(17, "bytes with the handshake arrive once and in order")
def handshake(proxy, a, b):
    got = []

    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(SWITCH + b"hello")
        got.append(pipe.until(b"early", PATIENCE))
        pipe.send(b"-more")
        pipe.rest()

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(UPGRADE + b"early")
    head = pipe.head()
    if head is None or head.status != 101:
        raise Wrong(str(head.status) if head else "no 101")
    more = pipe.until(b"-more")
    pipe.close()
    lost = [way for way, right in (("there", got == [b"early"]), ("back", more == b"hello-more")) if not right]
    if lost:
        raise Wrong("lost " + " and ".join(lost))


@case(17, "a half-close in a tunnel passes, the other way goes on")
def tunnel(proxy, a, b):
    got = []

    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(SWITCH)
        pipe.rest(2)
        got.append(pipe.end)
        time.sleep(0.5)  # so that what follows comes well behind the half-close
        pipe.send(b"after")

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(UPGRADE)
    if pipe.head() is None:
        raise Wrong("no 101")
    pipe.finish()
    after = pipe.until(b"after")
    pipe.close()
    if got != ["closed"]:
        raise Wrong("the backend sees no end")
    if after is None:
        raise Wrong("the other way ends")
