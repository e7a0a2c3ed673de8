#!/usr/bin/env python3
"""run.py USER/GOAL PROMPT: a run of the harness hello, its events as they come, an artifact and its result.

Needs nothing but Python. The daemon's socket is $AGENTBOX_SOCKET or the usual one.
"""
import http.client
import json
import os
import socket
import sys
import time
import uuid

SOCKET = os.environ.get("AGENTBOX_SOCKET") or "/run/agentbox/agentbox.sock"


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def ask(method, path, body=None, headers=None):
    """The answer, still to be read; what is refused raises with the daemon's reason."""
    c = Connection("agentbox")
    fields = {"Content-Type": "application/json"} if body is not None else {}
    c.request(method, path, body and json.dumps(body), {**fields, **(headers or {})})
    answer = c.getresponse()
    if answer.status >= 300:
        problem = json.loads(answer.read() or b"{}")
        raise RuntimeError(problem.get("detail") or f"the daemon answered {answer.status}")
    return answer


def follow(run, patience=15):
    """Each event once, in order; a connection that breaks goes on after the last number seen."""
    last, until = 0, time.monotonic() + patience
    while True:
        try:
            answer = ask("GET", f"/v1/runs/{run}/events?follow=1",
                         headers={"Accept": "text/event-stream", "Last-Event-ID": str(last)})
            for line in answer:
                if not line.startswith(b"data:"):
                    continue
                event = json.loads(line[5:])
                if event.get("seq") and event["seq"] <= last:
                    continue
                last, until = event.get("seq") or last, time.monotonic() + patience
                yield event
                if event["type"] == "run.done":
                    return
        except (OSError, http.client.HTTPException):
            pass
        if time.monotonic() > until:
            raise RuntimeError("the daemon does not answer any more")
        time.sleep(0.25)


def main():
    if len(sys.argv) != 3 or "/" not in sys.argv[1]:
        sys.exit("usage: run.py USER/GOAL PROMPT")
    user, goal = sys.argv[1].split("/", 1)
    # With a key of its own, asking again after a lost answer does not start a second run.
    started = json.load(ask("POST", "/v1/runs", {
        "session": {"userId": user, "goalId": goal}, "harness": "hello", "prompt": sys.argv[2],
        "idempotencyKey": f"example-{uuid.uuid4()}"}))
    run = started["runId"]
    for event in follow(run):
        print(json.dumps(event), flush=True)
    print(ask("GET", f"/v1/runs/{run}/artifacts/out/hello.txt").read().decode(), end="")
    print(json.dumps(event["result"]))


main()
