"""Both ends of a probe: a client and a backend that see every byte, and say how a connection ended."""
import contextlib
import socket
import ssl
import struct
import threading
import time

PATIENCE = 5.0  # for what must come; a loaded machine is slow
SILENCE = 0.5  # for what must not come


class Wrong(Exception):
    """What a proxy did instead."""


class Pipe:
    """One connection, with a buffer."""

    def __init__(self, sock):
        self.sock, self.buf, self.end = sock, b"", None

    def send(self, data):
        self.sock.sendall(data)

    def more(self, limit=PATIENCE):
        """Reads once: whether bytes came. `end` says `closed` or `reset` when there will be none."""
        if self.end:
            return False
        self.sock.settimeout(max(limit, 0.001))
        try:
            data = self.sock.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            return False
        except OSError:
            self.end = "reset"
            return False
        if not data:
            self.end = "closed"
        self.buf += data
        return bool(data)

    def until(self, text, limit=PATIENCE):
        """Everything up to and with `text`, or None."""
        stop = time.monotonic() + limit
        while text not in self.buf:
            left = stop - time.monotonic()
            if left <= 0 or not self.more(left):
                if text in self.buf:
                    break
                return None
        at = self.buf.index(text) + len(text)
        found, self.buf = self.buf[:at], self.buf[at:]
        return found

    def rest(self, limit=PATIENCE):
        """Everything until the end of the connection, or for as long as `limit`."""
        stop = time.monotonic() + limit
        while not self.end and time.monotonic() < stop:
            self.more(stop - time.monotonic())
        found, self.buf = self.buf, b""
        return found

    def head(self, limit=PATIENCE):
        """The next head, or None."""
        data = self.until(b"\r\n\r\n", limit)
        return None if data is None else Head(data)

    def body(self, head):
        """The body behind `head` with its trailers, data only; None if it is not whole."""
        if head.has("transfer-encoding"):
            data = b""
            while (line := self.until(b"\r\n")) is not None:
                size = int(line.split(b";")[0], 16)
                if size == 0:
                    while (line := self.until(b"\r\n")) not in (None, b"\r\n"):
                        head.trailers.append(line.strip())
                    return None if line is None else data
                chunk = self.exactly(size + 2)
                if chunk is None:
                    return None
                data += chunk[:-2]
            return None
        length = head.get("content-length")
        return self.exactly(int(length)) if length else self.rest()

    def exactly(self, count):
        stop = time.monotonic() + PATIENCE
        while len(self.buf) < count and time.monotonic() < stop:
            if not self.more(stop - time.monotonic()):
                break
        if len(self.buf) < count:
            return None
        found, self.buf = self.buf[:count], self.buf[count:]
        return found

    def answer(self):
        """The next final answer with its body; `interim` are the 1xx before it."""
        interim = []
        while (head := self.head()) is not None and head.status // 100 == 1 and head.status != 101:
            interim.append(head.status)
        if head is None:
            behind = f" behind {interim[0]}" if interim else ""
            raise Wrong(f"no answer{behind}: {self.end or 'silence'}")
        head.interim = interim
        head.data = b"" if head.status in (101, 204, 304) else self.body(head)
        return head

    def finish(self):
        """No more from this side."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        # A reader in another thread holds the descriptor: shutting down ends it too.
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class Head:
    """A request's or a response's head, as it came."""

    def __init__(self, raw):
        self.raw, self.trailers, self.data, self.interim = raw, [], b"", []
        self.first, *lines = raw[:-4].decode("latin-1").split("\r\n")
        self.fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    @property
    def status(self):
        return int(self.first.split(" ")[1])

    @property
    def method(self):
        return self.first.split(" ")[0]

    @property
    def target(self):
        return self.first.split(" ")[1]

    def get(self, name):
        return next((value for field, value in self.fields if field.lower() == name), None)

    def has(self, name):
        return self.get(name) is not None


def dial(port, host=None, alpn=None):
    """A connection to a proxy; with `host` over TLS, whose certificate is nobody's concern here."""
    sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if host is None:
        return Pipe(sock)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(alpn)
    return Pipe(context.wrap_socket(sock, server_hostname=host))


class Backend:
    """A server that a case tells what to do with each connection."""

    def __init__(self, name):
        self.name, self.lock, self.play = name, threading.Lock(), None
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.begin(None)
        threading.Thread(target=self.accept, daemon=True).start()

    def begin(self, play):
        """A new case: earlier connections end; `play(self, pipe)` runs for each new one, else each request gets 200."""
        with self.lock:
            for pipe in getattr(self, "pipes", []):
                pipe.close()
            self.pipes, self.heads, self.raw, self.play = [], [], [], play

    def accept(self):
        while True:
            sock, _ = self.listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                pipe = Pipe(sock)
                self.pipes.append(pipe)
                threading.Thread(target=self.serve, args=(pipe, self.play or Backend.plain), daemon=True).start()

    def serve(self, pipe, play):
        with contextlib.suppress(OSError, ValueError, Wrong):
            play(self, pipe)
        pipe.close()

    def request(self, pipe, limit=60.0):
        """The next request's head on this connection, remembered; ends the play when there is none."""
        head = pipe.head(limit)
        if head is None:
            raise Wrong("no request")
        self.heads.append(head)
        return head

    def plain(self, pipe):
        while True:
            head = self.request(pipe)
            if head.has("content-length") or head.has("transfer-encoding"):
                pipe.body(head)
            pipe.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + self.name.encode())

    def one(self):
        """The request that came, waited for."""
        stop = time.monotonic() + PATIENCE
        while not self.heads:
            if time.monotonic() > stop:
                raise Wrong("nothing reached the backend")
            time.sleep(0.01)
        return self.heads[0]
