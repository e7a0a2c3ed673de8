"""The internet of an egress test: a resolver that counts, and servers of static files by host name.

usage: internet.py ROOT NAMES LOG

ROOT/HOST/...   files of https://HOST/... and http://HOST/...; a directory is its index.json or
                index.html; below a directory NAME.git, what `git http-backend` says
NAMES           lines "NAME ADDRESS[,ADDRESS...]", read anew for each query; `*` is every other name
ROOT/HOST.login what Authorization must be; while there is ROOT/HOST.waits nothing is answered
LOG             a line an event: "dns NAME", "http HOST METHOD PATH", "tcp PORT"

Certificates are ROOT/../cert.pem and key.pem.  Listens on all addresses: 53 (UDP), 80, 443, and
7 (TCP, which echoes).
"""
import http.server
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

ROOT, NAMES, LOG = sys.argv[1:4]
CERT = os.path.join(os.path.dirname(ROOT), "cert.pem")
KEY = os.path.join(os.path.dirname(ROOT), "key.pem")


def say(line):
    with open(LOG, "a", encoding="ascii") as f:
        f.write(line + "\n")


def addresses(name):
    table = dict(line.split() for line in open(NAMES, encoding="ascii") if line.strip())
    text = table.get(name, table.get("*", ""))
    # "A>B" is A for the first query and B for all after it
    if ">" in text:
        seen = open(LOG, encoding="ascii").read().count("dns %s\n" % name)
        text = text.split(">")[0 if seen <= 1 else 1]
    return [a for a in text.split(",") if a]


def answer(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    name, kind = ".".join(labels).lower(), struct.unpack(">H", query[at + 1:at + 3])[0]
    if kind == 1:
        say("dns " + name)
    found = addresses(name)
    family, size = (socket.AF_INET6, 16) if kind == 28 else (socket.AF_INET, 4)
    mine = [a for a in found if (":" in a) == (kind == 28)] if kind in (1, 28) else []
    records = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, size) +
                       socket.inet_pton(family, a) for a in mine)
    head = query[:2] + struct.pack(">HHHHH", 0x8180 if found else 0x8183, 1, len(mine), 0, 0)
    return head + query[12:at + 5] + records


def resolver():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", 53))
    while True:
        query, who = s.recvfrom(4096)
        s.sendto(answer(query), who)


class Files(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = (self.headers.get("Host") or "").split(":")[0]
        path = self.path.split("?")[0]
        say("http %s %s %s" % (host, self.command, path))
        if not self.welcome(host):
            return None
        if path.endswith(("/info/refs", "/git-upload-pack")):
            return self.git(host, path)
        if path == "/slow":
            return self.slow()
        if path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        file = os.path.realpath(os.path.join(ROOT, host, path.lstrip("/")))
        for index in ("index.json", "index.html"):
            if os.path.isdir(file) and os.path.exists(os.path.join(file, index)):
                file = os.path.join(file, index)
        if not file.startswith(ROOT + "/") or not os.path.isfile(file):
            body, status = b"not here\n", 404
        else:
            body, status = open(file, "rb").read(), 200
        kinds = {".json": "application/json", ".html": "text/html"}
        self.send_response(status)
        self.send_header("Content-Type",
                         kinds.get(os.path.splitext(file)[1], "application/octet-stream"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        return None

    do_HEAD = do_GET
    do_POST = do_GET

    def welcome(self, host):
        login = os.path.join(ROOT, host + ".login")
        while os.path.exists(os.path.join(ROOT, host + ".waits")):
            time.sleep(0.05)
        if not os.path.exists(login):
            return True
        with open(login, encoding="ascii") as f:
            if self.headers.get("Authorization") == f.read().strip():
                return True
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def git(self, host, path):
        length = int(self.headers.get("Content-Length") or 0)
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "")
        body = self.chunks() if chunked else self.rfile.read(length)
        env = {"GIT_PROJECT_ROOT": os.path.join(ROOT, host), "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path, "REQUEST_METHOD": self.command, "PATH": os.environ["PATH"],
               "QUERY_STRING": self.path.partition("?")[2], "CONTENT_LENGTH": str(len(body)),
               "CONTENT_TYPE": self.headers.get("Content-Type") or "", "HOME": "/nonexistent",
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
               "GIT_CONFIG_VALUE_0": "*", "REMOTE_ADDR": "198.41.0.1"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, check=False,
                             stdout=subprocess.PIPE).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")]
        status = [value for name, value in fields if name == "Status"]
        self.send_response(int(status[0].split()[0]) if status else 200)
        for name, value in fields:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def chunks(self):
        body = b""
        while True:
            n = int(self.rfile.readline(), 16)
            body += self.rfile.read(n)
            self.rfile.readline()
            if n == 0:
                return body

    def slow(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(300):
            self.wfile.write(b"5\r\nline\n\r\n")
            self.wfile.flush()
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port, context=None):
        self.context = context
        super().__init__(("0.0.0.0", port), Files)

    def finish_request(self, request, client_address):
        try:
            if self.context:
                request = self.context.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
        except (OSError, ssl.SSLError):
            pass


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        say("tcp 7")
        while True:
            data = self.request.recv(65536)
            if not data:
                return
            self.request.sendall(data)


class Echoes(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERT, KEY)
    open(LOG, "a", encoding="ascii").close()
    for serve in (resolver, Server(80).serve_forever, Server(443, context).serve_forever,
                  Echoes(("0.0.0.0", 7), Echo).serve_forever):
        threading.Thread(target=serve, daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


main()
