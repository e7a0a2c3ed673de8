"""power.py SOCKET [FILE]: clients whose daemon is about to lose its power.

Without FILE it starts runs and follows their sessions for ever, and prints what it is told, one line each:

    A RUN SESSION MS                 the run was accepted (202)
    E SESSION SEQ RUN TYPE CRC MS    the event was delivered; CRC is that of its line

With FILE it waits until every run has ended and writes all runs and all events there.
"""

import json
import random
import sys
import threading
import time
import zlib

from client import ask, get, say


def crc(line):
    return zlib.crc32(line.encode())


def follow(session, begin):
    _, answer = ask("GET", f"/v1/sessions/{session}/events?follow=1&from={begin}")
    for line in answer:
        line = line.decode().strip()
        if line:
            event = json.loads(line)
            say("E", session, event["seq"], event["run"], event["type"], crc(line))


def live():
    followed = set()
    n = 0
    while True:
        n += 1
        user = f"u{random.randrange(6)}"
        body = {"session": {"userId": user, "goalId": "g"}, "harness": random.choice(["short", "short", "long"]), "prompt": f"{n}\n" * 20}
        client, answer = ask("POST", "/v1/runs", body)
        told = json.loads(answer.read())
        client.close()
        if answer.status == 202:
            session = told["sessionId"]
            say("A", told["runId"], session)
            if session not in followed:
                followed.add(session)
                threading.Thread(target=follow, args=(session, 1), daemon=True).start()
        # more than are done: some wait in the queue when the power goes
        time.sleep(random.choice([0, 0.1, 0.6]))


def pages(path, member):
    cursor = ""
    while True:
        page = json.loads(get(f"{path}?limit=1000{cursor}"))
        yield from page[member]
        if not page.get("cursor"):
            return
        cursor = "&cursor=" + page["cursor"]


def dump(path):
    end = time.monotonic() + 300
    while True:
        runs = list(pages("/v1/runs", "runs"))
        waiting = [r for r in runs if r["status"] in ("queued", "running")]
        if not waiting:
            break
        if time.monotonic() > end:
            sys.exit(f"{len(waiting)} runs do not end: {waiting[0]}")
        time.sleep(0.5)
    for run in runs:
        run["result"] = json.loads(get("/v1/runs/" + run["runId"])).get("result")
    sessions = {r["sessionId"] for r in runs}
    events = {s: [{"crc": crc(line), **json.loads(line)} for line in get(f"/v1/sessions/{s}/events").splitlines() if line] for s in sessions}
    with open(path, "w") as f:
        json.dump({"runs": runs, "events": events}, f)


if len(sys.argv) > 2:
    dump(sys.argv[2])
else:
    live()
