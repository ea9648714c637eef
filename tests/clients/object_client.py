#!/usr/bin/env python3
"""A client of the object API, and of the vault behind it, written from the fleet contract alone with Python's standard library.

It knows nothing of Stado. It speaks HTTP/1.1 over a socket of its own, so that it sees each answer as it was sent, and compares
bodies byte for byte with those of the contract. Tokens come from files. It prints a line for each thing that it found as the
contract says, and ends with an error at the first one that is not.
"""

import argparse
import hashlib
import json
import socket
import ssl
import sys
import urllib.parse


class Answer:
    def __init__(self, raw):
        head, found, self.body = raw.partition(b"\r\n\r\n")
        if not found:
            raise SystemExit(f"no head in {raw!r}")
        lines = head.decode("ascii").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        length = int(self.headers["content-length"])
        if len(self.body) != length:
            raise SystemExit(f"{len(self.body)} bytes came, and Content-Length says {length}")


class Server:
    """One address; each request has a connection of its own."""

    def __init__(self, url, ca=None):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None

    def send(self, data):
        """What comes back until the server closes; nothing, when it closes without an answer."""
        with socket.create_connection((self.host, self.port), timeout=20) as plain:
            stream = self.tls.wrap_socket(plain, server_hostname=self.host) if self.tls else plain
            with stream:
                try:
                    stream.sendall(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # It has seen enough; what it said meanwhile is read below.
                raw = b""
                while True:
                    try:
                        piece = stream.recv(65536)
                    except (ConnectionResetError, ssl.SSLEOFError):
                        piece = b""
                    if not piece:
                        return raw
                    raw += piece

    def ask(self, method, target, token=None, headers=(), body=None, host="localhost"):
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Accept: application/json"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        lines.extend(headers)
        return Answer(self.send("\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")))


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def expect(what, answer, status, body=None, **headers):
    if answer.status != status:
        sys.exit(f"{what}: {answer.status} instead of {status}: {answer.body!r}")
    if body is not None:
        body = body if isinstance(body, bytes) else compact(body)
        if answer.body != body:
            sys.exit(f"{what}: {answer.body!r} instead of {body!r}")
    for name, value in {"connection": "close", **headers}.items():
        if answer.headers.get(name.replace("_", "-")) != value:
            sys.exit(f"{what}: {name} is {answer.headers.get(name.replace('_', '-'))!r} instead of {value!r}")
    print("as the contract says:", what, flush=True)


def target(uri, rest="", path="/api/object"):
    return f"{path}?uri={urllib.parse.quote(uri, safe='')}{rest}"


def objects(api, token, release):
    uri = "stado://probierz/queue/a b.txt"
    at, absent = target(uri), {"state": "absent", "uri": uri}
    put = lambda rest="", body=b"hello", headers=(): api.ask("PUT", at + rest, token, headers, body)
    get = lambda rest="", headers=(): api.ask("GET", at + rest, token, headers)

    expect("GET of nothing", get(), 404, absent)
    expect("stat of nothing", api.ask("GET", target(uri, path="/api/object/stat"), token), 404, absent)
    expect("PUT if_version of nothing", put("&if_version=abc"), 404, absent)
    expect("PUT metadata_only of nothing", put("&metadata_only=true", b""), 404, absent)
    plain = ["Content-Type: text/plain", 'x-stado-object-metadata: {"stado-kind":"note"}']
    stored = {"state": "stored", "uri": uri, "content_type": "text/plain"}
    expect("PUT", put(headers=plain), 200, stored, content_type="application/json")
    expect("GET", get(), 200, b"hello", content_type="text/plain", accept_ranges="bytes")
    version = hashlib.sha256(b"hello").hexdigest()
    expect("versioned GET", get("&versioned=true"), 200, b"hello", x_stado_version=version)
    expect("a range", get(headers=["Range: bytes=1-3"]), 206, b"ell", content_range="bytes 1-3/5")
    expect("a suffix", get(headers=["Range: bytes=-2"]), 206, b"lo", content_range="bytes 3-4/5")
    expect("a range outside", get(headers=["Range: bytes=5-"]), 416, content_range="bytes */5")

    exists = {"error": "object exists", "uri": uri}
    expect("PUT if_absent of what exists", put("&if_absent=true"), 409, exists)
    moved = {"error": "object version changed", "uri": uri}
    expect("PUT if_version of what moved", put("&if_version=" + "0" * 64), 409, moved)
    second = hashlib.sha256(b"two").hexdigest()
    swapped = {"state": "stored", "uri": uri, "version": second}
    expect("PUT if_version", put(f"&if_version={version}", b"two", plain), 200, swapped)
    updated = {"state": "metadata-updated", "uri": uri}
    other = ['x-stado-object-metadata: {"stado-kind":"other"}']
    expect("PUT metadata_only", put("&metadata_only=true", b"", other), 200, updated)
    exclusive = {"error": "if_absent, if_version, and metadata_only are mutually exclusive"}
    expect("two preconditions", put("&if_absent=true&if_version=x"), 400, exclusive)

    stat = api.ask("GET", target(uri, path="/api/object/stat"), token)
    facts = json.loads(stat.body)
    metadata = {"content_type": "text/plain", "stado-kind": "other"}
    wanted = {"state": "present", "uri": uri, "size": 3, "updated_at": facts.get("updated_at"), "metadata": metadata}
    expect("stat", stat, 200, wanted)
    rows = [{"uri": uri, "namespace": "probierz", "key": "queue/a b.txt", "size": 3, "updated_at": facts["updated_at"],
             "metadata": metadata}]
    listing = "/api/object/list?namespace=probierz&prefix=queue/"
    expect("list", api.ask("GET", listing, token), 200, {"objects": rows})
    expect("list of nothing", api.ask("GET", listing + "none/", token), 200, {"objects": []})
    for again in ["", " again"]:
        expect("DELETE" + again, api.ask("DELETE", at, token), 200, absent)

    created = api.ask("PUT", at + "&if_absent=true", token, body=b"new")
    expect("PUT if_absent", created, 200)
    facts = json.loads(created.body)
    if {"state": "stored", "uri": uri}.items() - facts.items():
        sys.exit(f"PUT if_absent: {created.body!r}")
    expect("GET of what was created", get(), 200, b"new", content_type="application/octet-stream")
    expect("DELETE of what was created", api.ask("DELETE", at, token), 200, absent)

    required = {"error": "uri is required"}
    for method, path in [("GET", "/api/object"), ("GET", "/api/object/stat"), ("GET", "/api/release/object"),
                         ("PUT", "/api/object"), ("DELETE", "/api/object")]:
        expect(f"no uri, {method} {path}", api.ask(method, path, token, body=b""), 400, required)
    denied, put_denied = {"error": "unauthorized"}, {"error": "unauthorized or non-immutable release write"}
    expect("no bearer", api.ask("GET", at), 401, denied)
    expect("a wrong bearer", api.ask("GET", at, "wrong"), 401, denied)
    expect("a wrong bearer, PUT", api.ask("PUT", at, "wrong", body=b"x"), 401, put_denied)
    scope = {"reason": "object_grant_does_not_cover_key"}
    beyond = target("stado://probierz/elsewhere")
    expect("out of scope", api.ask("GET", beyond, token), 401, {**denied, **scope})
    expect("out of scope, DELETE", api.ask("DELETE", beyond, token), 401, {**denied, **scope})
    stat_beyond = target("stado://probierz/elsewhere", path="/api/object/stat")
    expect("out of scope, stat", api.ask("GET", stat_beyond, token), 401, {**denied, **scope})
    list_beyond = "/api/object/list?namespace=probierz&prefix=elsewhere/"
    expect("out of scope, list", api.ask("GET", list_beyond, token), 401, {**denied, **scope})
    for method, path in [("GET", target(uri, path="/api/object/stat")), ("GET", listing), ("DELETE", at)]:
        expect(f"a wrong bearer, {method} {path}", api.ask(method, path, "wrong"), 401, denied)
    expect("out of scope, PUT", api.ask("PUT", beyond, token, body=b"x"), 401, {**put_denied, **scope})

    expect("a write over a release", api.ask("PUT", target("stado://releases/x/1"), release, body=b"x"), 401, put_denied)
    once = api.ask("PUT", target("stado://releases/x/1", "&if_absent=true"), release, body=b"one")
    expect("a release", once, 200)
    expect("a release for anyone", api.ask("GET", target("stado://releases/x/1", path="/api/release/object")), 200, b"one")
    forbidden = {"error": "forbidden"}
    part = api.ask("GET", target("stado://releases/x/1", path="/api/release/object"), headers=["Range: bytes=1-"])
    expect("a part of a release", part, 206, b"ne", content_range="bytes 1-2/3")
    again = api.ask("PUT", target("stado://releases/x/1", "&if_absent=true"), release, body=b"two")
    expect("a second time", again, 409, {"error": "object exists", "uri": "stado://releases/x/1"})
    none = "stado://releases/x/2"
    expect("no such release", api.ask("GET", target(none, path="/api/release/object")), 404, {"state": "absent", "uri": none})
    expect("no release", api.ask("GET", target(uri, path="/api/release/object")), 403, forbidden)
    expect("DELETE of a release", api.ask("DELETE", target("stado://releases/x/1"), release), 403, forbidden)

    health = {"ok": True, "degraded": False, "boundaries": {"object": True, "release": True}}
    for path in ["/healthz", "/livez"]:
        expect(path, api.ask("GET", path), 200, health)
    for method in ["PATCH", "POST", "OPTIONS"]:
        expect(f"an unknown method, {method}", api.ask(method, at, token), 501)
    page = api.ask("GET", "/healthz", headers=["Origin: http://localhost"])
    expect("a page in a browser", page, 403, forbidden)
    if not api.tls:
        expect("a foreign Host", api.ask("GET", "/healthz", host="evil.example"), 403, forbidden)

    head = f"PUT {at} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    broken = {
        "no Content-Length": head + "\r\n",
        "a body that is too large": head + "Content-Length: 536870913\r\n\r\n",
        "Transfer-Encoding": head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a head that is too large": head + "X: " + "x" * 65536 + "\r\n\r\n",
    }
    for what, request in broken.items():
        answer = api.send(request.encode())
        if answer:
            sys.exit(f"{what}: the connection was not just closed: {answer!r}")
        print("as the contract says: closed on", what, flush=True)


def broken(api, token, key):
    """An object that the server cannot reach in its own store."""
    at = target(f"stado://probierz/{key}")
    expect("GET that fails", api.ask("GET", at, token), 500, b"dashboard error")
    for method in ["PUT", "DELETE"]:
        answer = api.ask(method, at, token, body=b"x")
        expect(f"{method} that fails", answer, 500)
        if list(json.loads(answer.body)) != ["error"]:
            sys.exit(f"{method} that fails: {answer.body!r}")


def closed(api, token):
    """While the vault that has the token does not answer: refused at once, with the line of the wait."""
    uri = "stado://probierz/x"
    causes = set()
    for method, path in [("GET", target(uri)), ("GET", target(uri, "&versioned=true")), ("PUT", target(uri)),
                         ("PUT", target(uri, "&if_absent=true")), ("PUT", target(uri, "&metadata_only=true")),
                         ("DELETE", target(uri)), ("GET", target(uri, path="/api/object/stat")),
                         ("GET", "/api/object/list?namespace=probierz&prefix=")]:
        answer = api.ask(method, path, token, body=b"x" if method == "PUT" else None)
        cause = json.loads(answer.body).get("cause", "")
        expect(f"{method} {path}, closed", answer, 503, {"error": "object authorization unavailable", "cause": cause})
        causes.add(cause)
    if len(causes) != 1 or not causes.pop().startswith(("czekam: ", "blad czekania: ")):
        sys.exit(f"causes: {causes}")
    degraded = {"ok": True, "degraded": True, "boundaries": {"object": False, "release": True}}
    for path in ["/healthz", "/livez"]:
        expect(f"{path}, closed", api.ask("GET", path), 200, degraded)
    expect("a release, closed", api.ask("GET", target("stado://releases/x/1", path="/api/release/object")), 404)


def vault(server, consumer, grant, item, value):
    def ask(path, body, headers=(f"X-Consumer: {consumer}",), token=grant):
        return server.ask("POST", path, token, ["Content-Type: application/json", *headers], body)

    read = compact({"id": item, "field": "token"})
    expect("read", ask("/v1/items/read", read), 200, {"value": value})
    listed = ask("/v1/items/list", b"{}")
    expect("list", listed, 200)
    for row in json.loads(listed.body):
        if list(row) != ["id", "type", "tags", "updated_at", "deleted", "versions"]:
            sys.exit(f"a row of the list: {row}")
    if [row["id"] for row in json.loads(listed.body)] != [item]:
        sys.exit(f"list: {listed.body!r}")
    for what, answer in {
        "no consumer": ask("/v1/items/read", read, headers=()),
        "another consumer": ask("/v1/items/read", read, headers=("X-Consumer: somebody",)),
        "another grant": ask("/v1/items/read", read, token="wrong"),
    }.items():
        expect(what, answer, 401, {"error": "unauthorized"})
    expect("another item", ask("/v1/items/read", compact({"id": "other", "field": "token"})), 403)
    expect("another field", ask("/v1/items/read", compact({"id": item, "field": "none"})), 404)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--token-file", required=True)
    arguments.add_argument("--ca")
    arguments.add_argument("--release-token-file")
    arguments.add_argument("--broken-key", help="a key of probierz that the server's store cannot reach")
    arguments.add_argument("--closed", action="store_true", help="the vault with the token does not answer")
    arguments.add_argument("--consumer", help="ask a vault as this consumer")
    arguments.add_argument("--item")
    arguments.add_argument("--value-file")
    options = arguments.parse_args()

    def secret(path):
        with open(path) as file:
            return file.read().strip()

    server, token = Server(options.url, options.ca), secret(options.token_file)
    if options.consumer:
        vault(server, options.consumer, token, options.item, secret(options.value_file))
    elif options.closed:
        closed(server, token)
    else:
        objects(server, token, secret(options.release_token_file))
        broken(server, token, options.broken_key)
    print("everything is as the contract says", flush=True)


if __name__ == "__main__":
    main()
