#!/usr/bin/env python3
"""A WebSocket through the router with a client that people use (`websocket-client`; Debian: python3-websocket), and a server
behind it that returns every message. `websocket_client.py ROUTER BACKEND HOST [CA]`: the router's port, the port that the server
here listens on, the hostname of the service, and over TLS the certificate to trust. Prints `ok`, or what is wrong."""
import base64
import hashlib
import os
import socket
import struct
import sys
import threading

import websocket

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def exactly(reader, count):
    data = reader.read(count)
    if len(data) < count:
        raise EOFError
    return data


def frame(reader):
    """First byte and payload of the next frame; a client's is masked."""
    first, second = exactly(reader, 2)
    length = second & 0x7F
    if length == 126:
        length = struct.unpack("!H", exactly(reader, 2))[0]
    elif length == 127:
        length = struct.unpack("!Q", exactly(reader, 8))[0]
    assert second & 0x80, "a client masks"
    mask, data = exactly(reader, 4), exactly(reader, length)
    repeated = mask * (length // 4 + 1)
    return first, (int.from_bytes(data, "big") ^ int.from_bytes(repeated[:length], "big")).to_bytes(length, "big")


def framed(first, data):
    length = len(data)
    if length < 126:
        return bytes([first, length]) + data
    return bytes([first, *((126,) if length < 65536 else (127,))]) + struct.pack("!H" if length < 65536 else "!Q", length) + data


def serve(sock):
    """One connection: the handshake, then every frame back; what it greets with comes together with the handshake."""
    reader = sock.makefile("rb")
    head = {}
    while (line := reader.readline().decode().strip()) or not head:
        name, _, value = line.partition(":")
        head[name.lower()] = value.strip()
    accept = base64.b64encode(hashlib.sha1((head["sec-websocket-key"] + GUID).encode()).digest()).decode()
    answer = ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
    sock.sendall(answer.encode() + framed(0x80 | TEXT, head["host"].encode()))
    while True:
        first, data = frame(reader)
        opcode = first & 15
        sock.sendall(framed(0x80 | PONG if opcode == PING else first, data))
        if opcode == CLOSE:
            sock.close()
            return


def backend(port):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def main():
    router, port, host = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    threading.Thread(target=backend, args=(port,), daemon=True).start()
    secure = {"server_hostname": host, "ca_certs": sys.argv[4]} if len(sys.argv) > 4 else None
    scheme = "wss" if secure else "ws"
    raw = socket.create_connection(("127.0.0.1", router), 30)
    if secure:
        import ssl
        raw = ssl.create_default_context(cafile=secure["ca_certs"]).wrap_socket(raw, server_hostname=host)
    client = websocket.create_connection(
        f"{scheme}://{host}:{router}/chat?room=1", timeout=30, socket=raw, subprotocols=["chat"], header=["X-Mine: yes"])
    assert client.getsubprotocol() == "chat", client.getsubprotocol()
    assert client.recv() == f"{host}:{router}", "the greeting, with the host as it was written"
    for message in ("hello", "", "grüße", "x" * 125, "x" * 126, "x" * 70000):
        client.send(message)
        assert client.recv() == message, len(message)
    large = os.urandom(4 << 20)
    client.send_binary(large)
    assert client.recv() == large, "four megabytes"
    client.ping("are you there")
    opcode, data = client.recv_data(control_frame=True)
    assert (opcode, data) == (PONG, b"are you there"), (opcode, data)
    client.close(status=1000, timeout=30)
    print("ok")


main()
