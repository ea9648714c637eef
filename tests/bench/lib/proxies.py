"""Stado and its peers on free loopback ports, each with a configuration of its own in a temporary folder."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from wire import dial

ROOT = pathlib.Path(__file__).resolve().parents[3]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def certificate(folder, host):
    """A self-made pair for `host` and for localhost."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "9",
         "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host},DNS:localhost", "-keyout", key, "-out", cert],
        check=True, capture_output=True)
    (folder / "pair.pem").write_text(cert.read_text() + key.read_text())
    return cert, key


class Proxy:
    """A running proxy. `hosts` maps a hostname to a backend's port, or to None where it is known and has none."""

    name = ""

    def __init__(self, folder, hosts, cert, key):
        self.folder, self.hosts, self.cert, self.key = folder / self.name, hosts, cert, key
        self.folder.mkdir()
        self.http, self.https = free_port(), free_port()
        self.http2 = self.http  # where HTTP/2 is spoken in clear text
        self.log = (self.folder / "log").open("w")
        self.process = None

    def spawn(self, *command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)
        for port in (self.http, self.https):
            self.wait_for(lambda port=port: dial(port).close(), f"port {port}")

    def wait_for(self, attempt, what):
        stop = time.monotonic() + 30
        while True:
            try:
                return attempt()
            except (OSError, subprocess.CalledProcessError):
                if time.monotonic() > stop or self.process.poll() is not None:
                    raise SystemExit(f"{self.name}: no {what}: {(self.folder / 'log').read_text()[-2000:]}") from None
                time.sleep(0.05)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)


class Stado(Proxy):
    name = "Stado"
    binary = str(ROOT / "target/release/stado")

    @classmethod
    def version(cls):
        return first_version(cls.binary, "--version")

    def start(self):
        self.env = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        self.spawn(self.binary, "resolver", "serve", "--docker-enabled=false", "--http-enabled", "--http-addr",
                   f"127.0.0.1:{self.http}", "--https-addr", f"127.0.0.1:{self.https}", "--http-cert-file", self.cert,
                   "--http-key-file", self.key, env=self.env)
        self.wait_for(lambda: self.stado("service", "list"), "daemon")
        for host, port in self.hosts.items():
            # A registration that ends leaves its name behind, unavailable.
            kept = ["--ttl", "3600", "--once"] if port else []
            name = host.split(".")[0]
            command = [self.binary, "service", "register", "--name", name, "--kind", "http", "--http-host", host,
                       "--backend", f"127.0.0.1:{port or free_port()}", *kept]
            producer = subprocess.Popen(command, env=self.env, stdout=self.log, stderr=self.log)
            self.wait_for(lambda name=name: self.stado("service", "resolve", name, "--raw"), name)
            if not kept:
                producer.send_signal(signal.SIGTERM)
            producer.wait()

    def stado(self, *args):
        return subprocess.run([self.binary, *args], env=self.env, check=True, capture_output=True, text=True).stdout


class Nginx(Proxy):
    name = "nginx"

    def __init__(self, *args):
        super().__init__(*args)
        self.http2 = free_port()  # this version speaks either HTTP/1 or HTTP/2 on a port

    @staticmethod
    def version():
        return first_version("nginx", "-v")

    def start(self):
        hosts = "".join(self.host(host, port) for host, port in self.hosts.items())
        temp = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;" if os.geteuid() == 0 else ""
        config = self.write("nginx.conf", f"""
daemon off; pid {self.folder}/pid; error_log stderr; {user} worker_processes auto;
events {{ worker_connections 8192; }}
http {{
  access_log off; {temp} client_max_body_size 0; client_header_timeout 30s; keepalive_requests 1000000;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{ {self.listen("default_server")} server_name _; return 404; }}
  {hosts}
}}
""")
        self.spawn("nginx", "-e", "stderr", "-p", str(self.folder), "-c", config)

    def listen(self, more=""):
        return (f"listen 127.0.0.1:{self.http} {more}; listen 127.0.0.1:{self.https} ssl http2 {more};"
                f" listen 127.0.0.1:{self.http2} http2 {more};"
                f" ssl_certificate {self.cert}; ssl_certificate_key {self.key};")

    def host(self, host, port):
        down = "" if port else "down"
        name = host.replace(".", "_")
        return f"""
  upstream {name} {{ server 127.0.0.1:{port or 9} {down}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    {self.listen()} server_name {host};
    location / {{
      proxy_pass http://{name}; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}"""


class Haproxy(Proxy):
    name = "HAProxy"

    @staticmethod
    def version():
        return first_version("haproxy", "-v")

    def start(self):
        rules = "".join(f"  use_backend {host} if {{ req.hdr(host),host_only,lower -m str {host} }}\n"
                        for host in self.hosts)
        backends = "".join(f"backend {host}\n  server one 127.0.0.1:{port or 9} {'' if port else 'disabled'}\n"
                           for host, port in self.hosts.items())
        config = self.write("haproxy.cfg", f"""
global
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  timeout http-request 30s
  option forwardfor
frontend all
  bind 127.0.0.1:{self.http}
  bind 127.0.0.1:{self.https} ssl crt {self.folder.parent}/pair.pem alpn h2,http/1.1
{rules}{backends}""")
        self.spawn("haproxy", "-db", "-f", config)


class Caddy(Proxy):
    name = "Caddy"

    @staticmethod
    def version():
        return first_version("caddy", "version")

    def start(self):
        sites = "".join(self.site(host, port) for host, port in self.hosts.items())
        config = self.write("Caddyfile", f"""
{{
  admin off
  auto_https off
  default_bind 127.0.0.1
  servers {{
    protocols h1 h2 h2c
    timeouts {{
      read_header 30s
    }}
  }}
}}
{sites}""")
        data = str(self.folder)
        env = {"HOME": data, "XDG_DATA_HOME": data, "XDG_CONFIG_HOME": data, "PATH": os.environ["PATH"]}
        self.spawn("caddy", "run", "--config", config, "--adapter", "caddyfile", env=env)

    def site(self, host, port):
        return (f"http://{host}:{self.http} {{\n  reverse_proxy 127.0.0.1:{port or 9}\n}}\n"
                f"https://{host}:{self.https} {{\n  tls {self.cert} {self.key}\n"
                f"  reverse_proxy 127.0.0.1:{port or 9}\n}}\n")


def first_version(*command):
    """What a program says of its version, without a distribution's suffix."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?", run.stdout + run.stderr)
    return found.group() if found else "?"


def installed():
    """The proxies that this machine has, ours first."""
    if not os.access(Stado.binary, os.X_OK):
        raise SystemExit(f"{Stado.binary} is missing: cargo build --release, or name one with --stado")
    peers = [(Nginx, "nginx"), (Haproxy, "haproxy"), (Caddy, "caddy")]
    return [Stado] + [peer for peer, program in peers if shutil.which(program)]
