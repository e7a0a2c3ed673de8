#!/usr/bin/env python3
"""echo.py PORT LOG PLANT - an upstream that sends the credential back in every way there is.

Writes a line "PATH KEY" to LOG for each request; says "ready" when it listens. /plant/... sends
PLANT instead, so that a search can be shown to find what was sent.
"""
import socketserver
import sys
import time

PORT, LOG, PLANT = int(sys.argv[1]), sys.argv[2], sys.argv[3]


class Echo(socketserver.StreamRequestHandler):
    def say(self, text):
        self.wfile.write(text.encode())
        self.wfile.flush()

    def whole(self, status, body, kind="application/json", more=""):
        self.say(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n{body}")

    def chunks(self, pieces, trailer=""):
        self.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for p in pieces:
            self.say(f"{len(p):x}\r\n{p}\r\n")
            time.sleep(0.001)
        self.say(f"0\r\n{trailer}\r\n")

    def handle(self):
        lines = []
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            lines.append(line)
        if not lines:
            return
        method, path, _ = lines[0].split(" ", 2)
        fields = {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:] if ": " in x)}
        key = fields.get("x-api-key", "") or fields.get("authorization", "").removeprefix("Bearer ")
        with open(LOG, "a") as log:
            log.write(f"{path} {key}\n")
        if path.startswith("/plant"):
            path, key = path.removeprefix("/plant"), PLANT
        how = path.strip("/").split("?")[0]
        text = "\\n".join(lines) + f" {key}"
        if how == "whole":
            self.whole("200 OK", f'{{"headers": "{text}"}}')
        elif how == "error":
            self.whole("401 Unauthorized", f'{{"error": {{"message": "Incorrect API key provided: {key}"}}}}')
        elif how == "head":
            self.whole("200 OK", "{}", more=f"X-Echo: {key}\r\nX-{key}: 1\r\nSet-Cookie: k={key}; Path=/\r\n")
        elif how == "redirect":
            self.whole("302 Found", "", more=f"Location: http://echo.agentbox/whole?key={key}\r\n")
        elif how == "phrase":
            self.whole(f"200 {key}", "{}")
        elif how == "early":
            self.say(f"HTTP/1.1 103 Early Hints\r\nLink: <{key}>\r\n\r\n")
            self.whole("200 OK", "{}")
        elif how == "pieces":
            self.chunks(list(f"data: {text}\n\n"))
        elif how == "events":
            self.chunks([f"data: {key[:9]}", f"{key[9:]}\n\n", f"data: {key}\n\n"])
        elif how == "trailer":
            self.chunks(["data: x\n\n"], f"X-Echo: {key}\r\n")
        elif how == "model":
            self.whole("200 OK", f'{{"model": "{key}", "usage": {{"input_tokens": 9, "output_tokens": 9}}}}')
        elif how == "length":
            self.say(f"HTTP/1.1 200 OK\r\nContent-Length: {key}\r\n\r\n{key}")
        elif how == "coding":
            self.say(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {key}\r\nContent-Encoding: {key}\r\n\r\n{key}")
        elif how == "garbage":
            self.say(f"{key} {key}\r\n\r\n")
        elif how == "chunk":
            self.say(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{key}\r\n{key}\r\n")
        elif how == "cut":
            self.say(f"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{key} {key}")
        else:
            self.whole("404 Not Found", "{}")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


with Server(("127.0.0.1", PORT), Echo) as server:
    print("ready", flush=True)
    server.serve_forever()
