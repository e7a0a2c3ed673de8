"""hostile_client.py SOCKET PART: a hostile or careless client of the control socket.

Prints one line for each promise that was not kept, nothing when all is well.  Used by 72-hostile-client.t."""
import json
import re
import socket
import struct
import sys
import threading
import time

HELLO = {"session": {"userId": "h", "goalId": "g"}, "harness": "hello", "prompt": "x"}
ODD = [None, True, 0, -1, 1.5, 1e308, 2**63, -(2**64), "", "a" * 100000, "\u0000", "\x7f", "\n", "\ud800",
       "../..", "/", [], [1], {}, {"a": 1}, "{{x}}", "%s%n"]
FINE = (101, 200, 202, 204, 400, 403, 404, 409, 413, 422, 426)


def connect(patience=20):
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(patience)
    c.connect(sys.argv[1])
    return c


def answer(c, whole=True):
    """What comes until the end, or until one answer is complete."""
    got = b""
    try:
        while True:
            piece = c.recv(65536)
            if not piece:
                break
            got += piece
            head, end, body = got.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if end and not whole and (b" 101 " in head[:16] or (length and len(body) >= int(length[1]))):
                break
    except OSError:
        pass
    return got


def raw(data, whole=True, patience=20):
    c = connect(patience)
    try:
        c.sendall(data)
    except OSError:
        pass  # refused before all was sent: the answer may be there nevertheless
    got = answer(c, whole)
    c.close()
    return got


def codes(got):
    return [int(n) for n in re.findall(rb"HTTP/1\.[01] (\d{3})", got)]


def request(method, path, body=None, headers="", whole=True):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    length = "" if body is None else f"Content-Length: {len(data)}\r\n"
    close = "" if "Upgrade" in headers else "Connection: close\r\n"
    return raw(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{close}{headers}{length}\r\n".encode() + data, whole)


def value(got):
    return json.loads(got.split(b"\r\n\r\n", 1)[1])


def expect(what, got, allowed):
    seen = codes(got)
    if not seen or seen[-1] not in allowed:
        print(f"{what[:200]}: {seen} {got[-200:]!r}")


def problem(what, got):
    """An error is a JSON object, whoever found it."""
    head, _, body = got.partition(b"\r\n\r\n")
    try:
        told = json.loads(body)
        good = b"application/problem+json" in head and told["detail"] and \
            told["type"].startswith("urn:agentbox:error:") and [told["status"]] == codes(got)
    except (ValueError, KeyError):
        good = False
    if not good:
        print(f"{what[:200]}: no problem document: {got[-300:]!r}")


UPGRADE = "Connection: Upgrade\r\nUpgrade: agentbox-stdio\r\n"


def upgrade(path, body):
    """A connection after 101, and what has come after the head."""
    data = json.dumps(body).encode()
    c = connect()
    c.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{UPGRADE}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    got = answer(c, whole=False)
    if codes(got) != [101]:
        print(f"upgrade of {path}: {got!r}")
    return c, got.partition(b"\r\n\r\n")[2]


def part_http():
    post = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    body = json.dumps(HELLO).encode()
    for data, allowed in [
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", [400]),
        (b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n", [505]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505]),
        (b"\x16\x03\x01\x02\0\x01", [400]),
        (b"NONSENSE\r\n\r\n", [400]),
        (b"GET /healthz HTTP/1.1\nHost: x\n\n", [400]),
        (b"GET /heal\0thz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [400]),
        (b"A" * 3000 + b" /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [400]),
        (b"BREW /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [405]),
        (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", [414]),
        (get + b"X: " + b"a" * 100000 + b"\r\n\r\n", [431]),
        (get + b"X: a\r\n" * 200 + b"\r\n", [431]),
        (get + b"X : a\r\n\r\n", [400]),
        (get + b"X: a\r\n b\r\n\r\n", [400]),
        (get + b"Expect: wonders\r\n\r\n", [501]),
        (post + b"Transfer-Encoding: gzip\r\n\r\n", [501]),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", [404]),
        (post + b"Content-Length: -1\r\n\r\n{}", [400]),
        (post + b"Content-Length: 2x\r\n\r\n{}", [400]),
        (post + b"Content-Length: 99999999999999999999999\r\n\r\n{}", [400]),
        (post + b"Content-Length: 999999999999999\r\n\r\n{}", [413]),
        (post + b"Content-Length: 3\r\nContent-Length: 100\r\n\r\n{}x", [400]),
        (post + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(body), len(body) + 9) + body, [400]),
        (post + b"content-length: %d\r\nContent-Length: %d\r\n\r\n" % (len(body), len(body)) + body, [400]),
        (chunked[:-2] + b"Content-Length: 2\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n", [400]),
        (chunked + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n", [202]),
        (chunked + b"2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n", [400]),
        (chunked + b"zz\r\n{}\r\n0\r\n\r\n", [400]),
        (chunked + b"-2\r\n{}\r\n0\r\n\r\n", [400]),
        (chunked + b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n", [400]),
        (post + b"\r\n", [400]),
        (get + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello", [413]),
    ]:
        got = raw(data)
        expect(repr(data[:120]), got, allowed)
        if codes(got)[-1:] >= [400]:
            problem(repr(data[:120]), got)
    for cut in (b"GET /hea", get, post + b"Content-Length: 9\r\n\r\n{", chunked + b"9\r\n{"):
        with connect() as c:
            c.sendall(cut)
            c.shutdown(socket.SHUT_WR)
            got = answer(c)
        expect(f"cut short: {cut!r}", got, [400])
        problem(f"cut short: {cut!r}", got)
    got = codes(raw((get + b"\r\n") * 1000 + get + b"Connection: close\r\n\r\n"))
    if got != [200] * 1001:
        print(f"1001 requests at once: {len(got)} answers, {set(got)}")


def part_query():
    made = value(request("POST", "/v1/sessions", {"userId": "h", "goalId": "g"}))["sessionId"]
    run = value(request("POST", "/v1/runs?wait=1", HELLO))["runId"]
    for path in ["/v1/runs?stauts=failed", "/v1/runs?user=%zz", "/v1/runs?user=%00", "/v1/runs?user",
                 "/v1/runs?limit=1&limit=2", "/v1/runs?limit=%205", "/v1/runs?limit=+5", "/v1/runs?limit=0",
                 "/v1/runs?limit=1e3", "/v1/runs?cursor=x", "/v1/runs?cursor=" + made, "/v1/runs?status=",
                 "/healthz?a=1", "/v1/runs/%", "/v1/runs/%00", f"/v1/runs/{run}/events?from=-1",
                 f"/v1/runs/{run}/events?from=18446744073709551616", f"/v1/runs/{run}/events?follow=2"]:
        expect(path, request("GET", path), [400])
    for path in ["/v1/runs?limit=5&user=h", "/v1/runs?", "/v1/runs?user=a%20b", f"/v1/runs/{run}/events?from=0"]:
        expect(path, request("GET", path), [200])
    for path in ["/v1/runs/" + made, "/v1/sessions/" + run, "/v1/runs/..", "/v1/runs/" + "a" * 20000,
                 "//v1/runs", "/v1/runs/", f"/v1/runs/{run}/artifacts/out/../out/hello.txt",
                 f"/v1/runs/{run}/artifacts//etc/passwd", f"/v1/runs/{run}/artifacts/%ff"]:
        expect(path, request("GET", path), [404])
    for last, seen in [("18446744073709551615", 0), ("9223372036854775807", 0), ("0", 4)]:
        got = request("GET", f"/v1/runs/{run}/events", headers=f"Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n")
        if codes(got) != [200] or (got.count(b"\nid: ") == 0) != (seen == 0):
            print(f"Last-Event-ID {last}: {got[:300]!r}")
    for last in ["-1", "x", "1.5", "99999999999999999999", "0x10", "1,2"]:
        expect(f"Last-Event-ID {last}", request("GET", f"/v1/runs/{run}/events", headers=f"Last-Event-ID: {last}\r\n"), [400])


def part_bodies():
    made = value(request("POST", "/v1/sessions", {"userId": "h", "goalId": "g"}))["sessionId"]
    for odd in ODD:
        for key in [*HELLO, "params", "priority", "nosuch"]:
            expect(f"run {key}={odd!r}", request("POST", "/v1/runs", {**HELLO, key: odd}), FINE)
        for key in ("userId", "goalId"):
            pair = {"userId": "h", "goalId": "g", key: odd}
            expect(f"run session.{key}={odd!r}", request("POST", "/v1/runs", {**HELLO, "session": pair}), FINE)
            expect(f"session {key}={odd!r}", request("POST", "/v1/sessions", pair), FINE)
        for key in ("argv", "env", "cwd", "tty", "rows", "policy", "user", "binds", "limits"):
            body = {"argv": ["true"], key: odd}
            expect(f"jail {key}={odd!r}", request("POST", "/v1/jails", body, UPGRADE, whole=False), FINE)
            expect(f"exec {key}={odd!r}", request("POST", f"/v1/sessions/{made}/exec", body, UPGRADE, whole=False), FINE)
    for body in [b"null", b"[]", b"{", b'{"a":1,}', b"\xff\xfe", b"\0{}", b"{}\0", b'{"a":' * 5000 + b"1" + b"}" * 5000,
                 b'{"prompt":"x","prompt":"y"}', b'{"prompt":"\\u0000"}', b'{"x":1e999999}',
                 b"{" + b'"a":1,' * 100000 + b'"b":1}']:
        for path in ("/v1/runs", "/v1/sessions", "/v1/jails"):
            expect(f"{path} {body[:60]!r}", request("POST", path, body, UPGRADE, whole=False), [400, 413])


def part_frames():
    def frame(stream, data=b"", length=None):
        return struct.pack(">BI", stream, len(data) if length is None else length) + data

    bad = [frame(1, b"x"), frame(2, b"x"), frame(3, b"{}"), frame(7, b"{}"), frame(77, b"x"), frame(255, b"", 2**32 - 1),
           frame(4), frame(4, b"\0"), frame(4, b"A"), frame(4, b"\x0f\x0f"), frame(5, b"\0"), frame(6, b"x")]
    fine = [frame(6), frame(6) * 2, frame(6) + frame(0, b"x"), frame(0) * 1000 + frame(6), frame(4, b"\x0f"),
            frame(5, b"\0\x10\0\x10") * 5000 + frame(4, b"\x09"), frame(0, b"x" * 3000 + b"\n") + frame(4, b"\x0f")]
    for tty in (False, True):
        for data in bad + fine:
            c, got = upgrade("/v1/jails", {"argv": ["cat"], "tty": tty})
            begin = time.monotonic()
            c.sendall(data)
            got += answer(c)
            if time.monotonic() - begin > 15:
                print(f"frame {data[:8]!r} tty={tty}: the connection stays open")
            if data in bad and b"protocol error" not in got:
                print(f"frame {data[:8]!r} tty={tty}: no word of it: {got[-200:]!r}")
            if data in fine and b'"reason":' not in got:
                print(f"frame {data[:8]!r} tty={tty}: no exit frame: {got[-200:]!r}")
            c.close()


def part_vanish():
    jail = json.dumps({"argv": ["cat"]}).encode()
    head = f"POST /v1/jails HTTP/1.1\r\nHost: x\r\n{UPGRADE}Content-Length: {len(jail)}\r\n\r\n".encode() + jail
    for n in range(0, len(head) + 1, 9):
        c = connect()
        c.sendall(head[:n])
        c.close()
    for ms in [0, 0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50] * 3:
        c = connect()
        c.sendall(head)
        time.sleep(ms / 1000)
        c.close()
    for i, ms in enumerate([0, 1, 2, 3, 5, 8, 10, 20, 50, 100] * 2):
        body = json.dumps({**HELLO, "session": {"userId": "v", "goalId": f"g{i % 4}"}}).encode()
        c = connect()
        c.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(ms / 1000)
        c.close()


def part_races():
    def run(goal, harness, key=None):
        body = {"session": {"userId": "r", "goalId": goal}, "harness": harness, "prompt": "x"}
        return request("POST", "/v1/runs", {**body, "idempotencyKey": key} if key else body)

    def at_once(*calls):
        threads = [threading.Thread(target=c) for c in calls]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    same = []
    at_once(*[lambda: same.append(run("same", "hello", "key"))] * 30)
    if {codes(g)[0] for g in same} != {202} or len({value(g)["runId"] for g in same}) != 1:
        print(f"one key, many runs: {same}")
    cancelled = []
    for i, ms in enumerate([0, 0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 50] * 2):
        made = value(run(f"c{i % 4}", "hello" if i % 3 == 0 else "sleeper"))
        cancelled.append(made["runId"])
        time.sleep(ms / 1000)
        expect("cancel", request("DELETE", "/v1/runs/" + made["runId"]), [202, 409])
    for made in cancelled:
        lines = request("GET", f"/v1/runs/{made}/events?follow=1", headers="Accept: application/x-ndjson\r\n")
        ended = re.findall(rb'"type":"run.done".*?"status":"(\w+)"', lines)
        if ended not in ([b"cancelled"], [b"succeeded"]):
            print(f"{made}: run.done {ended}")
    for _ in range(15):
        made = value(run("d", "hello"))["sessionId"]
        seen = []
        delete = lambda: seen.append(request("DELETE", "/v1/sessions/" + made))
        execute = lambda: seen.append(request("POST", f"/v1/sessions/{made}/exec", {"argv": ["true"]}, UPGRADE, whole=False))
        at_once(delete, lambda: seen.append(run("d", "hello")), execute, delete, execute)
        for got in seen:
            expect("delete, run and exec at once", got, [101, 202, 204, 404, 409])


globals()["part_" + sys.argv[2]]()
