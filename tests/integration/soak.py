"""soak.py SOCKET post COUNT ROUND LEDGER: starts runs; each that was accepted is a line of LEDGER.
soak.py SOCKET check LEDGER: what was promised for them is so; prints each broken promise.

Used by 76-soak.t, which kills the daemon's programs meanwhile."""
import http.client
import json
import random
import socket
import sys
import threading
import time

SESSIONS = 12
HARNESSES = ["hello", "lines", "lines", "lines"]


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(sys.argv[1])


def call(method, path, body=None):
    c = Local("x")
    try:
        c.request(method, path, json.dumps(body) if body else None)
        r = c.getresponse()
        return r.status, r.read().decode()
    finally:
        c.close()


def post(count, turn, ledger):
    lock = threading.Lock()

    def one(i):
        body = {
            "session": {"userId": f"u{i % 3}", "goalId": f"g{i % SESSIONS}"},
            "harness": random.choice(HARNESSES),
            "prompt": "x",
        }
        try:
            status, text = call("POST", "/v1/runs", body)
        except (OSError, http.client.HTTPException):
            return  # the daemon died on it: nothing was promised
        if status == 202:
            with lock, open(ledger, "a") as f:
                f.write(text.strip() + "\n")

    threads = []
    for i in range(count):
        threads.append(threading.Thread(target=one, args=(turn * count + i,)))
        threads[-1].start()
        time.sleep(random.random() * 0.04)
    for t in threads:
        t.join()


def events(path):
    status, text = call("GET", path)
    if status != 200:
        print(f"{path}: {status} {text}")
        return []
    return [json.loads(line) for line in text.splitlines()]


def check_run(run, statuses):
    log = events(f"/v1/runs/{run}/events")
    done = [e for e in log if e["type"] == "run.done"]
    if len(done) != 1 or log[-1] is not done[0]:
        print(f"{run}: events {[e['type'] for e in log]}")
        return
    status = done[0]["result"]["status"]
    statuses[status] = statuses.get(status, 0) + 1
    shown = json.loads(call("GET", f"/v1/runs/{run}")[1])
    if shown["status"] != status:
        print(f"{run}: the event says {status}, the record {shown['status']}")
    if status not in ("succeeded", "interrupted"):
        print(f"{run}: {status}: {done[0]['result'].get('error')}")


def check_session(session):
    at = 0
    for e in events(f"/v1/sessions/{session}/events"):
        if e["type"] == "log.gap" and e["from"] == at + 1 and e["to"] == e["seq"] - 1:
            at = e["to"]
        if e["seq"] != at + 1:
            print(f"{session}: {e['type']} has seq {e['seq']} after {at}")
        at = e["seq"]


def check(ledger):
    accepted = [json.loads(line) for line in open(ledger)]
    statuses = {}
    for run in {a["runId"] for a in accepted}:
        check_run(run, statuses)
    for session in {a["sessionId"] for a in accepted}:
        check_session(session)
    print(f"# {len(accepted)} accepted: {statuses}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[2] == "post":
        post(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        check(sys.argv[3])
