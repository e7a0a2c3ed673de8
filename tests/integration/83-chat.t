#!/usr/bin/env bash
# A person at a terminal: keys answer what the agent asks, lines are messages, and a session goes on
# from one to the next.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/terminal.sh

mkdir -p "$T/agents/claude/bin"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
script busy 'echo on; sleep 60'
harness ask 'backend: claude' 'model: m' 'policy: demo' 'permissions: ask'
start_daemon --config "$T/etc/agentboxd.yaml" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

said() { abctl logs "$1" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join()'; }
list() { abctl runs --session "$1" --json | json 'l.runs.map(x=>x.runId).reverse().join(" ")'; }
session_of() { abctl sessions --json | json "l.sessions.find(x=>x.goalId==='$1').sessionId"; }

# abctl run, asked
tty "$T/run" run ask -s u/keys -p 'ask:p1 hear ask:p2 hear ask:p3 hear ask:p4 hear result' <<'S'
allow touch p1	x
	y
allow touch p2	n
allow touch p3	a
S
like 'keys answer, a wrong one does nothing' "$(cat "$T/run")" '^exit 0 left 0'
read -r id < <(list "$(session_of keys)")
is 'and the agent hears them' "$(said "$id")" 'heard allow,heard deny,heard allow,heard allow'
is 'each once' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="permission.answered").map(x=>[x.permissionId,x.answer,x.by].join(":")).join()')" \
	'p1:once:user,p2:deny:user,p3:always:user,p4:always:harness'
tty "$T/run" run ask -s u/stop -p 'ask:p1 hear' <<'S'
allow touch p1	\x03
S
like 'Ctrl-C while it is asked cancels' "$(cat "$T/run")" '^exit 1 left 0'
timeout 60 "$BIN/abctl" --socket "$T/sock" run ask -s u/other -p 'ask:p1 hear result' >"$T/out" 2>"$T/err" </dev/null &
a=$!
wait_for 30 grep -q 'abctl approve' "$T/err"
like 'elsewhere it says how' "$(cat "$T/err")" 'asks for permission: touch p1 - to answer: abctl approve run_[a-z0-9]+ p1, or deny'
# shellcheck disable=SC2046 # its words are the command
abctl approve $(sed -n 's/.*abctl approve \(run_[a-z0-9]* p1\).*/\1/p' "$T/err") >/dev/null
wait $a
is 'which it follows to the end' $? 0

# abctl chat
tty "$T/chat" chat ask -s u/talk <<'S'
> 	say:one hear say:two result\n
\r\none\r\n	how are you\n
\r\n> how are you\r\n	
\r\n> 	say:three result\n
\r\nthree\r\n	
\r\n> 	\x04
S
like 'it ends with Ctrl-D' "$(cat "$T/chat")" '^exit 0 left'
read -r first second rest < <(list "$(session_of talk)")
is 'a line while it works is a message' "$(said "$first")" 'one,heard message how are you,two'
is 'the next one a run that goes on' "$(said "$second")" 'resumed,three'
is 'and no more' "${rest:-}" ''
tty "$T/chat" chat u/talk <<'S'
> 	say:four ask:p1 hear hear result\n
allow touch p1	y
\r\nheard allow\r\n	\x03
\r\n> 	say:five result\n
\r\nfive\r\n	
\r\n> 	\x03
S
like 'a session is enough, and Ctrl-C at the prompt leaves' "$(cat "$T/chat")" '^exit -2 left 0'
read -r _ _ third fourth < <(list "$(session_of talk)")
is 'it asks there, too' "$(said "$third")" 'resumed,four,heard allow'
is 'Ctrl-C ends the turn' "$(abctl show "$third" --json | json 'l.result.status')" cancelled
is 'not the conversation' "$(said "$fourth")" 'resumed,five'
# A line that the terminal cuts; and lines that wait when it is interrupted.
long=$(head -c 5000 /dev/zero | tr '\0' x)
tty "$T/chat" chat ask -s u/paste <<S
> 	say:$long result\\n
not sent	say:six result\\n
\\r\\nsix\\r\\n	
\\r\\n> 	\\x04
S
like 'a line that was cut is not sent' "$(cat "$T/chat")" 'not sent: a terminal passes on 4095 bytes'
read -r first rest < <(list "$(session_of paste)")
is 'the next one is' "$(said "$first") ${rest:-}" 'six '
tty "$T/chat" chat busy -s u/dropped <<'S'
> 	go\n
\r\non\r\n	later\n
	\x03
\r\n> 	\x04
S
like 'Ctrl-C ends a turn' "$(cat "$T/chat")" '^exit 1 left 0'
read -r _ rest < <(list "$(session_of dropped)")
is 'and what was typed for a next one' "${rest:-}" ''
printf 'say:a result\n\nsay:b result' | abctl chat ask -s u/lines --json >"$T/out" 2>"$T/err"
is 'without a terminal: lines in order, each a run' \
	"$(json 'e.filter(x=>/agent.message|run.done/.test(x.type)).map(x=>x.text?x.text.trim():x.result.status).join()' <"$T/out")" \
	'a,succeeded,resumed,b,succeeded'
not abctl chat ask -s nobody </dev/null >/dev/null 2>"$T/err"
like 'a session that is none is told before the first message' "$(cat "$T/err")" 'give the session as -s USER/GOAL'
not abctl chat nobody/nothing </dev/null >/dev/null 2>"$T/err"
like 'a session that is not there' "$(cat "$T/err")" "no session 'nobody/nothing'"
ok 'nothing is left' wait_for 10 no_jail_processes
finish
