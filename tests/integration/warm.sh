# shellcheck shell=bash
# What the tests of agents that wait share: sourced after parrot.sh.

mkdir -p "$T/etc/harnesses"
harness() { printf -- '---\nbackend: parrot\npolicy: demo\n%s\n---\n%s\n' "$2" "${3:-}" >"$T/etc/harnesses/$1.md"; }
# run HARNESS SESSION PROMPT: its events are in $T/out
run() { timeout 60 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
result() { json "[l.result.status,l.result.finalText.trim(),l.result.error||''].join('|')" <"$T/out"; }
events() { json "$1" <"$T/out"; }
was_warm() { events 'e.find(x=>x.type==="run.started").warm'; }
stat() { abctl stats --json | json "l.$1"; }
waiting() { test "$(stat agentsWaiting)" = "$1"; }
# live_parrots N: so many of their processes
live_parrots() { test "$(jail_processes | grep -c '/opt/agent/bin/[p]arrot')" = "$1"; }
# begin CONFIGURATION
begin() {
	printf 'default_policy: demo\n%s\n' "$1" >"$T/etc/agentboxd.yaml"
	again || { echo "not ok 1 - start"; echo 1..1; exit 1; }
}
again() { start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents"; }
