"""A receiver of webhooks: receiver.py PORT DIR [CERT KEY]

Every request is a line of JSON in DIR/got: what came, and whether its signature holds.  How it
answers is the word in DIR/mode, read anew each time: ok, STATUS, later (429, Retry-After: 1), hang,
slow, huge, endless, redirect, drop; and `STATUS@TEXT`, only where TEXT is in the body, else ok.
With DIR/approve, a command in it is run for each permission.asked before the answer.
"""
import base64, hashlib, hmac, http.server, json, os, socket, ssl, subprocess, sys, threading, time

port, where = int(sys.argv[1]), sys.argv[2]
KEY = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
lock = threading.Lock()


def word(name):
    try:
        with open(os.path.join(where, name)) as f:
            return f.read().strip()
    except FileNotFoundError:
        return ""


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def signed(self, body):
        h = self.headers
        text = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + body
        want = "v1," + base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
        return want in h["webhook-signature"].split() and abs(time.time() - int(h["webhook-timestamp"])) < 60

    def answer(self, status, *headers, body=b"ok"):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.note({"method": "GET", "path": self.path})
        self.answer(200)

    def note(self, what):
        with lock, open(os.path.join(where, "got"), "a") as f:
            f.write(json.dumps(what) + "\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode = word("mode") or "ok"
        status, _, only = mode.partition("@")
        if only and only.encode() not in body:
            mode = status = "ok"
        told = json.loads(body)
        self.note({"at": time.time(), "path": self.path, "mode": mode, "id": self.headers["webhook-id"],
                   "agent": self.headers["user-agent"], "signed": self.signed(body), "bytes": len(body), "body": told})
        if told["type"] == "permission.asked" and word("approve"):
            subprocess.run(["sh", "-c", word("approve")], env={**os.environ, "RUN": told["event"]["run"],
                           "ID": told["event"]["permissionId"]}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if status.isdigit():
            self.answer(int(status))
        elif mode == "later":
            self.answer(429, ("Retry-After", "1"))
        elif mode == "hang":
            time.sleep(30)
        elif mode == "slow":
            time.sleep(1)
            self.answer(200)
        elif mode == "huge":
            self.answer(200, body=b"x" * (8 << 20))
        elif mode == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                pass
            self.note({"cut": True})
        elif mode == "redirect":
            self.answer(302, ("Location", f"http://127.0.0.1:{port}/elsewhere"))
        elif mode == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.answer(200)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", port), Receiver)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
