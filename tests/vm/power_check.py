"""power_check.py AFTER TOLD...: what the daemon knows after a power cut (power.py) against what clients were told.

TOLD are the outputs of the lives so far, the last one cut off just now.  Prints one line for each thing that
does not hold, then `# ` and figures; exit 1 when something does not hold.
"""

import json
import sys

# "synced within a second", in a machine that is ten times slower than others
SYNCED_MS = 5000


def told(path):
    accepted, events, last = {}, [], 0
    with open(path, errors="replace") as f:
        for line in f:
            if not line.endswith("\n"):
                break  # cut in the middle
            word = line.split()
            if len(word) == 4 and word[0] == "A":
                accepted[word[1]] = word[2]
            elif len(word) == 7 and word[0] == "E":
                events.append((word[1], int(word[2]), word[3], word[4], int(word[5]), int(word[6])))
            else:
                print(f"{path}: not understood: {line!r}")
                continue
            last = int(word[-1])
    return accepted, events, last


def check_log(session, log):
    """seq is gapless, or a log.gap says what is missing."""
    before = 0
    for event in log:
        seq = event["seq"]
        if seq <= before:
            yield f"{session}: {seq} behind {before}"
        elif seq != before + 1 and not (event["type"] == "log.gap" and event["from"] <= before + 1 and event["to"] >= seq - 1):
            yield f"{session}: {before} is followed by {seq} ({event['type']})"
        before = seq


def check_run(run, log):
    name, status = run["runId"], run["status"]
    mine = [e for e in log if e.get("run") == name]
    done = [e["result"]["status"] for e in mine if e["type"] == "run.done"]
    if done != [status]:
        yield f"{name} is {status}, its log says {done}"
    if status not in ("succeeded", "interrupted"):
        yield f"{name} is {status}: {run['result']}"
    # its run.started may have been lost with the end of the log, which then has a gap
    if status == "interrupted" and not any(e["type"] == "run.started" for e in mine) and not any(e["type"] == "log.gap" for e in log):
        yield f"{name} was waiting, and was not run"


def check(after, lives):
    runs = {r["runId"]: r for r in after["runs"]}
    logs = {s: {e["seq"]: e for e in log} for s, log in after["events"].items()}
    for session, log in after["events"].items():
        yield from check_log(session, log)
    for accepted, events, last in lives:
        done = {}  # session -> the last run.done that was delivered: all before it was on disk
        for session, seq, run, kind, crc, ms in events:
            if kind == "run.done":
                done[session] = max(done.get(session, 0), seq)
        for run in accepted:
            if run not in runs:
                yield f"{run} was accepted and is not there"
        for session, seq, run, kind, crc, ms in events:
            kept = logs.get(session, {}).get(seq)
            if kept and kept["crc"] != crc:
                yield f"{session} {seq}: another event than the one that was delivered"
            if not kept and (seq <= done.get(session, 0) or ms < last - SYNCED_MS):
                yield f"{session} {seq} ({kind}): delivered {last - ms} ms before the cut and is not there"
    for run in runs.values():
        yield from check_run(run, after["events"][run["sessionId"]])


after = json.load(open(sys.argv[1]))
lives = [told(path) for path in sys.argv[2:]]
wrong = list(check(after, lives))
for line in wrong[:20]:
    print(line)
accepted, events, _ = lives[-1]
begun = {run for _, _, run, kind, _, _ in events if kind == "run.started"}
status = {r["runId"]: r["status"] for r in after["runs"]}
waited = [r for r in accepted if r not in begun]
print(f"# {len(accepted)} runs and {len(events)} events were told;",
      f"queued {len(waited)}, of which run {sum(status.get(r) == 'succeeded' for r in waited)};",
      f"interrupted {sum(status.get(r) == 'interrupted' for r in accepted)};",
      f"gaps {sum(e['type'] == 'log.gap' for log in after['events'].values() for e in log)}")
sys.exit(1 if wrong else 0)
