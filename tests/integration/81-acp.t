#!/usr/bin/env bash
# An agent of the Agent Client Protocol that is added by data alone: an agent.yaml and a program.
. tests/integration/lib.sh

. tests/integration/parrot.sh

mkdir -p "$T/etc/harnesses"
harness() { printf -- '---\nbackend: parrot\npolicy: demo\n%s\n---\n%s\n' "$2" "$3" >"$T/etc/harnesses/$1.md"; }
harness parrot 'artifacts: [out/**]' ''
harness told '' 'Be brief.'
harness deny 'permissions: deny' ''
harness asks 'permissions: ask' ''
harness tools 'tools: { allow: [Read] }' ''
# Two more of it: one that is served nothing, one whose program is not there.
for other in plain gone; do
	mkdir -p "$T/share/harnesses/agents/$other" && cp -r "$T/agents/parrot" "$T/agents/$other"
	sed "s/^name:.*/name: $other/; s/failure_text/files: false, terminals: false, failure_text/" \
		"$T/share/harnesses/agents/parrot/agent.yaml" >"$T/share/harnesses/agents/$other/agent.yaml"
	printf -- '---\nbackend: %s\npolicy: demo\n---\n' $other >"$T/etc/harnesses/$other.md"
done
sed -i 's/files: false, terminals: false/files: true/; s#bin/parrot#bin/gone#' "$T/share/harnesses/agents/gone/agent.yaml"
printf 'default_policy: demo\n' >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

# run HARNESS SESSION PROMPT: its events are in $T/out
run() { timeout 60 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
result() { json "[l.result.status,l.result.finalText.trim(),l.result.error||''].join('|')" <"$T/out"; }
events() { json "$1" <"$T/out"; }

run parrot a 'say:hello write:there say:bye'
is 'it runs' "$(result)" 'succeeded|bye|'
is 'what it says and does is told' "$(events 'e.filter(x=>/^(agent|tool|file)/.test(x.type)).map(x=>x.text||x.callId||x.diff).join()')" \
	'hello ,w,w,@@ -0,0 +1,1 @@
+there
,bye '
is 'its file comes back' "$(events 'l.result.artifacts.map(a=>a.path).join()')" out/x
run parrot a 'say:again'
is 'the next run goes on in the same session, without telling the old one again' "$(result)" \
	'succeeded|after:say:hello,write:there,say:bye, again|'
"$BIN/abctl" --socket "$T/sock" exec u/a -- rm -rf /home/agent/.parrot >/dev/null 2>&1
run parrot a 'say:lost'
is 'a session that it has lost begins anew' "$(result)" 'succeeded|lost|'
is 'which is told' "$(events 'e.filter(x=>/retry|resumed/.test(x.type)).map(x=>x.reason||x.how+" "+x.lost).join()')" \
	"native false,the agent has lost this session's conversation (no such session),transcript true"
run parrot a 'say:new'
is 'and the run after it goes on with that' "$(result)" 'succeeded|after:say:lost, new|'

run told b 'say:prompted'
is 'the system prompt goes first' "$(result)" 'succeeded|told:Be brief. prompted|'
run parrot c 'mode'
is 'permissions: auto has the one mode' "$(result)" 'succeeded|free|'
run deny d 'mode'
is 'permissions: deny the other' "$(result)" 'succeeded|careful|'
run parrot e 'ask'
is 'who asks is allowed' "$(result)" 'succeeded|allowed|'
is 'and that is told' "$(events 'e.filter(x=>/permission/.test(x.type)).map(x=>x.type+":"+(x.answer||x.title)).join()')" \
	'permission.asked:touch asked,permission.answered:once'
run deny f 'ask'
is 'or denied, by the kind of the option' "$(result)" 'succeeded|denied|'
"$BIN/abctl" --socket "$T/sock" run asks -s u/n -p 'ask mode say:more' --json >"$T/out" 2>"$T/err" &
child=$!
ok 'or waits for a person' wait_for 20 grep -q permission.asked "$T/out"
ok 'who says more' abctl send "$(events 'e[0].run')" 'say:heard'
ok 'and approves' wait_for 10 abctl approve "$(events 'e[0].run')"
wait "$child"
is 'which it hears, in the mode that asks' "$(result)" 'succeeded|after:ask,mode,say:more, heard|'
like 'careful it was' "$(events 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")')" '^allowed careful more after'

# What it asks of its client is done in its jail, with its rights.
run parrot g 'file get:/proc/1/environ get:/dev/zero get:/workspace/../etc/shadow'
is 'it is not lent the right to read a file' "$(result)" 'succeeded|host:-32002 got:-32002 got:-32603 got:-32002|'
run parrot p 'put:there get:/workspace/out/put'
is 'a file is written and read for it' "$(result)" 'succeeded|put got:there|'
is 'that is told' "$(events 'e.filter(x=>x.type==="file.changed").map(x=>x.change+" "+x.path).join()')" 'add out/put'
is 'the file is its own' "$(abctl exec u/p -- stat -c %u:%a /workspace/out/put)" 1000:644
is 'it comes back' "$(events 'l.result.artifacts.map(a=>a.path).join()')" out/put
run parrot r 'term:words'
is 'a command is run for it' "$(events 'e.filter(x=>/^tool/.test(x.type)).map(x=>[x.type,x.output,x.ok,x.exitCode].join(":")).join()')" \
	'tool.call:::,tool.update:words
::,tool.result:words
:true:0'
run parrot s 'flood say:on'
like 'one that prints for ever is ended' "$(result)" '^succeeded\|flood:SIGKILL on\|$'
ok 'and what it printed is told in part' test "$(stat -c %s "$T/out")" -lt 1000000
ok 'nothing of it is left' wait_for 20 no_jail_processes
run plain g 'file put:there'
is 'an agent whose agent.yaml says so is served nothing' "$(result)" 'succeeded|host:-32601|'
run gone g 'say:x'
is 'an agent whose program is not there has not started' "$(events '[l.result.status,l.result.exit.reason,l.result.exit.code].join()')" 'failed,not started,127'
run tools h 'say:none'
is 'a tool list cannot be told to it: it works without tools' "$(result)" 'succeeded|none|'
run tools h2 'write:x'
like 'or not at all' "$(result)" "^blocked\|\|it called the tool '.*', which tools.allow does not name"

run parrot i 'say:so fail'
is 'its error is the run'"'"'s' "$(result)" 'failed|so|Internal error: the model said no'
run parrot j 'say:x say:Error: no'
is 'a failure that is told as text is one' "$(result)" 'failed|x Error:|the agent reports a failure: Error: '
run parrot k ''
like 'silence is no success' "$(result)" '^failed\|\|the agent ended its turn without a word'

start=$(date +%s%N)
run parrot l 'say:done stay'
is 'an agent that stays after its last word has succeeded' "$(result)" 'succeeded|done|'
ms=$((($(date +%s%N) - start) / 1000000))
ok "and is ended soon ($ms ms)" test $ms -lt 30000
"$BIN/abctl" --socket "$T/sock" run parrot -s u/m -p 'say:on hang' --json >"$T/out" 2>"$T/err" &
child=$!
ok 'one that works' wait_for 20 grep -q '"text":"on ' "$T/out"
"$BIN/abctl" --socket "$T/sock" cancel "$(events 'e[0].run')" >/dev/null
wait "$child"
is 'is cancelled by the protocol' "$(events '[l.result.status,l.result.exit.reason,l.result.exit.code].join()')" cancelled,cancelled,0
ok 'nothing is left' wait_for 20 no_jail_processes
finish
