"""large.py SOCKET HARNESS: runs with prompts of 2 to 6 MB, 16 at once, until all have ended.

Used by 64-noisy.t."""
import json
import sys
import threading
import time

from soak import call


def one(i, runs):
    body = {
        "session": {"userId": "large", "goalId": f"g{i % 4}"},
        "harness": sys.argv[2],
        "prompt": "x" * ((2 + i % 5) << 20),
    }
    status, text = call("POST", "/v1/runs", body)
    if status == 202:
        runs.append(json.loads(text)["runId"])
    else:
        print(f"{status} {text}")


def main():
    runs = []
    threads = [threading.Thread(target=one, args=(i, runs)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    patience = time.monotonic() + 120
    while runs and time.monotonic() < patience:
        state = json.loads(call("GET", f"/v1/runs/{runs[0]}")[1])
        if not state.get("result"):
            time.sleep(0.1)
        elif state["status"] == "succeeded":
            runs.pop(0)
        else:
            break
    sys.exit(1 if runs else 0)


main()
