"""client.py - what the clients of power.py and images.py share.  argv[1] is the daemon's socket."""

import http.client
import json
import socket
import sys
import time


class Client(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("x")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(method, path, body=None):
    client = Client(sys.argv[1])
    client.request(method, path, body and json.dumps(body), {"Accept": "application/x-ndjson"} if "/events" in path else {})
    return client, client.getresponse()


def get(path):
    client, answer = ask("GET", path)
    text = answer.read().decode()
    client.close()
    if answer.status != 200:
        sys.exit(f"GET {path}: {answer.status} {text}")
    return text


def say(*words):
    # one write a line: threads do not mix them
    sys.stdout.write(" ".join(map(str, (*words, int(time.monotonic() * 1000)))) + "\n")
    sys.stdout.flush()
