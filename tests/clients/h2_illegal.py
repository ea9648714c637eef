#!/usr/bin/env python3
"""An HTTP/2 client that sends what none may, with PyPI's `h2` (Debian: python3-h2). `h2_illegal.py PORT` runs every case on a
connection of its own to 127.0.0.1 and prints a line of JSON for it: the case, and what came back (`rst 5`, `goaway 1`,
`status 200`, `reset`, `closed`). A connection that was opened first asks again after each case: `other` says how often it was
answered."""
import json
import socket
import sys
import time

import h2.config
import h2.connection
from hyperframe.frame import (
    ContinuationFrame, DataFrame, HeadersFrame, PingFrame, PushPromiseFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame)

HOST = "web.localhost"
PATIENCE = 30
GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", HOST)]
POST = [(":method", "POST"), *GET[1:]]


class Client:
    """A connection that checks nothing of what it sends."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
        config = h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False,
            validate_inbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.h2.initiate_connection()
        self.flush()
        self.seen, self.ended, self.buffer = [], None, b""

    def flush(self):
        self.sock.sendall(self.h2.data_to_send())

    def block(self, fields):
        """A header block, in the encoder's own order."""
        return self.h2.encoder.encode(fields)

    def send(self, *frames):
        """Raw frames. A router that has had enough closes while it is still being written to."""
        try:
            self.sock.sendall(b"".join(frame.serialize() for frame in frames))
        except OSError:
            self.ended = "reset"

    def headers(self, stream, fields, end=True, whole=True):
        frame = HeadersFrame(stream, self.block(fields))
        for flag in (["END_STREAM"] if end else []) + (["END_HEADERS"] if whole else []):
            frame.flags.add(flag)
        return frame

    def read(self, until):
        """Reads until `until` holds, the connection ends, or patience does. What came is in `seen`."""
        stop = time.monotonic() + PATIENCE
        while not until() and not self.ended:
            self.sock.settimeout(max(stop - time.monotonic(), 0.01))
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                self.ended = "silence"
                break
            except OSError:
                self.ended = "reset"
                break
            if not data:
                self.ended = "closed"
            self.buffer = self.frames(self.buffer + data)

    def frames(self, data):
        """Notes the frames that are whole; returns the rest. Read by hand: the library judges what belongs to no stream of its."""
        while len(data) >= 9 and len(data) >= 9 + (length := int.from_bytes(data[:3], "big")):
            kind, flags, stream = data[3], data[4], int.from_bytes(data[5:9], "big") & 0x7FFFFFFF
            body, data = data[9:9 + length], data[9 + length:]
            if kind == 1:
                fields = dict(self.h2.decoder.decode(body))
                self.seen.append((stream, f"status {fields.get(':status', fields.get(b':status'))}"))
            elif kind == 3:
                self.seen.append((stream, f"rst {int.from_bytes(body, 'big')}"))
            elif kind == 7:
                self.seen.append((0, f"goaway {int.from_bytes(body[4:8], 'big')}"))
            elif kind == 4 and flags & 1:
                self.seen.append((0, "settings ack"))
            elif kind == 6 and flags & 1:
                self.seen.append((0, "ping ack"))
            elif kind == 6:
                pong = PingFrame(0, body)
                pong.flags.add("ACK")
                self.send(pong)
            if kind in (0, 1) and flags & 1:
                self.seen.append((stream, "end"))
        return data

    def count(self, word):
        return sum(what == word for _, what in self.seen)

    def verdict(self):
        """The first thing that says no, else the status, else how the connection ended."""
        said = [what for _, what in self.seen]
        no = [what for what in said if what.startswith(("rst", "goaway"))]
        return (no or [what for what in said if what.startswith("status")] or [self.ended or "silence"])[0]


def refused(client):
    """Until a stream or the connection is refused."""
    client.read(lambda: any(what.startswith(("rst", "goaway", "status")) for _, what in client.seen))
    return client.verdict()


def ask(client, stream):
    """An honest request; whether it was answered."""
    client.send(client.headers(stream, GET))
    client.read(lambda: (stream, "end") in client.seen)
    return (stream, "status 200") in client.seen


def head(fields):
    def case(client):
        client.send(client.headers(1, fields))
        return refused(client)
    return case


def field(name, value):
    return head([*GET, (name, value)])


def raw(*frames):
    def case(client):
        client.send(*frames)
        return refused(client)
    return case


def on_closed(make):
    """A frame on a stream that both sides have ended."""
    def case(client):
        assert ask(client, 1), client.seen
        client.seen.clear()
        client.send(make(client))
        return refused(client)
    return case


def too_large(client):
    client.send(client.headers(1, POST, end=False), DataFrame(1, b"x" * 20000))
    return refused(client)


def beyond_window(client):
    frames = [DataFrame(1, b"x" * 16384) for _ in range(1000)]
    client.send(client.headers(1, POST, end=False), *frames)
    return refused(client)


def continuations(client):
    client.send(client.headers(1, GET, whole=False), *[ContinuationFrame(1, b"") for _ in range(20000)])
    return refused(client)


def large_continuations(client):
    pieces = [ContinuationFrame(1, client.block([(f"x-{n}", "y" * 8000)])) for n in range(60)]
    client.send(client.headers(1, GET, whole=False), *pieces)
    return refused(client)


def rapid_reset(client):
    """Far more than may be given up, as fast as it goes."""
    for n in range(20000):
        if client.ended:
            break
        client.send(client.headers(2 * n + 1, GET), RstStreamFrame(2 * n + 1, 8))
    client.ended = None
    client.read(lambda: any(what.startswith("goaway") for _, what in client.seen))
    return next((what for _, what in client.seen if what.startswith("goaway")), client.ended)


def flood(frame, word):
    """Many frames that each want an answer, which nobody reads for a while."""
    def case(client):
        client.sock.settimeout(2)
        sent = 0
        for _ in range(500):
            try:
                client.sock.sendall(frame.serialize() * 200)
            except OSError:
                break
            sent += 200
        client.read(lambda: client.count(word) >= sent)
        no = [what for _, what in client.seen if what.startswith("goaway")]
        return no[0] if no else word if client.count(word) else client.ended
    return case


def interleaved(client):
    client.send(client.headers(1, GET, whole=False), PingFrame(0, b"12345678"))
    return refused(client)


def backwards(client):
    client.send(client.headers(5, GET), client.headers(3, GET))
    client.read(lambda: any(what.startswith(("rst", "goaway")) for _, what in client.seen))
    return client.verdict()


class Bytes:
    """What no frame of the library can be made to be."""

    def __init__(self, data):
        self.data = data

    def serialize(self):
        return self.data


def short_body(client):
    client.send(client.headers(1, [*POST, ("content-length", "10")], end=False))
    body = DataFrame(1, b"abc")
    body.flags.add("END_STREAM")
    client.send(body)
    return refused(client)


CASES = {
    "data on a closed stream": on_closed(lambda _: DataFrame(1, b"x")),
    "headers on a closed stream": on_closed(lambda client: client.headers(1, GET)),
    "data on an idle stream": raw(DataFrame(1, b"x")),
    "a window on an idle stream": raw(WindowUpdateFrame(1, 1)),
    "a reset of an idle stream": raw(RstStreamFrame(1, 8)),
    "a stream of even number": lambda client: (client.send(client.headers(2, GET)), refused(client))[1],
    "streams that go backwards": backwards,
    "a push": raw(PushPromiseFrame(1, 2, b"")),
    "data on the connection": raw(Bytes(b"\0\0\1\0\1\0\0\0\0x")),
    "another frame inside a head": interleaved,
    "a frame that is too large": too_large,
    "more data than the window": beyond_window,
    "a window of nothing": raw(WindowUpdateFrame(0, 1), WindowUpdateFrame(0, 0x7FFFFFFF)),
    "continuations without an end": continuations,
    "large continuations without an end": large_continuations,
    "a name in capitals": field("X-Upper", "1"),
    "connection": field("connection", "keep-alive"),
    "keep-alive": field("keep-alive", "timeout=5"),
    "proxy-connection": field("proxy-connection", "keep-alive"),
    "transfer-encoding": field("transfer-encoding", "chunked"),
    "upgrade": field("upgrade", "websocket"),
    "te": field("te", "gzip"),
    "a pseudo field behind a field": head([GET[0], ("x", "y"), *GET[1:]]),
    "no path": head([GET[0], GET[1], GET[3]]),
    "a body that is shorter than said": short_body,
    "rapid reset": rapid_reset,
    "a flood of settings": flood(SettingsFrame(0), "settings ack"),
    "a flood of pings": flood(PingFrame(0, b"12345678"), "ping ack"),
}


def main():
    port = int(sys.argv[1])
    other, stream, answered = Client(port), 1, 0
    for name, case in CASES.items():
        client = Client(port)
        try:
            verdict = case(client)
        finally:
            client.sock.close()
        answered += ask(other, stream)
        stream += 2
        print(json.dumps({"case": name, "verdict": verdict}), flush=True)
    print(json.dumps({"other": answered, "cases": len(CASES)}))


main()
