#!/usr/bin/env bash
# An agent that asks, and who may answer: over the API and abctl, in time or not, twice, too late, and
# across the death of the supervisor.  Messages to an agent that works.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/parrot.sh

mkdir -p "$T/libexec" "$T/agents/claude/bin"
cp "$BIN"/agentbox-* "$T/libexec/"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
asking() { # NAME PERMISSIONS LINE...
	local name=$1 permissions=$2
	shift 2
	harness "$name" 'backend: claude' 'model: m' 'policy: demo' "permissions: $permissions" "$@"
}
asking ask ask
asking hasty '{ mode: ask, timeoutMs: 400 }'
asking yes '{ mode: ask, timeoutMs: 400, default: once }'
asking slow '{ mode: ask, timeoutMs: 5000 }'
asking short ask 'limits: { timeoutMs: 2000 }'
asking refuse deny
harness mute 'backend: exec' 'command: [cat]' 'permissions: ask'
script busy 'echo on; sleep 60'
harness colour 'backend: parrot' 'policy: demo' 'permissions: ask'
harness later 'backend: parrot' 'policy: demo' 'permissions: { mode: ask, timeoutMs: 400 }'
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --libexec "$T/libexec" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

# start HARNESS PROMPT: $id
runs=0
start() {
	runs=$((runs + 1))
	id=$(abctl run "$1" -s "u/r$runs" -p "$2" --detach)
}
# api PATH [BODY]: status and body in one line
api() {
	local out
	out=$(curl -sS -m 20 --unix-socket "$T/sock" -w '
%{http_code}' ${2:+-d "$2"} "http://x/v1/runs/$1")
	printf '%s %s
' "${out##*$'
'}" "${out%%$'
'*}"
}
answer() { api "$id/permissions/$1" "{\"answer\":\"$2\"}"; }
show() { abctl show "$id" --json | json "$1"; }
waits() { abctl show "$id" --json | json "(l.pending||[]).length===${1:-1}" | grep -qx true; }
log() { abctl logs "$id" --json | json "$1"; }
said() { log 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join()'; }
answers() { log 'e.filter(x=>x.type==="permission.answered").map(x=>[x.permissionId,x.answer,x.by].join(":")).join()'; }
done_() { wait_for "${1:-15}" ended; }

# asked and answered
start ask 'ask:p1 hear hear result'
ok 'an agent that asks waits' wait_for 10 waits
is 'the run says so' "$(show 'l.status+" "+l.state')" 'running waiting'
is 'and for what' "$(show '(p=>[p.permissionId,p.callId,p.name,p.title,p.options.join("|")].join())(l.pending[0])')" 'p1,call-p1,Bash,touch p1,once|always|deny'
is 'since when, and how long' "$(show '(p=>Math.round((Date.parse(p.expiresAt)-Date.parse(p.askedAt))/1000))(l.pending[0])')" 300
like 'abctl ps shows it' "$(abctl ps)" "^$id +waiting "
like 'an answer that is none' "$(answer p1 perhaps)" '^400 .*once, always or deny'
like 'a body that is none' "$(api "$id/permissions/p1" '{"answer":"once","x":1}')" '^400 .*"x'
like 'a permission that was not asked for' "$(answer p2 once)" '^404 .*asked for no permission p2'
like 'a run that does not exist' "$(api run_01jd0000000000000000000000/permissions/p1 '{"answer":"once"}')" '^404 '
ok 'none of that is an answer' waits
like 'the answer' "$(answer p1 once)" '^200 .*"permissionId":"p1","answer":"once"'
like 'a second one' "$(answer p1 deny)" '^409 .*p1 of run .* has been answered'
ok 'the agent hears it' wait_for 5 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q 'heard allow'"
is 'and the run waits no more' "$(show 'l.state+" "+("pending" in l)')" 'running false'
is 'the log says who it was' "$(log '(x=>[x.permissionId,x.callId,x.answer,x.by,x.uid].join())(e.find(x=>x.type==="permission.answered"))')" 'p1,call-p1,once,user,0'

# messages
ok 'a message' abctl send "$id" 'one more thing'
ok 'the run ends' done_
is 'which the agent heard' "$(said)" 'heard allow,heard message one more thing'
is 'and the log holds' "$(log '(x=>[x.text,x.by,x.uid].join())(e.find(x=>x.type==="user.message"))')" 'one more thing,user,0'
like 'nothing is taken after the end' "$(answer p1 once)$(api "$id/input" '{"text":"x"}')" '^409 .*has ended: succeeded.*409 .*has ended'
start busy x
wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
like 'an agent that hears nothing while it works' "$(api "$id/input" '{"text":"x"}')" '^409 .*hears nothing while it works'
like 'an empty message' "$(api "$id/input" '{"text":""}')" '^400 .*text: is empty'
{ printf '{"text":"'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}'; } >"$T/large"
is 'a message that is too large' "$(curl -sS -m 20 -o /dev/null -w '%{http_code}' --unix-socket "$T/sock" -d @"$T/large" "http://x/v1/runs/$id/input")" 413
like 'nothing was asked there' "$(answer p1 once)" '^404 '
like 'a question neither' "$(api "$id/questions/q1" '{"text":"x"}')" '^404 .*asked for no question q1'
abctl cancel "$id" --now >/dev/null

# abctl
start ask 'ask:p1 hear ask:p2 ask:p3 hear ask:p4 hear hear result'
wait_for 10 waits
ok 'abctl deny finds the only one' abctl deny "$id"
wait_for 10 waits 2
not abctl approve "$id" >/dev/null 2>"$T/err"
like 'of two it takes none' "$(cat "$T/err")" 'p2  touch p2'
ok 'but the one that is named' abctl approve "$id" p3 --always
ok 'what follows is allowed by that' wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q '\"p4\".*\"always\",\"by\":\"harness\"'"
ok 'the other is answered late' abctl deny "$id" p2
ok 'it ends' done_
is 'each answer is heard' "$(said)" 'heard deny,heard allow,heard allow,heard deny'
is 'and in the log once' "$(answers)" 'p1:deny:user,p3:always:user,p4:always:harness,p2:deny:user'
not abctl approve "$id" >/dev/null 2>"$T/err"
like 'nothing is open then' "$(cat "$T/err")" 'waits for no answer'

# nobody answers
start hasty 'ask:p1 hear result'
ok 'nobody answers: it goes on' done_
is 'denied' "$(said)" 'heard deny'
is 'by the harness, and why' "$(log '(x=>[x.answer,x.by,x.reason,"uid" in x].join())(e.find(x=>x.type==="permission.answered"))')" 'deny,harness,nobody answered within 400 ms,false'
start yes 'ask:p1 hear result'
ok 'or as the harness says' done_
is 'allowed' "$(said)" 'heard allow'
start refuse 'ask:p1 hear result'
ok 'permissions: deny asks nobody' done_
is 'and denies' "$(answers)" 'p1:deny:harness'
abctl run mute -s u/mute -p x >/dev/null 2>"$T/err"
like 'an agent that cannot ask is refused' "$(cat "$T/err")" "permissions: ask: agent 'exec' cannot do that \(ask\)"

# questions with a text for an answer
start colour which
ok 'a question waits' wait_for 15 waits
is 'as itself' "$(show '(q=>[q.questionId,q.text,"permissionId" in q].join())(l.pending[0])')" 'q,Which colour?,false'
kill_child agentbox-supervisor
like 'it is no permission' "$(answer q once)" '^404 '
ok 'it is answered' abctl answer "$id" 'dark blue'
ok 'and the run ends' done_
is 'the agent hears it' "$(said)" 'colour:accept:dark blue'
is 'and the log tells it once' "$(log 'e.filter(x=>/question/.test(x.type)).map(x=>[x.type,x.text,x.by].join(":")).join()')" \
	'question.asked:Which colour?:,question.answered:dark blue:user'
start later which
ok 'nobody answers: it goes on' done_
is 'the agent is told so' "$(said)" 'colour:cancel:'
is 'and the log' "$(log '(x=>[x.text,x.by,x.reason].join())(e.find(x=>x.type==="question.answered"))')" ',harness,nobody answered within 400 ms'

# ends while it waits
start ask 'ask:p1 hear hear'
wait_for 10 waits
abctl cancel "$id" >/dev/null
ok 'a cancel while it waits' done_
is 'is one' "$(show 'l.result.status')" cancelled
is 'and leaves nothing open' "$(answers)" 'p1:cancelled:harness'
start short 'ask:p1 hear'
ok 'the clock of the run goes on meanwhile' done_ 20
is 'a timeout' "$(show 'l.result.status')" timeout
is 'leaves nothing open' "$(log '(x=>[x.answer,x.reason].join())(e.find(x=>x.type==="permission.answered"))')" 'cancelled,the run ended'
start ask 'ask:p1 withdraw:p1 say:on sleep:2 result'
wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
like 'a question that was taken back' "$(answer p1 once)" '^409 .*has been answered'
ok 'needs no answer' done_
is 'as the log says' "$(answers)" 'p1:cancelled:agent'

# many at once
start ask 'ask:p1 hear sleep:1 result'
wait_for 10 waits
for i in $(seq 12); do
	answer p1 "$([ $((i % 2)) = 0 ] && echo once || echo deny)" >"$T/race.$i" &
	race="${race:-} $!"
done
# shellcheck disable=SC2086 # a list of numbers
wait $race
is 'of twelve answers one counts' "$(cat "$T"/race.* | cut -c1-3 | sort | uniq -c | tr -s ' \n' ' ')" ' 1 200 11 409 '
ok 'it ends' done_
is 'and one is heard' "$(log 'e.filter(x=>/^heard/.test(x.text)).length')" 1

# the supervisor dies
start ask 'ask:p1 hear hear result'
wait_for 10 waits
before=$(show '(p=>p.askedAt)(l.pending[0])')
kill_child agentbox-supervisor
ok 'a question outlives the supervisor' waits
is 'with its time' "$(show '(p=>p.askedAt)(l.pending[0])')" "$before"
kill_child agentbox-supervisor
answer p1 once >/dev/null
kill_child agentbox-supervisor
ok 'so does its answer' wait_for 10 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q 'heard allow'"
like 'which is not asked for again' "$(answer p1 deny)" '^409 .*has been answered'
abctl send "$id" 'the end' >/dev/null
kill_child agentbox-supervisor
ok 'it ends well' done_
is 'all was heard once' "$(said)" 'heard allow,heard message the end'
is 'and told once' "$(log 'e.map(x=>x.type).filter(x=>/^(perm|user)/.test(x)).join()')" 'permission.asked,permission.answered,user.message'
is 'without a hole' "$(log 'e.every((x,i)=>x.seq===i+1)')" true
start slow 'ask:p1 hear result'
wait_for 10 waits
sleep 2
kill_child agentbox-supervisor
ok 'the time to answer does not begin anew' done_ 12
ms=$(log '(f=>Date.parse(f("permission.answered").ts)-Date.parse(f("permission.asked").ts))(t=>e.find(x=>x.type===t))')
ok "it is 5 s, and what a loaded machine takes ($ms ms)" test "$ms" -ge 4990 -a "$ms" -lt 6900
start ask 'ask:p1 hear result'
wait_for 10 waits
renew "$T/libexec" agentbox-supervisor
ok 'a new binary' abctl reload
ok 'finds the question' wait_for 10 waits
answer p1 deny >/dev/null
ok 'and its answer counts' done_
is 'it was heard' "$(said)" 'heard deny'

# who it was, where a key says so
abctl key add acme >"$T/acme.key" 2>/dev/null
id=$("$BIN/abctl" --socket "$T/sock" --key-file "$T/acme.key" run ask -s u/key -p 'ask:p1 hear result' --detach)
wait_for 10 waits
curl -sS -o /dev/null --unix-socket "$T/sock" -H "Authorization: Bearer $(cat "$T/acme.key")" -d '{"answer":"once"}' "http://x/v1/runs/$id/permissions/p1"
ok 'answered with a key' done_
is 'which is told by its name' "$(log '(x=>[x.answer,x.by,x.uid,x.key].join())(e.find(x=>x.type==="permission.answered"))')" once,user,0,acme

# many lines a read, told in parts, and a message in between
start ask 'sleep:0.3 flood:30000 hear result'
flows() { [ "$(abctl logs "$id" --json | head -n 50 | wc -l)" = 50 ]; }
ok 'a flood of lines' wait_for 10 flows
abctl send "$id" 'in between' >/dev/null
kill -9 "$(child_pid agentbox-supervisor)"
ok 'ends well though its supervisor is killed' done_ 60
is 'each line is one event' "$(log '[e.filter(x=>x.type==="agent.raw").length,e.every((x,i)=>x.seq===i+1)].join()')" 30000,true
is 'and the message was heard once' "$(said)" 'heard message in between'
ok 'nothing is left' wait_for 10 no_jail_processes
finish
