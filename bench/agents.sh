#!/usr/bin/env bash
# agents.sh - from the request to the agent's first word, for each agent that is installed in BENCH_AGENTS (default: where the
# tests install them; only those that ONLY names), with a model that answers at once: a new process (cold), one that has stayed since the session's last run (kept), and one
# that was started before anybody asked (ahead).  Medians of ROUNDS (default 5).
set -u
. tests/agents/real.sh >/dev/null

ROUNDS=${ROUNDS:-5}
AGENTS=${BENCH_AGENTS:-$AGENTS}
models='claude=claude-sonnet-4-5 codex=gpt-5.5 opencode=anthropic/claude-sonnet-4-5 gemini=gemini-2.5-pro qwen=qwen3-coder-plus copilot=gpt-5.5 pi=anthropic/claude-sonnet-4-5'
fail() {
	echo "bench: agents: $*" >&2
	tail -n 5 "$T/log" >&2
	exit 111
}
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
echo '{ "turns": [ { "text": "So be it.", "repeat": -1 } ] }' >"$T/scenario.json"
start_model || fail 'the stand-in model does not start'
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
stand_in >"$T/etc/policy/model.yaml"
printf 'runs: { warm: 64, max: 64 }\n' >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
# harness AGENT MODEL NAME KEYS
harness() { printf -- '---\nbackend: %s\npolicy: model\nmodel: %s\n%s\n---\nBe brief.\n' "$1" "$2" "$4" >"$T/etc/harnesses/$3.md"; }
start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" >/dev/null || fail 'the daemon does not start'

# first HARNESS SESSION WARM: milliseconds from run.queued to the first word, in $ms
first() {
	abctl run "$1" -s "bench/$2" -p 'Say something.' --json >"$T/out" 2>"$T/err" || fail "$1: $(tail -n 1 "$T/err")"
	[ "$(json 'e.find(x=>x.type==="run.started").warm' <"$T/out")" = "$3" ] || fail "$1: warm is not $3"
	ms=$(json 'Date.parse(e.find(x=>/^(agent.message|agent.thinking|tool)/.test(x.type)).ts)-Date.parse(e[0].ts)' <"$T/out")
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
waiting() { [ "$(abctl stats --json | json l.agentsWaiting)" -ge "$1" ]; }
none_waits() { [ "$(abctl stats --json | json l.agentsWaiting)" = 0 ]; }
measure() { # AGENT
	local i
	: >"$T/cold"; : >"$T/kept"; : >"$T/ahead"
	for i in $(seq "$ROUNDS"); do
		first cold "$1-cold-$i" false
		echo "$ms" >>"$T/cold"
	done
	first kept "$1-kept" false
	for i in $(seq "$ROUNDS"); do
		first kept "$1-kept" true
		echo "$ms" >>"$T/kept"
	done
	harness "$1" "$2" ahead 'warm: { idleMs: 3600000, memory: 8G, ahead: 1 }'
	for i in $(seq "$ROUNDS"); do
		wait_for 60 waiting $((i + 1)) || fail "$1: none is started ahead"
		sleep "${SETTLE:-8}" # until it waits for its prompt
		first ahead "$1-ahead-$i" true
		echo "$ms" >>"$T/ahead"
	done
}
found=0
for pair in $models; do
	agent=${pair%%=*}
	[ -d "$AGENTS/$agent" ] || continue
	case " ${ONLY:-$agent} " in *" $agent "*) ;; *) continue ;; esac
	found=1
	rm -f "$T/etc/harnesses/ahead.md"
	harness "$agent" "${pair#*=}" cold ''
	harness "$agent" "${pair#*=}" kept 'warm: { idleMs: 3600000, memory: 8G }'
	measure "$agent" "${pair#*=}"
	rm -f "$T/etc/harnesses/ahead.md"
	abctl reload >/dev/null && wait_for 30 none_waits || fail "$agent: what waits does not end"
	cold=$(median <"$T/cold")
	printf 'agents_%s_cold\t%s\tms\n' "$agent" "$cold"
	for how in kept ahead; do
		warm=$(median <"$T/$how")
		printf 'agents_%s_%s\t%s\tms\n' "$agent" "$how" "$warm"
		printf 'agents_%s_%s_vs_cold\t%s\tratio\n' "$agent" "$how" "$(awk "BEGIN { printf \"%.3f\", $warm / $cold }")"
	done
done
[ $found = 1 ] || fail "no agent is installed in $AGENTS"
