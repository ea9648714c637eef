"""Rule 14: what streams, and what the backend alone answers."""
from cases import case
from wire import PATIENCE, Wrong, dial

GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"


@case(14, "an event goes out when it comes")
def event(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(CHUNKED + b"Content-Type: text/event-stream\r\n\r\n")
        pipe.send(b"7\r\ndata: 1\r\n")
        pipe.rest(2 * PATIENCE)

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(GET)
    if pipe.head(2) is None:
        raise Wrong("holds the head")
    if pipe.until(b"data: 1", 2) is None:
        raise Wrong("holds the event")
    pipe.close()


@case(14, "a request's body goes on while it comes")
def upload(proxy, a, b):
    seen = []

    def play(backend, pipe):
        backend.request(pipe)
        seen.append(pipe.until(b"first", 2))
        pipe.rest(PATIENCE)

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    pipe.rest(3)
    pipe.close()
    if not seen:
        raise Wrong("holds it until it is whole")
    if seen == [None]:
        raise Wrong("sends the head alone")


@case(14, "an answer during an upload is the answer")
def early(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        pipe.rest(PATIENCE)

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\nbegun")
    head = pipe.head(3)
    data = head and pipe.body(head)
    pipe.close()
    if head is None:
        raise Wrong("waits for the whole upload")
    if (head.status, data) != (413, b"big"):
        raise Wrong(str(head.status))


@case(14, "103 passes")
def hints(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        pipe.rest()

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(GET)
    answer = pipe.answer()
    pipe.close()
    if (answer.interim, answer.status) != ([103], 200):
        raise Wrong(f"{answer.status} alone")


@case(14, "`Expect` is the backend's to answer")
def expect(proxy, a, b):
    def play(backend, pipe):
        backend.request(pipe)
        pipe.send(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    head = pipe.head()
    pipe.close()
    if head is None or head.status != 417:
        raise Wrong(f"{head.status} of its own" if head else "waits for the body")


@case(14, "a backend that dies in a body is a broken transfer")
def broken(proxy, a, b):
    for framing, part in ((b"Transfer-Encoding: chunked", b"5\r\nhalf-\r\n"), (b"Content-Length: 10", b"half-")):
        def play(backend, pipe, framing=framing, part=part):
            backend.request(pipe)
            pipe.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n" + part)

        a.begin(play)
        pipe = dial(proxy.http)
        pipe.send(GET)
        head = pipe.answer()
        if head.data is not None:
            raise Wrong(f"{head.status}, looks whole")
        pipe.rest(2)
        if not pipe.end:
            raise Wrong("stays open")
        pipe.close()


@case(14, "trailers pass, both ways")
def trailers(proxy, a, b):
    there = []

    def play(backend, pipe):
        head = backend.request(pipe)
        pipe.body(head)
        there.extend(head.trailers)
        pipe.send(CHUNKED + b"Trailer: X-Sum\r\n\r\n1\r\nA\r\n0\r\nX-Sum: 7\r\n\r\n")
        pipe.rest()

    a.begin(play)
    pipe = dial(proxy.http)
    pipe.send(b"POST / HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n"
              b"1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n")
    answer = pipe.answer()
    pipe.close()
    ways = [("there", there), ("back", answer.trailers)]
    lost = [way for way, lines in ways if [line.lower().replace(b" ", b"") for line in lines] != [b"x-sum:7"]]
    if lost:
        raise Wrong("lost " + " and ".join(lost))
