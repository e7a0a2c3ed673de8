#!/usr/bin/env bash
# A session from one real agent to the next: what the first one said comes to the model of the second.
# And with one agent: a turn is stopped, and the conversation goes on.
. tests/agents/real.sh

STOPPED='claude codex pi opencode'
for a in $STOPPED; do install_agent "$a"; done
start_scenarios
# harness NAME AGENT SCENARIO SESSION-OF-THE-MODEL
harness() {
	local model=anthropic/claude-sonnet-4-5
	[ "$2" != claude ] || model=claude-sonnet-4-5
	[ "$2" != codex ] || model=gpt-5.5
	stand_in | sed "s,http://127.0.0.1:[0-9]*,&/x/$3/$4," >"$T/etc/policy/$1.yaml"
	printf -- '---\nbackend: %s\npolicy: %s\nmodel: %s\nlimits: { timeoutMs: 120000 }\n---\n' "$2" "$1" "$model" >"$T/etc/harnesses/$1.md"
}
for a in claude codex opencode; do harness "relay-$a" $a relay relay; done
for a in $STOPPED; do harness "stop-$a" "$a" stopped "stop-$a"; done
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
# go HARNESS SESSION PROMPT
go() { timeout 300 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
result() { json "[l.result.status,l.result.finalText.trim(),l.result.error||''].join('|')" <"$T/out"; }
how() { json 'e.filter(x=>x.type==="session.resumed").map(x=>[x.how,x.fromBackend].join()).join(" ")' <"$T/out"; }

go relay-claude relay 'Remember heliotrope.'
is 'claude begins' "$(result)" 'succeeded|I add the word KESTREL.|'
go relay-codex relay 'Add a bird.'
is 'the model of codex has its words' "$(result)" 'succeeded|I add the word PELICAN.|'
is 'as text' "$(how)" transcript,claude
go relay-opencode relay 'And another.'
is 'that of opencode has those of both' "$(result)" 'succeeded|I add the word OSPREY.|'
is 'likewise' "$(how)" transcript,codex
go relay-claude relay 'Say them all.'
is 'claude goes on with its own, and what came since' "$(result)" 'succeeded|heliotrope KESTREL PELICAN OSPREY|'
is 'as both' "$(how)" native+transcript,opencode

hangs() { grep -q "\"session\":\"stopped/stop-$1\".*\"kind\":\"main\"" "$T/model.log"; }
over() { abctl show "$id" --json | grep -q '"exit"'; }
for a in $STOPPED; do
	abctl run "stop-$a" -s "u/$a" -p 'Begin with jasmine.' --detach --json >"$T/run"
	id=$(json 'l.runId' <"$T/run")
	ok "$a: a turn that takes long" wait_for 30 hangs "$a"
	sleep 2
	abctl cancel "$id" >/dev/null
	ok 'is stopped' wait_for 20 over
	is 'by its protocol, not by a signal' "$(abctl show "$id" --json | json '[l.result.status,l.result.exit.signal||0].join()')" cancelled,0
	go "stop-$a" "$a" 'Go on with juniper.'
	is 'and the conversation goes on' "$(result)" 'succeeded|It went on.|'
	like 'with what it was told before' "$(how)" "^native"
done
finish
