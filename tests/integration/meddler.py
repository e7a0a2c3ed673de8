"""Between abctl and the daemon: meddler.py SOCKET DAEMON_SOCKET DIR

Each request's first line and its Range are a line in DIR/asked.  The word in DIR/mode, read anew for
each, says what becomes of the bytes of an artifact: pass, cut (the connection ends after 100,000 bytes
of the answer), flip (its last byte is another one), ignore (the request goes on without its Range).
With DIR/list, that is the answer to a request for the list.
"""
import os, re, socket, sys, threading

own, daemon, where = sys.argv[1:4]


def word(name):
    try:
        with open(os.path.join(where, name)) as f:
            return f.read().strip()
    except FileNotFoundError:
        return ""


def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        more = client.recv(65536)
        if not more:
            return
        head += more
    first = head.split(b"\r\n")[0].decode()
    of = re.search(rb"\r\n(Range: [^\r]*)", head)
    with open(os.path.join(where, "asked"), "a") as f:
        f.write(first + " " + (of.group(1).decode() if of else "all") + "\n")
    is_bytes = re.match(r"GET \S+/artifacts/", first) is not None
    mode = word("mode") if is_bytes else "pass"
    if re.match(r"GET \S+/artifacts ", first) and word("list"):
        text = word("list").encode()
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        return
    if mode == "ignore":
        head = re.sub(rb"\r\nRange: [^\r]*", b"", head)
    up = socket.socket(socket.AF_UNIX)
    up.connect(daemon)
    up.sendall(head)
    answer = b""
    while True:
        more = up.recv(65536)
        if not more or (mode == "cut" and len(answer) > 100000):
            break
        answer += more
        if mode in ("pass", "ignore", ""):
            client.sendall(more)
    if mode == "cut":
        client.sendall(answer[:100000])
    elif mode == "flip":
        client.sendall(answer[:-1] + bytes([answer[-1] ^ 1]))
    up.close()


def one(client):
    try:
        serve(client)
    except OSError:
        pass
    finally:
        client.close()


listener = socket.socket(socket.AF_UNIX)
listener.bind(own)
listener.listen(16)
while True:
    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
