#!/usr/bin/env bash
# A secret that a tool in the jail needs itself: root's policy gives it, the harness names it, the agent has it as a
# variable and nobody else has, and whatever prints it prints asterisks.
. tests/integration/lib.sh

VALUE="tk\"7/$(head -c 24 /dev/urandom | base64 | tr -d '\n')+\\x"
mkdir -p "$T/etc/harnesses" "$T/etc/policy" "$T/etc/keys"
NAME=$(head -c 10 /dev/urandom | od -An -tx1 | tr -d ' \n')
for k in TOOL_KEY=$VALUE NAME_KEY=$NAME OTHER_KEY=other-key-not-for-jails SHORT_KEY=seven77; do
	(umask 077 && printf '%s\n' "${k#*=}" >"$T/etc/keys/${k%%=*}")
done
cat >"$T/etc/policy/gives.yaml" <<'Y'
extends: default
secrets:
  TOOL_KEY: { env: TOOL_TOKEN }
  SHORT_KEY: { env: SHORT }
  NAME_KEY: { env: NAME }
  LOST_KEY: { env: LOST }
Y
cat >"$T/etc/agentboxd.yaml" <<Y
secrets: { TOOL_KEY: { file: $T/etc/keys/TOOL_KEY }, OTHER_KEY: { file: $T/etc/keys/OTHER_KEY }, NAME_KEY: { file: $T/etc/keys/NAME_KEY }, SHORT_KEY: { file: $T/etc/keys/SHORT_KEY } }
default_policy: gives
Y
# harness NAME KEYS...: runs its prompt, python
harness() {
	local name=$1
	shift
	printf '%s\n' '---' 'backend: exec' 'command: [python3, -]' "artifacts: ['out/**']" "$@" '---' >"$T/etc/harnesses/$name.md"
}
harness has 'secrets: [TOOL_KEY]' 'env: { TOOL_TOKEN: not-this }'
harness has-not
harness none 'secrets: []'
harness other 'secrets: [OTHER_KEY]'
harness short 'secrets: [SHORT_KEY]'
harness names 'secrets: [NAME_KEY]'
harness lost 'secrets: [LOST_KEY]'
harness checked 'secrets: [TOOL_KEY]' 'verify: { command: [sh, -c, "cat told; env | grep -c TOOL_TOKEN"], required: false }'
harness waits 'secrets: [TOOL_KEY]' 'verify: { command: [sh, -c, "touch looking; until [ -e go ]; do sleep 0.05; done; cat told"] }'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# agent HARNESS NAME: runs the program on stdin, its events are in $T/NAME
agent() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p - --json >"$T/$2" 2>"$T/err"; }
got() { json "$2" <"$T/$1"; }
said() { got "$1" 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("|")'; }
sum=$(printf %s "$VALUE" | sha256sum | cut -c 1-64)
# Every form of it that a text may have: none is in these files, or in what is piped in.
forms=$(VALUE=$VALUE NAME=$NAME python3 - <<'PY'
import base64, json, os, urllib.parse
v = os.environ["VALUE"]
forms = {v, os.environ["NAME"], json.dumps(v)[1:-1], json.dumps(json.dumps(v))[3:-3], urllib.parse.quote(v, safe=""), urllib.parse.quote(v), json.dumps(v)[1:-1].replace("/", "\\/"), v.encode().hex(), v.encode().hex().upper(),
         v[:20]}
for before in range(3):
    text = base64.b64encode(b"x" * before + v.encode()).decode()
    forms |= {text[4:40], text[4:40].replace("+", "-").replace("/", "_")}
print("\n".join(sorted(forms)))
PY
)
clean() { ! grep -aqF -- "$forms" "$@"; }

# ---- who has it ----

look='import os, hashlib; t = os.environ.get("TOOL_TOKEN"); print(hashlib.sha256(t.encode()).hexdigest() if t else "none", end="")'
agent has a <<<"$look"
is 'an agent whose harness names it has it, whatever else is there by that name' "$(said a)" "$sum"
is 'the run says so, and not what it is' "$(got a 'JSON.stringify(e.find(x=>x.type==="run.started").narrow)')" '{"secrets":["TOOL_KEY"]}'
agent has-not b <<<"$look"
agent none c <<<"$look"
is 'nobody else has' "$(said b)|$(said c)" 'none|none'
like 'one that the policy does not give is refused' "$(abctl run other -s u/d -p x 2>&1)" "gives none to jails"
agent short e <<<'print(1)'
like 'one that could not be kept out of output, too' "$(got e l.result.error)" 'secret SHORT_KEY does not enter a jail: it has 7 bytes'
agent lost f <<<'print(1)'
like 'and one without a value, with the remedy' "$(got f l.result.error)" 'secret LOST_KEY has no value; remedy: a file'

# ---- where it is not ----

abctl run has -s u/where -p 'import time, os
print("begun", flush=True)
while not os.path.exists("go"): time.sleep(0.02)' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun") session=$(json l.sessionId <"$T/begun")
begun() { abctl logs "$id" --json | grep -q agent.message; }
wait_for 30 begun
cat >"$T/where.py" <<'PY'
import os, re, sys
value, daemon = open(sys.argv[1], "rb").read().strip(), sys.argv[2]
found = set()
def parents(pid):
    while pid not in ("0", "1"):
        yield pid
        pid = re.search(r"PPid:\s*(\d+)", open(f"/proc/{pid}/status").read()).group(1)
def pieces(mem, at, end):
    while at < end:
        mem.seek(at)
        yield mem.read(min(end - at, 16 << 20))
        at += (16 << 20) - 256  # what lies across two is whole in one
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if daemon not in parents(pid):
            continue
        name = open(f"/proc/{pid}/comm").read().strip()
        for what in ("cmdline", "environ"):
            if value in open(f"/proc/{pid}/{what}", "rb").read():
                found.add(f"{name}:{what}")
        if not name.startswith(("agentbox-superv", "agentbox-init")):
            continue
        mem = open(f"/proc/{pid}/mem", "rb", 0)
        maps = open(f"/proc/{pid}/maps").readlines()
    except (FileNotFoundError, ProcessLookupError):
        continue  # it has ended
    for line in maps:
        a, b, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        a, b = int(a, 16), int(b, 16)
        # as large is a sanitizer's account of the memory alone
        if not mode.startswith("rw") or b - a >= 1 << 40:
            continue
        for piece in pieces(mem, a, b):
            if value in piece:
                found.add(f"{name}:memory")
            if b"TOOL_KEY" in piece:  # its name, which is known there: this looks where it should
                found.add(f"{name}:name")
print(" ".join(sorted(found)))
PY
is 'it is in the environment of the agent and in no other process, argument, or memory of the supervisor and PID 1' \
	"$(python3 "$T/where.py" "$T/etc/keys/TOOL_KEY" "$DAEMON")" 'agentbox-superv:name python3:environ'
abctl exec "$session" -- sh -c 'for p in /proc/[0-9]*; do tr "\0" "\n" <$p/environ; done 2>/dev/null; cat /proc/[0-9]*/environ | base64 -w0' >"$T/exec" 2>&1
like 'a command of a client in that jail sees the variable' "$(cat "$T/exec")" '^TOOL_TOKEN=\*{8}'
ok 'and not the value, in whatever form' clean "$T/exec"
touch "$T/state/sessions/$session/workspace/go"
over() { abctl show "$1" --json | grep -q '"exit"'; }
wait_for 30 over "$id"

# ---- an agent that says it ----

agent checked says <<'PY'
import base64, json, os, sys, time, urllib.parse
t = os.environ["TOOL_TOKEN"]
b64 = lambda x: base64.b64encode(x.encode()).decode()
def out(text, end="\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()
def say(**event):
    out(json.dumps(event))
u = "".join("\\u%04x" % ord(c) for c in t)
forms = [t, urllib.parse.quote(t), json.dumps(t)[1:-1].replace("/", "\\/"), json.dumps(t), json.dumps(json.dumps(t)), b64(t), b64("x" + t), b64("xx" + t), base64.urlsafe_b64encode(t.encode()).decode(),
         urllib.parse.quote(t, safe=""), urllib.parse.quote(t, safe="").lower() and urllib.parse.quote_plus(t, safe=""), t.encode().hex(), t.encode().hex().upper()]
for f in forms:
    out("plain " + f)
    say(type="agent.message", text="message " + f)
    say(type="agent.thinking", text="thinking " + f)
    say(type="tool.call", callId="c-" + f[:3], name="Bash", kind="execute", input={"command": "echo " + f, f: [f, {"deep": f}]}, title=f)
    say(type="tool.result", callId="c-" + f[:3], name="Bash", ok=True, output="out " + f)
    say(type="error", message=f, code=f[:100])
    sys.stderr.write("stderr " + f + "\n")
out('{"type":"agent.message","text":"escaped ' + u + '"}')
out('{"type":"agent.message","text":"escaped twice ' + u.replace("\\", "\\\\") + '"}')
out('{"type":"tool.call","callId":"q","name":"x","input":{"a":"' + u + '"}}')
for c in t:
    say(type="agent.message", text=c, delta=True, messageId="m1")
say(type="agent.message", text=" end", delta=True, messageId="m1")
for i in (0, 1, 2):
    say(type="agent.thinking", text=t[i * 13:] if i == 2 else t[i * 13:i * 13 + 13], delta=True)
for c in t:
    out(c, "")
    time.sleep(0.002)
out(" in bytes")
out("x" * 70000 + t + "y" * 70000)
out("z" * 1200000 + t + "z" * 300000)
os.makedirs("out", exist_ok=True)
open("told", "w").write("the check says " + t + "\n" + b64(t) + "\n")
open("out/kept", "w").write("fine")
try:
    open("out/" + urllib.parse.quote(t, safe=""), "w").write("x")
except OSError:
    pass
say(type="plan.updated", entries=[{"text": t, "status": "pending"}])
say(type="agent.message", text="last " + t)
PY
ok 'nothing of it is in its events' clean "$T/says"
like 'which are there, with asterisks' "$(said says)" 'message \*{40}'
is 'a message in pieces is whole but for that' "$(got says 'e.filter(x=>x.messageId==="m1").map(x=>x.text).join("").replace(/^\*+/,"*")')" '* end'
is 'numbers have no gap, and the result is one' "$(got says 'e.every((x,i)=>x.seq===e[0].seq+i)+" "+l.result.status')" 'true succeeded'
like 'the final text' "$(got says l.result.finalText)" '\*{40}'
like 'its check, which does not have it' "$(got says l.result.verification.output)" 'the check says \*{40}'
like 'has said' "$(got says l.result.verification.output)" '^0$'
is 'an artifact by that name is none, and is not named' \
	"$(got says 'JSON.stringify([l.result.artifacts.map(x=>x.path),l.result.skippedArtifacts.map(x=>x.path.replace(/\*+/,"*")+": "+x.reason)])')" \
	'[["out/kept"],["out/*: its name has a secret in it"]]'

ok 'this would have found it: the agent'"'"'s own file has it' not clean "$T/state/sessions/$(got says l.result.sessionId)/workspace/told"
run=$(got says l.result.runId)
abctl logs "$run" --raw >"$T/raw" 2>&1
ok 'nor is it in the raw log' clean "$T/raw"
agent has fails <<<'import os, sys; sys.exit("failed with " + os.environ["TOOL_TOKEN"])'
like 'an error' "$(got fails 'l.result.stderrTail+l.result.error')" 'failed with \*{40}'
ok 'does not tell it either' clean "$T/fails"

agent names n <<'PY'
import os, socket
try:
    socket.getaddrinfo(os.environ["NAME"] + ".example.com", 80)
except OSError:
    pass
PY
like 'a name that it asks for' "$(got n 'e.filter(x=>x.type==="egress.denied").map(x=>x.host).join()')" '^\*{20}\.example\.com'
ok 'is not told, either' clean "$T/n"
like 'the log has it' "$(cat "$T/log")" 'egress denied: \*{20}\.example\.com'

# ---- half of it, when the supervisor is killed ----

abctl run has -s u/half -p 'import os, sys, time
t = os.environ["TOOL_TOKEN"]
sys.stdout.write("line\nfirst " + t[:17]); sys.stdout.flush()
while not os.path.exists("go"): time.sleep(0.02)
print(t[17:] + " last")' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun") session=$(json l.sessionId <"$T/begun")
wait_for 30 begun
kill_child agentbox-supervisor
touch "$T/state/sessions/$session/workspace/go"
wait_for 60 over "$id"
abctl logs "$id" --json >"$T/half"
is 'the other half finds it' "$(said half | sed 's/\*\**/*/' | tr -d '\n')" 'line|first * last'
is 'and nothing is lost' "$(got half 'e.filter(x=>x.type==="output.gap").length')" 0
ok 'nor told' clean "$T/half"

# ---- and when it is killed while the agent's work is checked ----

abctl run waits -s u/look -p 'import json, os
t = os.environ["TOOL_TOKEN"]
open("told", "w").write("told " + t)
for c in "see " + t + " end":
    print(json.dumps({"type": "agent.message", "text": c, "delta": True, "messageId": "m"}))
print("{\"type\":\"agent.thinking\",\"text\":\"" + "".join("\\u%04x" % ord(c) for c in t) + "\"}")' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun") session=$(json l.sessionId <"$T/begun")
wait_for 30 test -e "$T/state/sessions/$session/workspace/looking"
rm "$T/state/sessions/$session/workspace/looking"
kill_child agentbox-supervisor
wait_for 30 test -e "$T/state/sessions/$session/workspace/looking"
touch "$T/state/sessions/$session/workspace/go"
wait_for 60 over "$id"
abctl logs "$id" --json >"$T/look"
is 'nothing is told twice' "$(said look | tr -d '|' | sed 's/\*\**/*/')" 'see * end'
like 'and the check prints asterisks' "$(got look l.result.verification.output)" '^told \*{40}'
ok 'and nothing else' clean "$T/look"

# ---- what stays ----

stop_daemon TERM
kept() { find "$T/state" -path '*/workspace/*' -prune -o -path '*/home/*' -prune -o -type f -print0 | xargs -0 grep -alF -- "$forms"; }
is 'it is in no file of the state' "$(kept | sed "s,$T/state/,,")" ''
ok 'nor in the log of the daemon' clean "$T/log"
finish
