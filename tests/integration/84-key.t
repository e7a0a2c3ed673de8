#!/usr/bin/env bash
# The key of an injected upstream is nowhere in the jail: environments, arguments, memory, files,
# /proc, the wire; nor in what is kept of the run. Each search is shown to find what was planted there.
. tests/integration/lib.sh

PORT=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
KEY=sk-proof-$RANDOM$RANDOM$RANDOM
BEARER=sk-bearer-$RANDOM$RANDOM$RANDOM
PLANT=plant-$RANDOM$RANDOM$RANDOM
WAYS='whole error head redirect phrase early pieces events trailer model length coding garbage chunk cut'
HELPERS=()
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
python3 tests/integration/echo.py "$PORT" "$T/asked" "$PLANT.wire" >"$T/echo.out" 2>"$T/echo.err" &
HELPERS+=($!)
ok 'an upstream that sends the credential back' wait_for 20 grep -q ready "$T/echo.out" || finish
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
cat >"$T/etc/policy/echo.yaml" <<Y
extends: default
egress:
  inject:
    - { host: echo.agentbox, upstream: "http://127.0.0.1:$PORT", header: x-api-key, secret: PROOF_KEY, allow_loopback: true }
    - { host: bearer.agentbox, upstream: "http://127.0.0.1:$PORT", header: authorization, prefix: "Bearer ", secret: BEARER_KEY, allow_loopback: true }
Y
cat >"$T/etc/harnesses/asks.md" <<Y
---
backend: exec
policy: echo
command: [python3, -, $PLANT.argv]
env: { PLANTED: $PLANT.environ, WAYS: "$WAYS plant/whole" }
artifacts: ['out/**']
---
Y
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY BEARER_KEY=$BEARER
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# What is planted is put together when it runs: no text of the program has it.
cat >"$T/client.py" <<'PY'
import ctypes, mmap, os, subprocess, sys, time
def wait(name):
    while not os.path.exists("/workspace/" + name):
        time.sleep(0.05)
stem = sys.argv[1].rsplit(".", 1)[0]
plant = lambda what: stem + "." + what
for where in ("/workspace/out", "/home/agent/.config", "/tmp/x/y"):
    os.makedirs(where, exist_ok=True)
for path, what in (("/workspace/out/made", "workspace"), ("/home/agent/.config/made", "home"), ("/tmp/x/y/made", "tmp"), ("/dev/shm/made", "shm")):
    with open(path, "w") as f:
        f.write("x" * 5000 + plant(what))
nameless = open("/tmp/nameless", "w+")
nameless.write(plant("nameless"))
nameless.flush()
os.unlink("/tmp/nameless")
memfd = os.memfd_create("m")
os.write(memfd, plant("memfd").encode())
hidden = mmap.mmap(-1, 1 << 16)
hidden.write(b"." * 5000 + plant("memory").encode())
libc = ctypes.CDLL(None)
address = ctypes.addressof(ctypes.c_char.from_buffer(hidden))
assert libc.mprotect(ctypes.c_void_p(address), 1 << 16, 0) == 0
child = subprocess.Popen(["sleep", "1000"], env={"PLANTED": plant("child")})
libc.prctl(15, b"plant-comm", 0, 0, 0)
wait("go")
said = []
for host in ("echo.agentbox", "bearer.agentbox"):
    for how in os.environ["WAYS"].split():
        for options in ([], ["-L"], ["-H", "Range: bytes=0-9"]):
            r = subprocess.run(["curl", "-sS", "-i", "-m", "20", *options, f"http://{host}/{how}"], capture_output=True)
            said += [r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")]
print("\n".join(said))
with open("/workspace/out/said", "w") as f:
    f.write("\n".join(said))
open("/workspace/asked", "w").close()
wait("end")
child.kill()
PY
abctl run asks -s u/key -f "$T/client.py" --json >"$T/events" 2>"$T/err" &
run=$!
ok 'a program in a jail' wait_for 60 sh -c "'$BIN/abctl' --socket '$T/sock' exec u/key -- sh -c 'cat /proc/[0-9]*/comm' | grep -q plant-comm"
python3 tests/integration/wire.py "$(jail_processes | awk 'END { print $2 }')" "$T/wire" >"$T/wire.out" 2>&1 &
wire=$!
HELPERS+=("$wire")
ok 'its network is recorded' wait_for 20 grep -q ready "$T/wire.out"
abctl exec u/key -- touch /workspace/go
ok 'it asks in every way' wait_for 200 sh -c "'$BIN/abctl' --socket '$T/sock' exec u/key -- test -e /workspace/asked"
for k in "$KEY" "$BEARER"; do
	for way in $WAYS; do
		grep -q "^/$way $k\$" "$T/asked" || echo "$way"
	done
done >"$T/missing"
is 'the upstream got the keys, each time' "$(cat "$T/missing")" ''
kill "$wire"
wait "$wire"
ok 'no packet was missed' test $? = 0
sed 's/^/# /' "$T/wire.out"
mapfile -t pids < <(jail_processes | awk '{print $2}')
places=(environ argv memory child workspace home tmp shm nameless memfd wire)
python3 tests/integration/needles.py --wire "$T/wire" "$KEY" "$BEARER" plant-comm "${places[@]/#/$PLANT.}" -- "${pids[@]}" >"$T/found" 2>&1
ok 'the jail can be searched' test $? = 0
tail -n 1 "$T/found"
found() { grep -cP "^$1\t$2\t" "$T/found"; }
# where the planted one must be seen: a row each
while read -r what place; do
	ok "what was planted is found: $what, $place" test "$(found "$PLANT.$what" "$place")" -gt 0
done <<'X'
environ environ
argv argv
child environ
memory memory
workspace file
home file
tmp file
shm file
nameless descriptor
memfd descriptor
environ proc
argv proc
wire wire
wire memory
X
ok 'and the name of a thread in /proc' test "$(found plant-comm proc)" -gt 0
is 'the key is nowhere in the jail' "$(grep -E "^($KEY|$BEARER)" "$T/found")" ''
abctl exec u/key -- touch /workspace/end
wait $run
is 'the run ends well' "$(json 'l.result.status' <"$T/events")" succeeded
ok 'what it was told is in its events' grep -q "$PLANT.wire" "$T/events"
is 'the key is not' "$(grep -cE "$KEY|$BEARER" "$T/events")" 0
like 'masked, it is' "$(cat "$T/events")" 'Incorrect API key provided: \*{20}'
is 'with its artifacts' "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/events")" out/made,out/said
ok 'which have what it was told' grep -rq "$PLANT.wire" "$T/state"
is 'the key is in no file of state, artifacts and logs' "$(grep -rlaE "$KEY|$BEARER" "$T/state" "$T/log" "$T/err")" ''
like 'that it came back is told' "$(cat "$T/events")" 'its secret masked'
finish
