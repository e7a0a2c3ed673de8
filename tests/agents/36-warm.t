#!/usr/bin/env bash
# The real agents stay for the next run of their session: it is warm, sooner, in the same conversation, and has usage of its own.
. tests/agents/real.sh

models='claude=claude-sonnet-4-5 codex=gpt-5.5 opencode=anthropic/claude-sonnet-4-5 gemini=gemini-2.5-pro qwen=qwen3-coder-plus copilot=gpt-5.5 pi=anthropic/claude-sonnet-4-5'
only=${WARM_AGENTS:-claude codex opencode gemini qwen copilot pi}
for agent in $only; do install_agent "$agent"; done
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
echo '{ "turns": [ { "text": "So be it.", "repeat": -1, "usage": { "input": 1000, "output": 20 } } ] }' >"$T/scenario.json"
start_model || { echo 'not ok 1 - the stand-in model'; echo 1..1; exit 1; }
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
stand_in >"$T/etc/policy/model.yaml"
printf 'runs: { warm: 16, max: 32 }\n' >"$T/etc/agentboxd.yaml"
for pair in $models; do
	printf -- '---\nbackend: %s\npolicy: model\nmodel: %s\nwarm: { idleMs: 600000, memory: 4G }\nlimits: { timeoutMs: 300000 }\n---\nThe magic word is heliotrope.\n' \
		"${pair%%=*}" "${pair#*=}" >"$T/etc/harnesses/${pair%%=*}.md"
done
export PROOF_KEY=$KEY
start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || { echo 'not ok 1 - the daemon'; echo 1..1; exit 1; }

run() { abctl run "$1" -s "u/$1" -p "$2" --json >"$T/out" 2>"$T/err"; }
# what EXPRESSION: of the run's events, and its last line
what() { json "$1" <"$T/out"; }
began() { what 'e.find(x=>x.type==="run.started").warm'; }
# From the run's start to the first word of its agent.
first() { what 'Date.parse(e.find(x=>/^(agent.message|agent.thinking|tool)/.test(x.type)).ts)-Date.parse(e[0].ts)'; }
requests() { grep -cE '"kind":"(main|background)"' "$T/model.log"; }
for agent in $only; do
	run "$agent" 'Remember marmalade.'
	is "$agent: a first run" "$(what 'l.result.status+" "+l.result.exit.reason+" "+l.result.finalText.trim()')$(began)" 'succeeded kept So be it.false'
	cold=$(first)
	input=$(what 'l.result.usage.inputTokens')
	[ "$(what l.result.exit.reason)" = kept ] || what 'l.result' | sed 's/^/# /'
	sleep 2 # what it still says must not end it
	before=$(requests)
	run "$agent" 'Which word?'
	is "$agent: the second is warm" "$(what 'l.result.status+" "+l.result.exit.reason+" "+l.result.finalText.trim()')$(began)" 'succeeded kept So be it.true'
	warm=$(first)
	ok "$agent: and sooner ($warm ms, not $cold ms)" test "$warm" -lt "$cold"
	ok "$agent: in the same conversation" sh -c "grep -rl 'Which word' '$T/bodies' | xargs grep -q marmalade"
	is "$agent: its requests are its own" "$(what 'l.result.usage.requests')" "$(($(requests) - before))"
	ok "$agent: and its tokens ($(what 'l.result.usage.inputTokens'), $input before)" test "$(what 'l.result.usage.inputTokens')" -lt $((2 * input))
	rm -rf "${T:?}/bodies"/*
	is "$agent: what it says of them is, too" "$(what '(u=>u.length?u.pop().inputTokens<2000:true)(e.filter(x=>x.type==="usage"))')" true
	ok "$agent: nothing of it is unknown" test "$(what 'e.filter(x=>x.type==="agent.raw").length')" -lt 3
done
grep 'the agent of jail' "$T/log" | sed 's/^/# /'
for agent in $only; do run "$agent" 'Thanks.'; is "$agent: a third" "$(what 'l.result.status')$(began)" succeededtrue; done
stop_daemon TERM
ok 'nothing is left' wait_for 20 no_jail_processes
finish
