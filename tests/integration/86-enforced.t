#!/usr/bin/env bash
# What an agent cannot be told, agentbox enforces by ending the run: turns, names of tools.
. tests/integration/lib.sh

. tests/integration/parrot.sh

mkdir -p "$T/etc/harnesses"
# harness NAME KEYS: a command that is its prompt, and prints events
harness() { printf -- '---\nbackend: exec\npolicy: demo\ncommand: [sh, -c, "cat >/tmp/s; . /tmp/s; sleep 300 & sleep 300"]\nartifacts: [out/**]\n%s\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
parrot() { printf -- '---\nbackend: parrot\npolicy: demo\nartifacts: ["**"]\n%s\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
harness turns 'limits: { maxTurns: 2 }'
harness deny 'tools: { deny: [shell, fetch] }'
harness allow 'tools: { allow: [read] }'
harness none 'tools: { allow: [] }'
parrot birds 'tools: { deny: [execute] }'
parrot fewer 'limits: { maxTurns: 1 }'
parrot files $'tools:\n  mcp:\n    files: { command: x }'
parrot tunes $'tools:\n  allow: ["execute(ls:*)"]'
cat >"$T/share/harnesses/agents/parrot/agent.yaml" <<'Y'
name: parrot
driver: acp
program: /opt/agent/bin/parrot
installed_files: true
acp: { mode: free, ask_mode: careful }
cannot: [mcp_stdio]
Y
printf 'default_policy: demo\n' >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

say='say() { printf "{\"type\":\"agent.message\",\"text\":\"%s\",\"delta\":false}\n" "$1"; }
call() { printf "{\"type\":\"tool.call\",\"callId\":\"%s\",\"name\":\"%s\",\"kind\":\"%s\",\"input\":{},\"title\":\"\"}\n" "$1" "$2" "$3"; }
result() { printf "{\"type\":\"tool.result\",\"callId\":\"%s\",\"name\":\"x\",\"ok\":true,\"output\":\"\"}\n" "$1"; }
'
# run HARNESS SESSION PROMPT: its events are in $T/out
run() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
command() { run "$1" "$2" "$say$3"; }
events() { json "$1" <"$T/out"; }
result() { events '[l.result.status,l.result.exit.reason,l.result.error||""].join("|")'; }

# ---- turns ----
command turns a 'say one; call 1 read read; result 1; say two; exit 0'
is 'as many turns as it may have' "$(result)" 'succeeded|exit|'
command turns b 'say one; call 1 x read; call 2 y read; result 1; result 2; call 3 z read; result 3; say three; mkdir out; echo >out/late'
is 'one more ends the run' "$(result)" 'failed|limit|it has had the 2 turns of limits.maxTurns and began another'
is 'which is told once' "$(events 'e.filter(x=>x.type==="limit.hit").map(x=>x.limit+x.value).join()')" turns2
is 'at the first word of it' "$(events 'e.map(x=>x.text).filter(x=>x).join()')" one,three
ok 'and nothing of it lives' wait_for 20 no_jail_processes
command turns c 'exec >/dev/null; sleep 1; exit 0'
is 'who says nothing has no turn' "$(result)" 'succeeded|exit|'
run fewer d 'say:one say:more'
is 'a protocol that tells of no turns' "$(result)" 'succeeded|exit|'
run fewer e 'say:one write:x say:two hang'
is 'is counted by what it does' "$(result)" 'failed|limit|it has had the 1 turns of limits.maxTurns and began another'

# ---- tools ----
command deny f 'call 1 read read; result 1; say fine; exit 0'
is 'a tool that is not refused' "$(result)" 'succeeded|exit|'
command deny g 'call 1 read read; result 1; call 2 SHELL execute; sleep 300'
is 'one that is' "$(result)" "blocked|policy|it called the tool 'SHELL', which 'shell' of tools.deny refuses"
is 'is told as an error' "$(events 'e.filter(x=>x.type==="error").map(x=>x.code+x.retryable).join()')" tool_refusedfalse
is 'the call is in the log, and closed' "$(events 'e.filter(x=>/^tool/.test(x.type)).map(x=>x.type+x.callId+(x.ok??"")).join()')" \
	tool.call1,tool.result1true,tool.call2,tool.result2false
ok 'and nothing of it lives' wait_for 20 no_jail_processes
is 'abctl says it failed' "$(abctl run deny -s u/g2 -p "${say}call 1 shell execute" >"$T/out" 2>&1; echo $?)" 1
like 'and why' "$(cat "$T/out")" "it called the tool 'shell', which 'shell' of tools.deny refuses"
command deny h 'call 1 curl fetch'
is 'or one of a kind that is' "$(result)" "blocked|policy|it called the tool 'curl', which 'fetch' of tools.deny refuses"
command allow i 'call 1 read read; result 1; say fine; exit 0'
is 'a tool that is allowed' "$(result)" 'succeeded|exit|'
command allow j 'call 1 read\\u200b read'
like 'one that only looks like it is not' "$(result)" "^blocked.policy.it called the tool 'read.*', which tools.allow does not name"
command none k 'call 1 read read'
is 'no tool at all' "$(result)" "blocked|policy|it called the tool 'read', which tools.allow does not name"
run birds l 'ask say:done'
like 'who asks before it acts' "$(result)" "^blocked.policy.it called the tool '.*', which 'execute' of tools.deny refuses"
is 'has not acted' "$(events 'l.result.artifacts.length')" 0
# What is not told is not seen, and what an agent says of itself is its own word: docs/AGENTS.md.
command deny m 'mkdir out; echo >out/done; exit 0'
is 'a call that is not told is not seen' "$(result)" 'succeeded|exit|'

# ---- the supervisor dies in between ----
abctl run deny -s u/n -p "${say}say on; sleep 3; call 1 shell execute" --detach --json >"$T/out"
id=$(events 'l.runId')
ok 'it works' wait_for 20 sh -c "'$BIN/abctl' --socket '$T/sock' logs $id | grep -q on"
kill -KILL "$(child_pid agentbox-supervisor)"
ok 'a supervisor that comes in between goes on' wait_for 60 \
	sh -c "'$BIN/abctl' --socket '$T/sock' show $id --json | grep -q '\"status\":\"blocked\"'"
abctl run turns -s u/o -p "${say}say on; call 1 a read; result 1; say two; sleep 3; call 2 a read; result 2; say three" --detach --json >"$T/out"
id=$(events 'l.runId')
ok 'it works' wait_for 20 sh -c "'$BIN/abctl' --socket '$T/sock' logs $id | grep -q two"
kill -KILL "$(child_pid agentbox-supervisor)"
ok 'and has not forgotten the turns' wait_for 60 \
	sh -c "'$BIN/abctl' --socket '$T/sock' show $id --json | grep -q 'it has had the 2 turns'"
is 'which are told once' "$(abctl logs "$id" --json | grep -c limit.hit)" 1

# ---- what nobody enforces is refused, in one wording ----
like 'a server that its agent does not use' "$(abctl run files -s u/p -p x 2>&1)" \
	"files.md:7: tools.mcp with a command: agent 'parrot' cannot do that \(mcp_stdio\); use an agent that can \([a-z, ]+\), or leave it out"
like 'the list says so' "$(abctl harness ls --json | json 'l.harnesses.find(h=>h.name==="files").error')" \
	"^files.md:7: tools.mcp with a command: agent 'parrot' cannot do that"
like 'a pattern' "$(abctl run tunes -s u/q -p x 2>&1)" \
	"tunes.md:6: patterns of tools: agent 'parrot' cannot do that \(tool_patterns\); use an agent that can \(claude\), or leave it out"
sed 's/backend: parrot/backend: copilot/' "$T/etc/harnesses/tunes.md" >"$T/tunes.md"
abctl harness lint "$T/tunes.md" >"$T/out"
is 'lint refuses' $? 1
is 'in the same words' "$(sed 's/.*tunes.md/tunes.md/' "$T/out")" \
	"tunes.md:6: patterns of tools: agent 'copilot' cannot do that (tool_patterns); use an agent that can (claude), or leave it out"
sed 's/backend: parrot/backend: codex/' "$T/etc/harnesses/birds.md" >"$T/birds.md"
is 'and says what is enforced' "$(abctl harness lint "$T/birds.md" | sed 's/.*birds.md/birds.md/')" \
	"birds.md:5: tools.deny: agent 'codex' cannot do that (tools_deny), agentbox does: a call of such a tool ends the run"
ok 'which is no fault' abctl harness lint "$T/birds.md"
finish
