#!/usr/bin/env python3
"""A client of the local mesh, written from the mesh contract alone with Python's standard library.

It binds an echo server of its own, registers it, renews the lease, registers again when the daemon has forgotten it, and
deregisters on SIGTERM. It knows nothing of Stado and sends nothing that the contract does not describe. Each thing that
happens is one line on standard output:

    registered ENDPOINT REGISTRATION_ID
    renewed REGISTRATION_ID EXPIRES_AT
    lost REASON
    deregistered STATUS
"""

import argparse
import http.client
import json
import random
import signal
import socket
import sys
import threading


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket; the host name is what the contract tells clients to send."""

    def __init__(self, path):
        super().__init__("devmesh", timeout=5)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def call(path, method, url, body=None, token=None):
    """One request: its status and its body as text."""
    connection = UnixConnection(path)
    headers = {"Accept-Encoding": "identity"}
    if body is not None:
        body = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    if token:
        headers["Authorization"] = "Bearer " + token
    try:
        connection.request(method, url, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def say(*words):
    print(*words, flush=True)


class Refused(Exception):
    """An answer that is not a success."""


class Registration:
    def __init__(self, path, request):
        self.path = path
        self.request = request
        self.id = self.token = None
        self.ttl = 15

    def create(self):
        status, body = call(self.path, "POST", "/v1/registrations", self.request)
        if status != 201:
            raise Refused(f"{status} {json.loads(body)['error']['code']}")
        answer = json.loads(body)
        self.id, self.token = answer["registration_id"], answer["lease_token"]
        self.ttl = answer.get("ttl_seconds") or 15
        frontend = answer["frontend"]
        say("registered", frontend.get("url") or f"{frontend['host']}:{frontend['port']}", self.id)

    def renew(self):
        status, body = call(self.path, "POST", f"/v1/registrations/{self.id}/heartbeat", token=self.token)
        if status == 404:
            self.create()
        elif status == 200:
            say("renewed", self.id, json.loads(body)["expires_at"])
        else:
            raise Refused(f"{status}")

    def delete(self):
        status, _ = call(self.path, "DELETE", f"/v1/registrations/{self.id}", token=self.token)
        say("deregistered", status)


def echo_server():
    """Answers every line with ECHO: in front of it; the port the system chose."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(client):
        with client, client.makefile("rb") as lines:
            for line in lines:
                client.sendall(b"ECHO:" + line)

    def accept():
        while True:
            client, _ = server.accept()
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return server.getsockname()[1]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--socket", required=True)
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--preferred-port", type=int)
    arguments.add_argument("--ttl", type=int)
    options = arguments.parse_args()

    request = {"name": options.name, "kind": "tcp", "source": "process"}
    request["backend"] = {"host": "127.0.0.1", "port": echo_server()}
    if options.preferred_port:
        request["preferred_port"] = options.preferred_port
    if options.ttl:
        request["ttl_seconds"] = options.ttl

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    registration = Registration(options.socket, request)
    registration.create()
    delay = 0.0
    while not stop.wait(delay or max(registration.ttl / 3, 1)):
        try:
            registration.renew()
            delay = 0.0
        except (OSError, http.client.HTTPException, Refused) as error:
            say("lost", error)
            delay = min(max(delay * 2, 0.1), 5) * random.uniform(0.8, 1.2)
    registration.delete()


if __name__ == "__main__":
    sys.exit(main())
