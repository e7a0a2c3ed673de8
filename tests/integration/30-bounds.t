#!/usr/bin/env bash
# Timeouts, cancels, output bounds, hostile agents; nothing survives.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
harness() { printf -- '---\nbackend: exec\n%s\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
harness stubborn "command: [sh, -c, 'trap \"\" TERM HUP INT; (setsid sh -c \"trap \\\\\"\\\\\" TERM; while :; do sleep 1; done\" &) ; while :; do echo x; sleep 0.1; done']
limits: { timeoutMs: 500 }"
harness sleeper "command: [sh, -c, 'echo on; sleep 1000']"
harness silent "command: [sh, -c, 'exec sleep 2']"
harness flood "command: [sh, -c, 'yes | head -c 30000000']
limits: { outputBytes: 1M }"
harness longline "command: [sh, -c, 'head -c 100000000 /dev/zero | tr \"\\\\0\" a; echo; echo end']
limits: { outputBytes: 2G }"
harness bytes "command: [sh, -c, 'printf \"a\\\\000b\\\\377\\\\376c\\\\n\"']"
harness fail "command: [sh, -c, 'echo why >&2; exit 3']
artifacts: ['*.txt']"
harness odd "command: [sh, -c, 'mkdir out; echo ok >out/a.txt; ln -s /etc/passwd out/link.txt; mkfifo out/fifo.txt; ln -s /etc out/dir; ln out/a.txt out/hard.txt; mkdir out/d.txt; truncate -s 1T out/sparse.bin; printf x >\"\$(printf \"out/new\\\\nline.txt\")\"']
artifacts: ['out/**/*.txt']"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
run() { abctl run "$1" -s "u/$1" -p "${2:-hi}" --json; }

start=$(date +%s%N)
run stubborn >"$T/out"
ms=$((($(date +%s%N) - start) / 1000000))
is 'an agent that ignores TERM and forks ends as timeout' "$(json 'l.result.status' <"$T/out")" timeout
ok "in about its time (${ms} ms from start to end of the client)" test "$ms" -lt 3000
ok 'the run itself took under a second' test "$(json 'l.result.durationMs' <"$T/out")" -lt 1000
ok 'nothing of it is left' wait_for 2 no_jail_processes

abctl run sleeper -s u/c --detach --json >"$T/out"
id=$(json 'l.runId||l.run' <"$T/out")
ok 'a detached run starts' wait_for 5 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
abctl run sleeper -s u/c --detach --json >"$T/queued"
queued=$(json 'l.runId||l.run' <"$T/queued")
is 'a second of the same session waits' "$(abctl show "$queued" --json | json 'l.status')" queued
abctl cancel "$queued" >/dev/null
is 'a queued run is cancelled at once' "$(abctl show "$queued" --json | json 'l.status||l.result.status')" cancelled
abctl cancel "$id" >/dev/null
ok 'a running one ends' wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q run.done"
is 'as cancelled' "$(abctl show "$id" --json | json 'l.status||l.result.status')" cancelled

is 'a large prompt to an agent that never reads it' "$(head -c 3000000 /dev/zero | tr '\0' p | abctl run silent -s u/s -p - --json | json 'l.result.status')" succeeded
run flood >"$T/out"
is 'output beyond its limit ends as quota' "$(json 'l.result.status' <"$T/out")" quota
like 'with its event' "$(cat "$T/out")" '"type":"limit.hit".*"output"'
rss() { awk '/VmHWM/ {print $2}' "/proc/$(child_pid agentbox-supervisor)/status"; }
run longline >"$T/out"
is 'a line of 100 MB is taken' "$(json 'l.result.status' <"$T/out")" succeeded
sanitized || ok "and memory stays flat ($(rss) KB at most)" test "$(rss)" -lt 200000
is 'nothing of it is lost' "$(json 'e.filter(x=>x.type==="agent.raw").reduce((n,x)=>n+x.line.length,0)' <"$T/out")" 100000000
run bytes >"$T/out"
is 'NUL and invalid UTF-8 are data' "$(json 'l.result.status' <"$T/out")" succeeded
run fail >"$T/out"
is 'a failing command fails the run' "$(json 'l.result.status+l.result.exit.code' <"$T/out")" failed3
like 'its stderr is the reason' "$(json 'l.result.error' <"$T/out")" why
run odd >"$T/out"
is 'only regular files become artifacts' "$(json 'l.result.artifacts.map(a=>a.path).sort().join()' <"$T/out")" "$(printf 'out/a.txt,out/hard.txt,out/new\nline.txt')"

# one reader that is not served makes the agent wait
abctl jail -- sh -c 'yes | head -c 300000000; echo done >&2' 2>"$T/err" | (sleep 2; head -c 10 >/dev/null; rss >"$T/rss"; cat >/dev/null)
sanitized || ok "a reader that stalls costs no memory ($(cat "$T/rss") KB)" test "$(cat "$T/rss")" -lt 200000
ok 'no process is left' wait_for 5 no_jail_processes
finish
