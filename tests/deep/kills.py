"""kills.py SOCKET STOP: clients that do not give up, until the file STOP is there.

Each submits runs with idempotency keys, again and again until one is accepted, and follows their
events from where its last stream broke off; others follow whole sessions.  Then all that they were
promised is compared with history, logs, artifacts and workspaces: a line for each broken promise,
nothing when all is well; what there was of it goes to stderr.

Used by kills.t, which kills the daemon's programs meanwhile.  KILLS_SEED repeats what is asked."""
import hashlib
import http.client
import json
import os
import random
import socket
import sys
import threading
import time

SOCKET, STOP = sys.argv[1:3]
CLIENTS, SESSIONS, FOLLOWED = 10, 12, 4
PATIENCE = 120  # seconds without the answer that has to come

lock = threading.Lock()
accepted = {}  # runId -> {key, session, harness}
delivered = {}  # (session, seq) -> the bytes of that event
streams = broken = again = 0
over = threading.Event()


def say(text):
    with lock:
        print(text[:400], flush=True)


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    """An answer, however often somebody dies over it."""
    end = time.monotonic() + PATIENCE
    while True:
        c = Local("x")
        try:
            c.request(method, path, body)
            r = c.getresponse()
            status, data = r.status, r.read()
            if status not in (429, 503):
                return status, data
            what = f"{status} {data!r}"
        except (OSError, http.client.HTTPException) as e:
            what = repr(e)
        finally:
            c.close()
        if time.monotonic() > end:
            raise TimeoutError(f"{method} {path}: {what}")
        time.sleep(0.02)


def deliver(data):
    """One event: its session, its number and its type."""
    e = json.loads(data)
    at = (e["session"], e["seq"])
    with lock:
        before = delivered.setdefault(at, data)
    if before != data:
        say(f"{at} was delivered in two ways: {before!r} and {data!r}")
    return e


def frames(r):
    """The events of a stream, as (id, bytes)."""
    number = data = None
    for line in r:
        line = line.rstrip(b"\n")
        if line.startswith(b"id: "):
            number = int(line[4:])
        elif line.startswith(b"data: "):
            data = line[6:]
        elif not line and data is not None:
            yield number, data
            number = data = None


def follow(path, until, from_seq=0):
    """Follows until an event for which `until` says so; a stream that breaks off is resumed."""
    global streams, broken
    last, end = from_seq, time.monotonic() + PATIENCE
    while not over.is_set() or until is not None:
        c = Local("x")
        try:
            c.request("GET", path, headers={"Accept": "text/event-stream", "Last-Event-ID": str(last)})
            r = c.getresponse()
            if r.status not in (200, 503):
                say(f"{path} after {last}: {r.status} {r.read()!r}")
                return
            with lock:
                streams += 1
            for number, data in frames(r) if r.status == 200 else ():
                e = deliver(data)
                if number != e["seq"] or number <= last:
                    say(f"{path}: {e['type']} has id {number} and seq {e['seq']} after {last}")
                last, end = number, time.monotonic() + PATIENCE
                if until and until(e):
                    return
                if over.is_set() and not until:
                    return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            c.close()
        with lock:
            broken += 1
        if time.monotonic() > end and until:
            say(f"{path}: nothing more comes after {last}")
            return
        time.sleep(0.02)


def submit(dice, key, session):
    """Until it is accepted; sometimes once more, as a client that has lost the answer would."""
    global again
    harness = dice.choice(["lines", "lines", "twice"])
    body = json.dumps({"session": {"userId": f"u{session % 3}", "goalId": f"g{session}"},
                       "harness": harness, "prompt": key, "idempotencyKey": key})
    status, data = call("POST", "/v1/runs", body)
    if status != 202:
        say(f"{key}: {status} {data!r}")
        return None
    run = json.loads(data)["runId"]
    with lock:
        accepted[run] = {"key": key, "session": json.loads(data)["sessionId"], "harness": harness}
    if dice.random() < 0.3:
        status, data = call("POST", "/v1/runs", body)
        with lock:
            again += 1
        if status != 202 or json.loads(data)["runId"] != run:
            say(f"{key}: was {run}, and is {status} {data!r}")
    return run


def client(n):
    dice = random.Random(f"{os.environ['KILLS_SEED']}/{n}")
    i = 0
    while not os.path.exists(STOP):
        run = submit(dice, f"key-{n}-{i}", dice.randrange(SESSIONS))
        if run:
            follow(f"/v1/runs/{run}/events?follow=1", lambda e: e["type"] == "run.done" and e["run"] == run)
        i += 1


# ---- what has become of it ----

def history():
    """Every run that there is."""
    cursor, seen = "", []
    while True:
        page = json.loads(call("GET", "/v1/runs?limit=100" + cursor)[1])
        seen += page["runs"]
        if not page.get("cursor"):
            return seen
        cursor = "&cursor=" + page["cursor"]


def check_log(session):
    """Its events, by number, without a gap, each delivered one as it was delivered."""
    log = {}
    for line in call("GET", f"/v1/sessions/{session}/events")[1].splitlines():
        e = json.loads(line)
        if e["seq"] != len(log) + 1:
            say(f"{session}: {e['type']} has seq {e['seq']} after {len(log)}")
        log[e["seq"]] = (e, line)
    for (s, seq), data in delivered.items():
        if s == session and (seq not in log or log[seq][1] != data):
            say(f"{s}: {seq} was delivered as {data!r} and is {log.get(seq, [0, None])[1]!r}")
    return [e for e, _ in log.values()]


def expected_text(key, attempts):
    return "".join(f"{key} {i}\n" for i in range(8)) * attempts


def check_artifacts(run, key, result):
    want = (key + "\n").encode() * 2000
    if [a["path"] for a in result["artifacts"]] != ["out/file"]:
        say(f"{run}: artifacts {result['artifacts']}")
        return
    status, data = call("GET", f"/v1/runs/{run}/artifacts/out/file")
    told = result["artifacts"][0]
    if data != want or told["bytes"] != len(want) or told["sha256"] != hashlib.sha256(want).hexdigest():
        say(f"{run}: an artifact of {len(data)} bytes ({status}) is told as {told}")


def check_run(run, made, log, lines, statuses):
    mine = [e for e in log if e.get("run") == run]
    kinds = [e["type"] for e in mine]
    if kinds.count("run.done") != 1 or kinds[-1] != "run.done":
        say(f"{run}: events {kinds}")
        return
    result = mine[-1]["result"]
    shown = json.loads(call("GET", f"/v1/runs/{run}")[1])
    if shown.get("status") != result["status"] or shown["result"] != result:
        say(f"{run}: the event says {result}, the record {shown}")
    status = result["status"]
    statuses[status] = statuses.get(status, 0) + 1
    attempts, written = kinds.count("run.started"), lines.count(made["key"])
    if status == "succeeded":
        if written != attempts or attempts != (2 if made["harness"] == "twice" else 1):
            say(f"{run}: {attempts} attempts have written {written} lines: {kinds}")
        text = "".join(e["text"] for e in mine if e["type"] == "agent.message")
        if "output.gap" not in kinds and text != expected_text(made["key"], attempts):
            say(f"{run}: it has said {text!r}")
        check_artifacts(run, made["key"], result)
    elif status == "interrupted" and result.get("error"):
        if not attempts - 1 <= written <= attempts:
            say(f"{run}: {attempts} attempts, the last cut off, have written {written} lines")
    else:
        say(f"{run}: {status}: {result.get('error')}")
    statuses["output.gap"] = statuses.get("output.gap", 0) + kinds.count("output.gap")


def check():
    ids = [r["runId"] for r in history()]
    if len(ids) != len(set(ids)) or set(ids) != set(accepted):
        say(f"history has {len(ids)} runs, {len(accepted)} were accepted; "
            f"lost {set(accepted) - set(ids)}, more {set(ids) - set(accepted)}")
    statuses = {}
    for session in {m["session"] for m in accepted.values()}:
        log = check_log(session)
        status, data = call("GET", f"/v1/sessions/{session}/files/ledger")
        if status != 200:
            say(f"{session}: its workspace has no ledger: {status}")
        lines = data.decode().splitlines() if status == 200 else []
        for run, made in accepted.items():
            if made["session"] == session:
                check_run(run, made, log, lines, statuses)
        strange = set(lines) - {m["key"] for m in accepted.values()}
        if strange:
            say(f"{session}: what nobody has asked for was done: {strange}")
    print(f"# {len(accepted)} accepted, {again} asked for twice, {streams} streams, {broken} broken off, "
          f"{len(delivered)} events: {statuses}", file=sys.stderr)


def main():
    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    watchers = []
    for n in range(FOLLOWED):
        made = json.loads(call("POST", "/v1/sessions", json.dumps({"userId": f"u{n % 3}", "goalId": f"g{n}"}))[1])
        path = f"/v1/sessions/{made['sessionId']}/events?follow=1"
        watchers.append(threading.Thread(target=follow, args=(path, None), daemon=True))
    for t in threads + watchers:
        t.start()
    for t in threads:
        t.join()
    over.set()
    check()


main()
