"""crowd.py SOCKET SECONDS: keeps a hundred sessions busy, a jail in each: runs are started, come to
all the ends there are, and are cancelled at random.  Prints each run whose status is not the one it
had to get, and each hole in a log; how many lived at once goes to stderr.

CROWD_SEED repeats a course.  Used by 77-crowd.t."""
import json
import os
import random
import sys
import threading
import time

from soak import call, check_session, events

USERS, GOALS, THREADS = 10, 10, 8
# what the agent's shell is told -> how that has to end; None: not by itself
ENDS = [
    ("sleep 1000", None),
    ("sleep 1000 & sleep 1000 & setsid sleep 1000 & wait", None),
    ("trap '' TERM; while :; do sleep 1; done", None),
    ("kill -STOP $$", None),
    ("echo done", "succeeded"),
    ("exit 3", "failed"),
    ("kill -9 $$", "failed"),
    ("kill -9 -1", "failed"),
    ("sleep 0.$((RANDOM % 9)); echo later", "succeeded"),
    ("yes | head -c 3000000", "quota"),
    ("setsid sleep 1000 & exit 0", "succeeded"),
]
LATE = ("sleep 1000", "timeout")

dice = random.Random(int(os.environ["CROWD_SEED"]))
lock = threading.Lock()
ledger = []  # [run, session, wanted, cancelled]
most = 0


def start(n, end=None):
    harness, (script, wanted) = "crowd", end or dice.choice(ENDS)
    if not end and dice.random() < 0.1:
        harness, (script, wanted) = "late", LATE
    body = {
        "session": {"userId": f"u{n % USERS}", "goalId": f"g{n // USERS}"},
        "harness": harness,
        "prompt": script,
    }
    status, text = call("POST", "/v1/runs", body)
    if status != 202:
        print(f"not accepted: {status} {text}")
        return None
    answer = json.loads(text)
    entry = [answer["runId"], answer["sessionId"], wanted, False]
    with lock:
        ledger.append(entry)
    return entry


def cancel(entry, how):
    status, text = call("DELETE", f"/v1/runs/{entry[0]}{how}")
    if status == 202:
        entry[3] = True
    elif status != 409:  # it has ended meanwhile
        print(f"{entry[0]}: cancel: {status} {text}")


def state(entry):
    return json.loads(call("GET", f"/v1/runs/{entry[0]}")[1])


def over(entry):
    return state(entry).get("result") is not None


def jails():
    return json.loads(call("GET", "/v1/stats")[1])["jails"]


def work(live, end):
    sessions = list(live)
    while time.monotonic() < end:
        n = dice.choice(sessions)
        entry = live[n]
        if entry and not over(entry):
            if dice.random() < 0.4:
                cancel(entry, dice.choice(["?now=1", "?now=1", ""]))
            continue
        live[n] = start(n)
    for entry in filter(None, live.values()):
        cancel(entry, "?now=1")


def watch(end):
    global most
    while time.monotonic() < end:
        most = max(most, jails())
        time.sleep(0.2)


def check(entry):
    run, _, wanted, cancelled = entry
    done = [e for e in events(f"/v1/runs/{run}/events") if e["type"] == "run.done"]
    status = state(entry)["status"]
    allowed = {wanted} | ({"cancelled"} if cancelled else set())
    if status not in allowed:
        print(f"{run}: {status}, not {allowed}: {state(entry).get('result')}")
    if len(done) != 1 or done[0]["result"]["status"] != status:
        print(f"{run}: its events say {[e['result']['status'] for e in done]}, the record {status}")


def main():
    live = {n: start(n, ENDS[0]) for n in range(USERS * GOALS)}
    patience = time.monotonic() + 120
    while jails() < len(live) and time.monotonic() < patience:
        time.sleep(0.1)
    end = time.monotonic() + float(sys.argv[2])
    threads = [threading.Thread(target=watch, args=(end,))]
    for i in range(THREADS):
        part = {n: live[n] for n in list(live)[i::THREADS]}
        threads.append(threading.Thread(target=work, args=(part, end)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    patience = time.monotonic() + 120
    while not all(map(over, ledger)):
        if time.monotonic() > patience:
            print("some runs do not end")
            break
        time.sleep(0.5)
    for entry in ledger:
        check(entry)
    for session in {e[1] for e in ledger}:
        check_session(session)
    print(f"{most} {len(ledger)}", file=sys.stderr)


main()
