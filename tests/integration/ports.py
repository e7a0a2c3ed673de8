"""Both ends of 38-ports.t: servers in a jail, and clients on the host that curl is not.

	ports.py serve                           in the jail
	ports.py parallel N URL [SOCKET]         N requests at once; how many answered as they should
	ports.py ws SOCKET PATH HOST | ws-tcp PORT     upgrade, bytes there and back
	ports.py half PORT                       sends, ends its side, reads what was counted
	ports.py echo PORT BYTES                 that many there and back
	ports.py upload SOCKET PATH BYTES        a body that flows, with its length and in chunks
	ports.py hold SOCKET PATH N              N upgraded connections, held open until stdin ends
"""

import asyncio
import hashlib
import json
import socket
import sys

ACCEPT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


# ---- in the jail ----


async def head_of(r):
    text = await r.readuntil(b"\r\n\r\n")
    first, *rest = text.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    return method, path, [x.split(": ", 1) for x in rest if x]


async def body_of(r, headers):
    h = {k.lower(): v for k, v in headers}
    if "content-length" in h:
        return await r.readexactly(int(h["content-length"]))
    body = bytearray()
    while h.get("transfer-encoding") == "chunked":
        n = int(await r.readline(), 16)
        body += (await r.readexactly(n + 2))[:-2]
        if n == 0:
            break
    return body


async def web(r, w):
    try:
        await answer(r, w)
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    w.close()


async def answer(r, w):
    method, path, headers = await head_of(r)
    what = path.split("?")[0]
    if what == "/early":
        w.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nstop")
        await w.drain()
        return
    body = await body_of(r, headers)
    if what == "/echo":
        text = json.dumps(
            {"method": method, "path": path, "headers": headers, "n": len(body),
             "sha": hashlib.sha256(body).hexdigest()}).encode()
        w.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(text) + (b"" if method == "HEAD" else text))
    elif what == "/chunked":
        w.write(b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Late: 1\r\n\r\n"
                b"4\r\none,\r\n3\r\ntwo\r\n0\r\nX-Trailer: 1\r\n\r\n")
    elif what == "/close":
        w.write(b"HTTP/1.0 200 OK\r\n\r\nuntil the end")
    elif what == "/short":
        w.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntoo short")
    elif what == "/empty":
        w.write(b"HTTP/1.1 204 No Content\r\nX-Empty: 1\r\n\r\n")
    elif what == "/garbage":
        w.write(b"\x00\x01 this is not HTTP\r\n\r\n" * 100)
    elif what == "/silent":
        pass
    elif what == "/headers":
        w.write(b"HTTP/1.1 200 OK\r\n")
        for i in range(10**6):
            w.write(b"X-%d: %s\r\n" % (i, b"y" * 1000))
            await w.drain()
    elif what == "/split":
        w.write(b"HTTP/1.1 200 OK\r\nX-A: b\x01c\r\nContent-Length: 0\r\n\r\n")
    elif what == "/101":
        w.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    elif what == "/moved":
        w.write(b"HTTP/1.1 302 Found\r\nLocation: http://localhost:3000/echo\r\n"
                b"Set-Cookie: a=b; Path=/\r\nSet-Cookie: c=d; Domain=localhost\r\n"
                b"Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\nAlt-Svc: h3=\":443\"\r\n"
                b"Clear-Site-Data: \"*\"\r\nContent-Length: 0\r\n\r\n")
    elif what == "/big":
        w.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(500):
            w.write(b"b" * 100000)
            await w.drain()
    elif what == "/events":
        w.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for i in range(1000):
            w.write(b"data: %d\n\n" % i)
            await w.drain()
            await asyncio.sleep(0.1)
    elif what == "/hang":
        await asyncio.sleep(1000)
    elif what == "/ws":
        key = dict((k.lower(), v) for k, v in headers)["sec-websocket-key"]
        import base64
        accept = base64.b64encode(hashlib.sha1((key + ACCEPT).encode()).digest())
        w.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\nhello" % accept)
        await echo(r, w)
        return
    else:
        w.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")
    await w.drain()


async def echo(r, w):
    while data := await r.read(65536):
        w.write(data)
        await w.drain()
    w.close()


async def count(r, w):
    n = 0
    while data := await r.read(65536):
        n += len(data)
    w.write(b"%d" % n)
    await w.drain()
    w.close()


async def serve():
    await asyncio.start_server(web, "127.0.0.1", 3000, limit=1 << 20, backlog=1024)
    await asyncio.start_server(count, "127.0.0.1", 3001)
    await asyncio.start_server(echo, "::1", 3002)
    full = socket.socket()
    full.bind(("127.0.0.1", 3003))
    full.listen(0)
    held = []
    for _ in range(3):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", 3003))
        held.append(s)
    print("serving", flush=True)
    await asyncio.sleep(10000)


# ---- on the host ----


def connect(socket_path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(socket_path)
    s.settimeout(60)
    return s


def read_head(s):
    text = b""
    while b"\r\n\r\n" not in text:
        data = s.recv(1)
        if not data:
            break
        text += data
    return text.decode("latin-1")


def ws(s, path, host, origin=None):
    extra = f"Origin: {origin}\r\n" if origin else ""
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\n"
              f"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{extra}"
              "Sec-WebSocket-Version: 13\r\n\r\n".encode())
    head = read_head(s)
    print(head.split("\r\n")[0])
    if " 101 " not in head:
        return
    print("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, end=" ")
    data = b"x" * 300000
    got = b""
    s.settimeout(30)
    import threading
    t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    t.start()
    while piece := s.recv(65536):
        got += piece
    t.join()
    print(got == b"hello" + data)


async def one(url, socket_path):
    reader, writer = (await asyncio.open_unix_connection(socket_path) if socket_path
                      else await asyncio.open_connection("127.0.0.1", int(url.split(":")[2].split("/")[0])))
    path = "/" + url.split("/", 3)[3]
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nConnection: close\r\n\r\n".encode())
    text = await reader.read(-1)
    writer.close()
    return text.startswith(b"HTTP/1.1 200") and b'"method": "GET"' in text


async def parallel(n, url, socket_path):
    done = await asyncio.gather(*(one(url, socket_path) for _ in range(n)), return_exceptions=True)
    print(sum(x is True for x in done))


def half(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(b"z" * 123456)
    s.shutdown(socket.SHUT_WR)
    print(s.recv(100).decode())


async def echo_bytes(port, n):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    data = bytes(range(256)) * (n // 256)

    async def send():
        w.write(data)
        await w.drain()
        w.write_eof()

    sending = asyncio.create_task(send())
    got = await r.read(-1)
    await sending
    print(got == data)


def upload(socket_path, path, n):
    piece = b"u" * 10000
    sha = hashlib.sha256(piece * (n // 10000)).hexdigest()
    for chunked in False, True:
        s = connect(socket_path)
        how = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {n}"
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{how}\r\n\r\n".encode())
        for _ in range(n // 10000):
            s.sendall(b"2710\r\n" + piece + b"\r\n" if chunked else piece)
        if chunked:
            s.sendall(b"0\r\n\r\n")
        text = b""
        while data := s.recv(65536):
            text += data
        print(f'"n": {n}'.encode() in text and sha.encode() in text, end=" ")
    print()


def hold(socket_path, path, n):
    opened, last = [], ""
    for _ in range(n):
        s = connect(socket_path)
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                  "Upgrade: agentbox-tcp\r\nContent-Length: 0\r\n\r\n".encode())
        last = read_head(s).split("\r\n")[0]
        if " 101 " not in last:
            break
        opened.append(s)
    print(len(opened), last, flush=True)
    sys.stdin.read()
    ended = 0
    for s in opened:
        s.settimeout(20)
        try:
            ended += s.recv(1) == b""
        except ConnectionError:
            ended += 1
    print("ended", ended, flush=True)


def main():
    what, *a = sys.argv[1:]
    if what == "serve":
        asyncio.run(serve())
    elif what == "parallel":
        asyncio.run(parallel(int(a[0]), a[1], a[2] if len(a) > 2 else None))
    elif what == "ws":
        ws(connect(a[0]), a[1], a[2], a[3] if len(a) > 3 else None)
    elif what == "ws-tcp":
        ws(socket.create_connection(("127.0.0.1", int(a[0]))), "/ws", "localhost")
    elif what == "half":
        half(int(a[0]))
    elif what == "echo":
        asyncio.run(echo_bytes(int(a[0]), int(a[1])))
    elif what == "upload":
        upload(a[0], a[1], int(a[2]))
    elif what == "hold":
        hold(a[0], a[1], int(a[2]))


main()
