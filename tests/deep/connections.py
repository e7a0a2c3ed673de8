"""connections.py SOCKET SUPERVISOR-PID LISTENER-PID TLS-PORT CERTIFICATE KEY-FILE: thousands of clients at once.

Prints one line for each promise that was not kept; figures go to stderr.  Two thousand clients follow runs
while ten thousand idle ones come and go, heads and bodies trickle, clients reset, stop half-way, or send
too much; somebody asks for /healthz and posts runs all the while.  Then the same over TLS."""
import json
import multiprocessing
import os
import resource
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

SOCKET, SUPERVISOR, LISTENER, PORT, CERT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
KEY = open(sys.argv[6], encoding="ascii").read().strip()
RUNS, FOLLOWERS, IDLE, TICKS, PACE = 20, 2000, 10000, 60, 0.25
SILENT = 4500
SANITIZED = os.environ.get("SANITIZED") == "1"
# Generous: two loaded processors, and Python on the other side.
P99_S, TLS_P99_S = (4, 8) if SANITIZED else (1, 2)


def wrong(text):
    print(text[:300], flush=True)


def note(text):
    print("# " + text, file=sys.stderr, flush=True)


# ---- clients ----


def unix():
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(30)
    c.connect(SOCKET)
    return c


def tcp():
    return socket.create_connection(("127.0.0.1", PORT), 30)


CONTEXT = ssl.create_default_context(cafile=CERT)


def tls():
    return CONTEXT.wrap_socket(tcp(), server_hostname="127.0.0.1")


def head(method, path, *lines, body=b"", version="1.1"):
    length = [f"Content-Length: {len(body)}"] if method == "POST" else []
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *lines, *length, "", ""]).encode() + body


def whole(c):
    got = b""
    while piece := c.recv(65536):
        got += piece
    return got


def ask(dial, method, path, *lines, body=b""):
    """The status and the body; 0 where there is no answer."""
    try:
        with dial() as c:
            c.sendall(head(method, path, "Connection: close", *lines, body=body))
            got = whole(c)
    except OSError as e:
        return 0, str(e).encode()
    front, _, rest = got.partition(b"\r\n\r\n")
    return int(front[9:12] or 0), rest


def run_body(n, script):
    return json.dumps({"session": {"userId": f"u{n % 5}", "goalId": f"g{n}"}, "harness": "shell", "prompt": script}).encode()


def submit(n, script):
    status, text = ask(unix, "POST", "/v1/runs", body=run_body(n, script))
    if status != 202:
        wrong(f"not accepted: {status} {text}")
        sys.exit(1)
    return json.loads(text)["runId"]


# ---- what it costs ----


def kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def settles(what, pid, most, patience=30):
    end = time.monotonic() + patience
    while fds(pid) > most and time.monotonic() < end:
        time.sleep(0.1)
    if fds(pid) > most:
        wrong(f"{what}: {fds(pid)} descriptors, {most} before")


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))] if values else float("inf")


class Probe(threading.Thread):
    """Asks all the while, each time on a connection of its own."""

    def __init__(self, dial, *lines):
        super().__init__()
        self.dial, self.lines, self.over = dial, lines, False
        self.health, self.posts, self.bad = [], [], []

    def once(self, into, *request, want, body=b""):
        begun = time.monotonic()
        status, text = ask(self.dial, *request, *self.lines, body=body)
        into.append(time.monotonic() - begun)
        if status != want:
            self.bad.append(f"{request[:2]}: {status} {text[:200]!r}")

    def run(self):
        n = 0
        while not self.over:
            self.once(self.health, "GET", "/healthz", want=200)
            if n % 10 == 0:
                self.once(self.posts, "POST", "/v1/runs", want=202, body=run_body(1000 + n % 40, "exit 0"))
            n += 1
            time.sleep(0.02)

    def told(self, what, most):
        self.over = True
        self.join()
        for name, values in (("GET /healthz", self.health), ("POST /v1/runs", self.posts)):
            p99 = percentile(values, 0.99)
            note(f"{what}: {name} x{len(values)}: p50 {percentile(values, 0.5) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, max {max(values) * 1000:.1f} ms")
            if p99 > most:
                wrong(f"{what}: p99 of {name} is {p99:.2f} s")
        if self.bad:
            wrong(f"{what}: {len(self.bad)} requests not served: {self.bad[:2]}")
        if len(self.posts) < 5 or len(self.health) < 50:
            wrong(f"{what}: too little was asked: {len(self.health)}, {len(self.posts)}")


# ---- followers ----


def follow(runs, total, dial, lines, out):
    """Follows the runs to their ends; sends what is wrong, and one word when all are through to the log."""
    poll = select.epoll()
    clients = {}
    for i in range(total):
        c = dial()
        c.sendall(head("GET", f"/v1/runs/{runs[i % len(runs)]}/events?follow=1", "Accept: text/event-stream", *lines, version="1.0"))  # no chunks
        c.setblocking(False)
        clients[c.fileno()] = [c, b"", 0, False]
        poll.register(c.fileno(), select.EPOLLIN)
    out.put("on")
    bad, events, end = [], 0, time.monotonic() + 150
    while clients and time.monotonic() < end:
        for fd, _ in poll.poll(1):
            x = clients[fd]
            piece = None
            try:
                while piece := x[0].recv(262144):
                    x[1] += piece
            except (BlockingIOError, ssl.SSLWantReadError):
                pass
            except OSError as e:
                bad.append(f"a follower is cut: {e}")
                piece = b""
            *frames, x[1] = x[1].split(b"\n\n")
            for f in frames:
                at = f.find(b"id: ")
                if at < 0:
                    continue
                events += 1
                seq = int(f[at + 4 : f.index(b"\n", at)])
                if seq != x[2] + 1:
                    bad.append(f"event {seq} after {x[2]}")
                x[2], x[3] = seq, x[3] or b"event: run.done" in f
            if piece == b"":
                if not x[3]:
                    bad.append(f"a follower ends without run.done, after {x[2]}")
                poll.unregister(fd)
                x[0].close()
                del clients[fd]
    if clients:
        bad.append(f"{len(clients)} followers do not come to an end")
    out.put((events, bad))


# ---- the crowd ----


def trickle(clients, data, end, pause):
    """A byte of `data` on each, round after round; who is cut is gone."""
    at = 0
    while time.monotonic() < end:
        for c in list(clients):
            try:
                c.send(data[at % len(data) : at % len(data) + 1])
            except OSError:
                clients.remove(c)
        at += 1
        time.sleep(pause)


def reset(c):
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


def quietly(call, *args):
    try:
        return call(*args)
    except OSError:
        return None


def flood(seconds, out):
    """Everything that a careless or hostile client of the socket does, at once."""
    end = time.monotonic() + seconds
    post = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n"
    heads, bodies, others = [unix() for _ in range(300)], [], []
    for _ in range(300):
        bodies.append(unix())
        bodies[-1].sendall(post + b"{")
    for c in heads + bodies:
        c.setblocking(False)
    threads = [
        threading.Thread(target=trickle, args=(heads, b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 1000, end, 0.3)),
        threading.Thread(target=trickle, args=(bodies, b" " * 100, end, 0.3)),
    ]
    for t in threads:
        t.start()
    for i in range(200):  # half-open: one direction closed in the middle, or nobody reads the answer
        c = unix()
        others.append(c)
        c.sendall(post[: i % len(post)] if i % 2 else head("GET", "/v1/runs"))
        quietly(c.shutdown, socket.SHUT_WR)
    for i in range(150):  # too large, in head or body, and without an end
        c = unix()
        others.append(c)
        c.settimeout(0.05)
        quietly(c.sendall, b"GET / HTTP/1.1\r\nX: " + b"a" * (100 << 10) if i % 3 else
                b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n" + b"x" * (1 << 20))
    idle, alive = [], 0
    for i in range(IDLE):
        c = quietly(unix)
        if c:
            idle.append(c)
        if i % 20 == 0:  # who comes and goes
            c = unix()
            quietly(c.sendall, post[: i % len(post)])
            reset(c)
    out.put("full")
    for t in threads:
        t.join()
    poll = select.poll()
    for c in idle:
        poll.register(c, select.POLLIN)
    alive = len(idle) - len(poll.poll(0))
    out.put((len(idle), alive))
    time.sleep(1)


def tls_flood(seconds, out):
    end = time.monotonic() + seconds
    hello = CONTEXT.wrap_bio(a := ssl.MemoryBIO(), b := ssl.MemoryBIO(), server_hostname="127.0.0.1")
    try:
        hello.do_handshake()
    except ssl.SSLWantReadError:
        pass
    first, held = b.read(), [a]
    slow = [tcp() for _ in range(100)]
    silent = [tls() for _ in range(100)]  # a handshake, and no request
    body = [tls() for _ in range(100)]  # no key, and a body that does not end
    for c in body:
        c.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n{")
    nothing = [tcp() for _ in range(SILENT)]  # no handshake: more than there are places
    held += silent + body + nothing
    for c in slow:
        c.setblocking(False)
    t = threading.Thread(target=trickle, args=(slow, first, end, 0.2))
    t.start()
    for i in range(100):  # gone in the middle of a handshake
        c = tcp()
        c.sendall(first[: i * len(first) // 100])
        reset(c)
    bad = []
    for i in range(30):  # a record for each byte
        c = tls()
        for byte in head("GET", "/healthz", "Connection: close"):
            c.sendall(bytes([byte]))
        if not whole(c).startswith(b"HTTP/1.1 200"):
            bad.append("a request in records of one byte is not answered")
        c.close()
    for version, letter in (("-tls1_2", "R"), ("-tls1_3", "K")):  # renegotiation; hundreds of new keys
        with subprocess.Popen(["openssl", "s_client", "-quiet", version, "-connect", f"127.0.0.1:{PORT}"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            for _ in range(100):
                if quietly(p.stdin.write, (letter + "\n").encode()) is None or quietly(p.stdin.flush):
                    break
            time.sleep(0.5)
            p.kill()
    out.put("full")
    t.join()
    out.put(bad)
    time.sleep(0.5)


# ---- all of it ----


def child(target, *args):
    out = multiprocessing.Queue()
    p = multiprocessing.Process(target=target, args=(*args, out))
    p.start()
    return p, out


def cost(what, pid, dial, n, line):
    """KiB that a connection makes the process hold."""
    before, held = kib(pid), []
    for _ in range(n):
        held.append(dial())
        held[-1].sendall(line)
        if line:
            held[-1].recv(64)
    time.sleep(0.3)
    each = (kib(pid) - before) / n
    note(f"{what}: {each:.1f} KiB each")
    for c in held:
        c.close()
    return each


def control_socket():
    fds_before, kib_before = fds(SUPERVISOR), kib(SUPERVISOR)
    idle = cost("an idle connection", SUPERVISOR, unix, 500, b"")
    settles("idle ones", SUPERVISOR, fds_before)
    script = f"i=0; while [ $i -lt {TICKS} ]; do echo tick $i; i=$((i+1)); sleep {PACE}; done"
    runs = [submit(i, script) for i in range(RUNS)]
    kib_runs = kib(SUPERVISOR)
    followers = child(follow, runs, FOLLOWERS, unix, [])
    if followers[1].get(timeout=60) != "on":
        wrong("followers do not begin")
    each = (kib(SUPERVISOR) - kib_runs) / FOLLOWERS
    note(f"a follower: {each:.1f} KiB each")
    probe = Probe(unix)
    probe.start()
    crowd = child(flood, TICKS * PACE * 0.8)
    crowd[1].get(timeout=100)
    note(f"{FOLLOWERS} followers and the crowd: supervisor {kib(SUPERVISOR) >> 10} MiB, {fds(SUPERVISOR)} descriptors")
    if kib(SUPERVISOR) > (1 << 20):
        wrong(f"the supervisor has {kib(SUPERVISOR) >> 10} MiB")
    opened, alive = crowd[1].get(timeout=100)
    note(f"{opened} idle connections opened, {alive} still open")
    if opened < IDLE * 0.99:
        wrong(f"only {opened} idle connections could be opened")
    events, bad = followers[1].get(timeout=200)
    probe.told("control socket", P99_S)
    note(f"{events} events followed")
    if bad:
        wrong(f"{len(bad)} followers have holes: {bad[:3]}")
    if events < FOLLOWERS * TICKS:
        wrong(f"{events} events, {FOLLOWERS * TICKS} ticks were due")
    for p in (followers[0], crowd[0]):
        p.join()
    settles("the supervisor", SUPERVISOR, fds_before + 60)  # logs of sessions
    time.sleep(1)
    note(f"the supervisor: {kib_before >> 10} MiB before, {kib(SUPERVISOR) >> 10} MiB afterwards")
    if not SANITIZED and (idle > 8 or each > 24):
        wrong(f"a connection costs {idle:.1f} KiB, a follower {each:.1f} KiB")
    if not SANITIZED and kib(SUPERVISOR) > kib_before + (64 << 10):
        wrong("the supervisor keeps what it needed for the crowd")


def over_tls():
    fds_before, listener_before = fds(SUPERVISOR), fds(LISTENER)
    cost("a client of TLS, in the listener", LISTENER, tls, 200, b"")
    settles("the listener", LISTENER, listener_before)
    auth = f"Authorization: Bearer {KEY}"
    script = "i=0; while [ $i -lt 20 ]; do echo tick $i; i=$((i+1)); sleep 0.3; done"
    status, text = ask(tls, "POST", "/v1/runs", auth, body=run_body(1, script))
    if status != 202:
        wrong(f"over TLS: {status} {text}")
        return
    followers = child(follow, [json.loads(text)["runId"]], 200, tls, [auth])
    followers[1].get(timeout=60)
    probe, beside = Probe(tls, auth), Probe(unix)
    probe.start()
    beside.start()
    crowd = child(tls_flood, 6)
    crowd[1].get(timeout=60)
    note(f"with the crowd the listener has {kib(LISTENER) >> 10} MiB, {fds(LISTENER)} descriptors")
    for text in crowd[1].get(timeout=60):
        wrong(text)
    events, bad = followers[1].get(timeout=100)
    probe.told("TLS", TLS_P99_S)
    beside.told("the control socket beside TLS", P99_S)
    if bad or events < 200 * 20:
        wrong(f"followers over TLS: {events} events, {bad[:3]}")
    for p in (followers[0], crowd[0]):
        p.join()
    settles("the listener", LISTENER, listener_before + 2)
    settles("the supervisor", SUPERVISOR, fds_before + 60)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most < IDLE + 2000:
        wrong(f"{most} descriptors are too few for {IDLE} connections: ulimit -Hn")
        return
    begun = time.monotonic()
    control_socket()
    note(f"{time.monotonic() - begun:.0f} s")
    over_tls()
    note(f"{time.monotonic() - begun:.0f} s in all")


main()
