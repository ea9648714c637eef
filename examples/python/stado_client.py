#!/usr/bin/env python3
"""A small client of Stado's control socket, with Python's standard library alone. Take this file as it is.

    import stado_client
    api = stado_client.Api()
    api.address("checkout.postgres")              # '127.0.0.1:15432', or Unavailable with the reason
    with api.register("checkout.api", 8000):      # renewed by itself until the block ends
        serve_for_ever()

From a shell:

    stado_client.py list
    stado_client.py resolve checkout.postgres
    stado_client.py register checkout.api 8000    # until it is interrupted
"""

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.parse
import uuid


class Error(Exception):
    """What the daemon refused. Branch on `code`; the message is for people."""

    def __init__(self, status, code, message):
        super().__init__(f"{code}: {message}")
        self.status, self.code = status, code


class Unavailable(Exception):
    """The service is known and nothing stands behind it now."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("stado", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    """The daemon of this home. OSError means that it does not answer."""

    def __init__(self, path=None, timeout=5):
        default = os.path.expanduser("~/.devmesh/run/devmesh.sock")
        self.path = path or os.environ.get("DEVMESH_SOCKET") or default
        self.timeout = timeout

    def services(self):
        """Every known service, by name."""
        return self._call("GET", "/v1/services")["services"]

    def overview(self):
        """Services and adapters with their counters, and the HTTP router."""
        return self._call("GET", "/v1/overview")

    def resolve(self, name):
        """One service: name, kind, status, frontend, and why it is unavailable."""
        return self._call("GET", "/v1/services/" + urllib.parse.quote(name, safe=""))

    def address(self, name):
        """The stable address, when something stands behind it."""
        service = self.resolve(name)
        if service["status"] != "ready":
            raise Unavailable(f"{name}: {service.get('reason', service['status'])}")
        return endpoint(service)

    def register(self, name, port, host="127.0.0.1", **more):
        """Registers what listens there. `more`: kind, app_protocol, http_host, preferred_port, ttl_seconds."""
        return Registration(self, {"name": name, "backend": {"host": host, "port": port}, **more})

    def _call(self, method, path, body=None, headers=None):
        connection = _Connection(self.path, self.timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, body=text, headers=headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
        except http.client.HTTPException as error:
            raise OSError(f"{self.path}: {error!r}") from error
        finally:
            connection.close()
        if 200 <= answer.status < 300:
            return json.loads(text) if text else None
        try:
            error = json.loads(text)["error"]
        except (ValueError, KeyError, TypeError):
            error = {"code": "internal_error", "message": text.strip()}
        raise Error(answer.status, error["code"], error["message"])


class Registration:
    """A registration that is renewed until it is closed, and made anew when the daemon has forgotten it."""

    def __init__(self, api, request):
        self.api, self.request = api, request
        self._ended = threading.Event()
        self._take()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    @property
    def address(self):
        """The stable address that others use."""
        return endpoint(self.made)

    def close(self):
        """Ends the registration; its address is kept for the name."""
        self._ended.set()
        self._thread.join(2 * self.api.timeout)
        try:
            self.api._call("DELETE", self._path(), headers=self._token())
        except (OSError, Error):
            pass  # The lease runs out by itself.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _take(self):
        # The key makes a repeated request answer what the first one made, when its answer was lost.
        self.made = self.api._call(
            "POST", "/v1/registrations", self.request, {"Idempotency-Key": str(uuid.uuid4())}
        )

    def _path(self):
        return "/v1/registrations/" + self.made["registration_id"]

    def _token(self):
        return {"Authorization": "Bearer " + self.made["lease_token"]}

    def _renew(self):
        pause = third = max(1.0, self.made.get("ttl_seconds", 15) / 3)
        while not self._ended.wait(pause):
            try:
                self.api._call("POST", self._path() + "/heartbeat", headers=self._token())
                pause = third
            except Error as error:
                pause = third
                if error.status == 404:
                    try:
                        self._take()
                    except (OSError, Error):
                        pause = 1.0
            except OSError:
                pause = 1.0  # The daemon is away; it takes the name back when it has come.


def endpoint(answer):
    """What a client connects to: a URL, else host and port."""
    frontend = answer["frontend"]
    return frontend.get("url") or f"{frontend['host']}:{frontend['port']}"


def _main(words):
    api = Api()
    try:
        if words == ["list"]:
            for service in api.services():
                print(service["name"], service["status"], endpoint(service))
        elif words[:1] == ["resolve"] and len(words) == 2:
            print(api.address(words[1]))
        elif words[:1] == ["register"] and len(words) == 3:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            with api.register(words[1], int(words[2])) as registration:
                print(words[1], "is at", registration.address, flush=True)
                while True:
                    time.sleep(3600)
        else:
            sys.exit(__doc__)
    except KeyboardInterrupt:
        pass
    except (Error, Unavailable, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    _main(sys.argv[1:])
