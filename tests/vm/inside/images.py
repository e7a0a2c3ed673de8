"""images.py SOCKET life NUMBER DAEMON | after FILE: clients of images.sh.

life: users whose runs write files without end, with another policy each time.  Prints what they are told, and when
a program of the daemon (DAEMON is its pid) copies a session's files:

    K USER N MS      the agent said that its Nth file is on the disk
    C begin|end MS   a copy

after: one more run of each session lists its files; FILE gets them as JSON.
"""

import json
import sys
import threading
import time

from client import ask, get, say

USERS = 3
PER_LIFE = 1000


def run(user, harness, prompt):
    """All events of a run that is waited for."""
    client, answer = ask("POST", "/v1/runs", {"session": {"userId": user, "goalId": "g"}, "harness": harness, "prompt": prompt})
    told = json.loads(answer.read())
    client.close()
    if answer.status != 202:
        sys.exit(f"POST /v1/runs: {answer.status} {told}")
    client, answer = ask("GET", f"/v1/runs/{told['runId']}/events?follow=1")
    for line in answer:
        if line.strip():
            yield json.loads(line)
    client.close()


def write(user, n):
    # at first without a limit: directories, which the second run has copied into an image
    for harness in ["none"] + ["some", "more"] * (PER_LIFE // 2 - 1):
        for event in run(user, harness, f"{n}\n"):
            if event["type"] == "agent.message" and event["text"].startswith("kept "):
                say("K", user, event["text"].split()[1])
            elif event["type"] == "run.done" and event["result"]["status"] != "succeeded":
                say("F", user, json.dumps(event["result"]).replace(" ", "_"))
        n += 1


def children(pid):
    for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
        try:
            yield open(f"/proc/{child}/comm").read().strip()
        except OSError:
            pass  # it has ended


def life(number, daemon):
    for user in range(USERS):
        # one of them is new in each life
        name = f"u{user}" if user else f"new{number}"
        threading.Thread(target=write, args=(name, number * PER_LIFE), daemon=True).start()
    copying = False
    while True:
        if ("mke2fs" in children(daemon)) != copying:
            copying = not copying
            say("C", "begin" if copying else "end")
        time.sleep(0.02)


def after(path):
    found = {}
    for session in json.loads(get("/v1/sessions?limit=1000"))["sessions"]:
        done = [e for e in run(session["userId"], "look", "") if e["type"] == "run.done"][0]["result"]
        found[session["userId"]] = {
            "status": done["status"],
            "error": done.get("error"),
            "files": dict(line.split()[::-1] for line in (done.get("finalText") or "").splitlines()),
        }
    with open(path, "w") as f:
        json.dump(found, f)


if sys.argv[2] == "life":
    life(int(sys.argv[3]), sys.argv[4])
else:
    after(sys.argv[3])
