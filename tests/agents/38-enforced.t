#!/usr/bin/env bash
# Turns and tools that real agents cannot be told: agentbox ends their runs.
#	AGENTS_ENFORCED="codex pi"	only these
. tests/agents/real.sh

agents=${AGENTS_ENFORCED:-codex pi opencode gemini qwen copilot}
for agent in $agents; do
	install_agent "$agent"
done
start_scenarios
# harness NAME SCENARIO KEYS: turns of its own at the model
harness() {
	stand_in | sed "s,\(upstream: \"http://[^\"]*\)\",\1/x/$2/$1\"," >"$T/etc/policy/$1.yaml"
	printf -- '---\nbackend: %s\npolicy: %s\n%s\n---\n' "$agent" "$1" "$3" >"$T/etc/harnesses/$1.md"
}
run() { abctl run "$1" -s "u/$1" -p 'Do it.' --json >"$T/out" 2>"$T/err"; }
result() { json '[l.result.status,l.result.exit.reason,l.result.error||""].join("|")' <"$T/out"; }
events() { json "$1" <"$T/out"; }

for agent in $agents; do
	model=''
	case $agent in
	codex) model=$'model: gpt-5.5\n' ;;
	pi) model=$'model: anthropic/claude-sonnet-4-5\n' ;;
	esac
	harness "$agent-loop" loop "${model}limits: { maxTurns: 2, timeoutMs: 300000 }"
	harness "$agent-two" tool "${model}limits: { maxTurns: 2, timeoutMs: 300000 }"
	harness "$agent-deny" tool "${model}tools: { deny: [execute] }"
done
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish

for agent in $agents; do
	run "$agent-loop"
	is "$agent: a model that goes on for ever" "$(result)" 'failed|limit|it has had the 2 turns of limits.maxTurns and began another'
	is "$agent: had its turns" "$(events 'e.filter(x=>x.type==="limit.hit").map(x=>x.limit+x.value).join()')" turns2
	calls=$(events 'e.filter(x=>x.type==="tool.call").length')
	ok "$agent: and called so many tools ($calls)" test "$calls" -ge 2 -a "$calls" -le 3
	run "$agent-two"
	is "$agent: two turns are two" "$(result)" 'succeeded|exit|'
	[ "$agent" = pi ] && continue # it withholds tools by itself
	run "$agent-deny"
	like "$agent: a command, where commands are refused" "$(result)" "^blocked.policy.it called the tool '.*', which 'execute' of tools.deny refuses"
done
ok 'nothing is left' wait_for 20 no_jail_processes
finish
