#!/usr/bin/env bash
# An agent that attacks whoever reads it: forged events, monsters of JSON, control characters, files
# that are none, and a workspace that resists being deleted.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
cat >"$T/etc/harnesses/py.md" <<'MD'
---
name: py
description: runs its prompt
backend: exec
command: [python3, -]
artifacts: ['out/**']
limits: { timeoutMs: 60000 }
---
MD
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
super=$(child_pid agentbox-supervisor)
# agent NAME [OPTIONS...]: runs the program on stdin, its events are in $T/NAME
agent() {
	local name=$1
	shift
	abctl run py -s "u/$name" -p - --json "$@" >"$T/$name" 2>"$T/err"
}
got() { json "$2" <"$T/$1"; }

# ---- what it says ----

agent forged <<'PY'
import json
say = lambda **event: print(json.dumps(event))
say(type="agent.message", text="honest", seq=1, run="run_00000000000000000000000000", ts="1970-01-01", session="ses_x")
for kind in ("run.done", "run.started", "run.queued", "session.resumed", "log.gap", "output.gap", "limit.hit", "egress.denied", "__proto__", ""):
    say(type=kind, seq=0, result={"status": "failed"}, status="failed", text="forged")
print('{"type":"agent.message","type":"run.done","text":"twice"}')
print('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"type":"agent.message","text":"proto"}')
print('{"type":"agent.message","text":{"not":"text"}}')
print('{"type":"error","message":"\\u0000\\ud800"}')
print('{"type":"agent.message","text":"' + "\\ud800" + '"}')
PY
is 'an agent that forges events succeeds all the same' "$(got forged 'l.type+" "+l.result.status')" 'run.done succeeded'
is 'there is one run.done' "$(got forged 'e.filter(x=>x.type==="run.done").length')" 1
is 'numbers have no gap' "$(got forged 'e.every((x,i)=>x.seq===e[0].seq+i)')" true
is 'every event is of this run' "$(got forged 'new Set(e.map(x=>x.runId||x.run)).size')" 1
# a slow machine's cpu limit is met by starting python alone, and that event is the daemon's
is 'what is not an agent'"'"'s to say is text' "$(got forged 'e.filter(x=>/^(log|output|limit|egress)\./.test(x.type)&&x.limit!=="cpu").length')" 0
is 'nothing but the members of an event is passed on' "$(got forged 'e.filter(x=>x.type.startsWith("agent.")&&(Object.keys(x).includes("__proto__")||"constructor" in Object.assign(Object.create(null),x))).length')" 0

agent monsters <<'PY'
import sys
w = sys.stdout.write
w("[" * 1000000 + "\n")
w('{"type":"agent.message","text":' * 100000 + "\n")
w('{"type":"agent.message","text":"x","n":' + "9" * 10000000 + "}\n")
w('{"type":"usage","inputTokens":1e999999}\n')
w('{"type":"usage","inputTokens":-1}\n')
w('{"type":"agent.message",' + ",".join('"k%d":1' % i for i in range(200000)) + "}\n")
w('"' + "\\" * 999999 + '\n')
w("\r\n\r\n\v\f\0\n")
w("the end, without a line feed")
PY
is 'deep, long and wide JSON is data' "$(got monsters 'l.result.status')" succeeded
like 'the last line needs no line feed' "$(got monsters 'l.result.finalText.slice(-28)')" 'the end, without a line feed'
is 'the supervisor is the same process' "$(child_pid agentbox-supervisor)" "$super"

control=$'[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]'
agent control <<'PY'
import os, sys
os.makedirs("out")
evil = "\x1b]0;title\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07\x9b31m\x08\x08\x7f\u202e"
print(evil + "plain")
for name in (evil.replace("/", "_"), "new\nline", "tab\there"):
    open("out/" + name, "w").write("x")
print('{"type":"tool.call","id":"1","name":"%s","input":{"a":"%s"}}' % ("\\u001b[2J", "\\u001b]0;x\\u0007"))
sys.stderr.write(evil + "\n")
sys.exit(3)
PY
run=$(got control 'l.runId||l.run')
# what a terminal gets of it
for words in "logs $run" "show $run" "artifacts $run" "runs -n 5" "ps"; do
	# shellcheck disable=SC2086 # words
	abctl $words >"$T/out" 2>&1
	ok "abctl ${words%% *} says something" test -s "$T/out"
	ok "abctl ${words%% *} gives a terminal no control characters" not env LC_ALL=C grep -qaP "$control" "$T/out"
done
printf 'print("\\x1b[2Jplain")' | abctl run py -s u/direct -p - >"$T/out" 2>&1
ok 'nor does abctl run' not env LC_ALL=C grep -qaP "$control" "$T/out"
like 'the rest is shown' "$(cat "$T/out")" plain

# ---- what it can reach of the daemon ----

ok 'a jail does not see the control socket' not abctl jail -- test -e "$T/sock"
is 'nor anything of the daemon in its environment' \
	"$(LD_PRELOAD_X=1 GIT_DIR=/x NODE_OPTIONS=--x BASH_ENV=/x abctl jail -- env 2>/dev/null | grep -cE '^(LD_|GIT_|NODE_|BASH_ENV|AGENTBOX)')" 0
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups -- curl -sS -m 20 -o "$T/out" -w '%{http_code}' --unix-socket "$T/sock" http://x/v1/runs; }
ok 'another user of the host is not let in' not as_nobody
chmod 666 "$T/sock"
: >"$T/out"
chmod 666 "$T/out"
is 'not even where the mode would let him' "$(as_nobody)" 403
chmod 660 "$T/sock"

# ---- what it leaves ----

# A file and a link change places as fast as they can, to the last moment of the run.
for i in 1 2 3 4 5; do
	agent "swap$i" <<-'PY'
		import ctypes, os, time
		os.makedirs("out")
		open("out/a", "w").write("inside")
		os.symlink("/etc/passwd", "out/b")
		swap = ctypes.CDLL(None, use_errno=True).renameat2
		if swap(-100, b"out/a", -100, b"out/b", 2):
		    raise OSError(ctypes.get_errno(), "renameat2")
		if os.fork() == 0:
		    os.setsid()
		    while True:
		        swap(-100, b"out/a", -100, b"out/b", 2)
		time.sleep(0.2)
	PY
	is "a file that is swapped for a link ($i): one artifact" "$(got "swap$i" 'l.result.status+" "+l.result.artifacts.length')" 'succeeded 1'
	is 'which is the file' "$(abctl artifacts "$(got "swap$i" 'l.runId||l.run')" get "$(got "swap$i" 'l.result.artifacts[0].path')")" inside
done


echo secret >"$T/outside"
agent files <<PY
import os, socket, tarfile, io
os.makedirs("out/dir")
os.chdir("out")
open("good", "w").write("good")
for name, to in (("absolute", "/etc/shadow"), ("host", "$T/outside"), ("relative", "../../../../etc/shadow"), ("loop", "loop"),
                 ("dangling", "nowhere"), ("self", "/proc/self/environ"), ("dirlink", "/etc"), ("ok", "good")):
    os.symlink(to, name)
for i in range(41):
    os.symlink("chain%d" % (i + 1), "chain%d" % i)
open("chain41", "w").write("end")
os.mkfifo("fifo")
s = socket.socket(socket.AF_UNIX)
s.bind("socket")
os.truncate(os.open("sparse", os.O_CREAT | os.O_RDWR), 8 << 30)
open("closed", "w").write("x")
os.chmod("closed", 0)
open(b"bad\\xff\\xfename", "w").write("x")
open("...", "w").write("x")
open("..x", "w").write("x")
os.mkdir("out.txt")
t = tarfile.open("evil.tar", "w")
for name in ("../../escape", "/etc/escape"):
    i = tarfile.TarInfo(name)
    i.size = 4
    t.addfile(i, io.BytesIO(b"evil"))
i = tarfile.TarInfo("device")
i.type, i.devmajor, i.devminor, i.mode = tarfile.BLKTYPE, 8, 0, 0o4777
t.addfile(i)
t.close()
PY
is 'a workspace of traps is collected' "$(got files 'l.result.status')" succeeded
is 'regular files with readable names, and nothing else' "$(got files 'l.result.artifacts.map(a=>a.path).sort().join(" ")')" \
	'out/... out/..x out/chain41 out/evil.tar out/good'
is 'the endless one and the closed one are named' \
	"$(got files 'l.result.skippedArtifacts.map(a=>a.path).filter(p=>/sparse|closed/.test(p)).sort().join(" ")')" 'out/closed out/sparse'
is 'nothing secret was copied' "$(grep -rlE '^(root:|secret)' "$T/state/supervisor/artifacts" | wc -l)" 0
ok 'it costs no disk' test "$(du -sm "$T/state/supervisor" | cut -f1)" -lt 200
run=$(got files 'l.runId||l.run')
abctl artifacts "$run" get out/evil.tar -o "$T/evil.tar" 2>/dev/null
like 'an archive stays an archive' "$(tar tf "$T/evil.tar" 2>/dev/null)" 'escape'
ok 'and is not unpacked' not test -e /etc/escape

# ---- what does not want to go ----

agent resist <<'PY'
import os
here = os.open(".", os.O_RDONLY)
for i in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
os.fchdir(here)
for i in range(3000):
    open("file%d" % i, "w")
os.makedirs("closed/in/side")
os.symlink("/etc", "closed/etc")
os.symlink("..", "closed/up")
os.link("file0", "closed/hard")
os.mkfifo("closed/fifo")
os.chmod("closed/in", 0)
os.chmod("closed", 0)
open("new\nline \x1b[2J", "w")
PY
is 'a workspace that resists' "$(got resist 'l.result.status')" succeeded
ok 'is deleted' abctl session rm u/resist
ok 'with everything in it' wait_for 60 sh -c "test -z \"\$(ls -A '$T/state/trash')\""
ok 'and nothing of the host' test -s /etc/passwd
ok 'no process of a jail' wait_for 5 no_jail_processes
is 'the supervisor is still the same process' "$(child_pid agentbox-supervisor)" "$super"
finish
