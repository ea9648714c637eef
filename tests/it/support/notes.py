"""A service with state: it counts, in a file, what it is told to add. `notes.py HOST PORT`, in the home of its host."""
import os
import socket
import sys
import threading

host, port = sys.argv[1], int(sys.argv[2])
state = "notes/data/count"
lock = threading.Lock()


def add():
    with lock:
        with open(state) as file:
            count = int(file.read()) + 1
        with open(state + ".next", "w") as file:
            file.write(str(count))
            file.flush()
            os.fsync(file.fileno())
        os.rename(state + ".next", state)
        return count


def serve(connection):
    with connection, connection.makefile("rwb") as stream:
        for line in stream:
            if line.startswith(b"GET "):
                status = b"503 sick" if os.path.exists("sick") else b"200 OK"
                stream.write(b"HTTP/1.1 " + status + b"\r\nConnection: close\r\n\r\n")
                stream.flush()
                return
            stream.write(f"{host}:{add()}\n".encode())
            stream.flush()


listener = socket.create_server(("127.0.0.1", port))
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
