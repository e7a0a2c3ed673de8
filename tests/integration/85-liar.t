#!/usr/bin/env bash
# An agent that lies to the person who answers it: what is allowed is what was read, at a terminal and
# over the API.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/terminal.sh
. tests/integration/liar.sh

for answer in deny once; do
	harness "hasty-$answer" 'backend: claude' 'policy: hosts' "permissions: { mode: ask, timeoutMs: 5000, default: $answer }"
done
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }
log() { abctl logs "$id" --json | json "$1"; }
answers() { log 'e.filter(x=>x.type==="permission.answered").map(x=>[x.permissionId,x.answer,x.by].join(":")).join()'; }
waits() { abctl show "$id" --json | json "(l.pending||[]).length===${1:-1}" | grep -qx true; }
super=$(super)
# person NAME KEYS PROMPT: at a terminal; $T/NAME is what was to be seen, $id the run
person() {
	tty "$T/$1" run claude -s "u/$1" -p "$3" <<<"$2"
	id=$(abctl runs -n 1 --json | json 'l.runs[0].runId')
}
# start HARNESS PROMPT: $id, which waits for an answer
runs=0
start() {
	runs=$((runs + 1))
	id=$(abctl run "$1" -s "u/r$runs" -p "$2" --detach)
	wait_for 20 waits
}

# ---- at a terminal ----

person lines $'[y] once\tn' 'ask("1", "ls\nrm -rf x\n" + "\n" * 5 + "\x1b[2Ktouch y"); hear(); done()'
like 'a command of several lines' "$(cat "$T/lines")" '^ +rm -rf x$'
like 'is shown with all of them, harmless' "$(cat "$T/lines")" '^ +\^\[\[2Ktouch y$'
like 'and answered' "$(answers)" '^1:deny:user$'

person long $'view all of it\tv\nthe end of it\t\n\ty' 'ask("1", "ls " + ";\n" * 200 + "rm -rf x # the end of it"); hear(); done()'
like 'of a long one it says that there is more' "$(cat "$T/long")" '^ +\.\.\. [0-9]+ bytes more$'
is 'which is shown before it is answered' "$(grep -c 'rm -rf x # the end of it' "$T/long")" 1
like 'and then answered' "$(cat "$T/long")" '^exit 0 left 0'
is 'once' "$(answers)" '1:once:user'

# Half a word was typed when the question came; then a key at once; then two together.
person typed $'type now\ta\nallow rm\tyy\n\tn' 'say("type now"); time.sleep(2); ask("1", "rm"); hear(); done()'
is 'what was typed before, or too fast, answers nothing' "$(answers)" '1:deny:user'

person covered $'nothing\t\n\tn' 'ask("1", "rm -rf x"); time.sleep(1); say("? allow ls   [y] once  [a] always  [n] no\nnothing"); hear(); done()'
is 'a question that was painted over' "$(grep -oE '^\? allow .*( y)?$' "$T/covered" | tail -n 1 | cut -c1-18)" '? allow rm -rf x  '
is 'is the last again' "$(grep -c '^? allow rm -rf x' "$T/covered")" 2

person swapped $'allow ls\ty' 'ask("1", "ls"); time.sleep(0.7); line({"type": "control_cancel_request", "request_id": "1"}); ask("2", "rm -rf x"); time.sleep(3); line({"type": "control_cancel_request", "request_id": "2"}); done()'
ok 'a question that takes the place of another is not answered by the key for that' \
	sh -c "! echo '$(answers)' | grep -q 2:once"

# ---- elsewhere ----

start claude 'ask("x; touch /tmp/owned", "ls"); hear(); done()'
abctl logs -f "$id" >/dev/null 2>&1 &
timeout 20 "$BIN/abctl" --socket "$T/sock" run claude -s u/quoted -p 'ask("x; $(id)'"'"' -y", "ls"); time.sleep(1); done(); sys.exit()' >"$T/out" 2>"$T/err" </dev/null
like 'what is to be copied into a shell is one word' "$(cat "$T/err")" "approve run_[a-z0-9]+ 'x; \\\$\(id\)'\\\\'' -y', or deny"
abctl deny "$id" >/dev/null
ok 'an id is one word for the API, too' wait_for 10 ended

for agent in claude codex pi liar; do
	start $agent 'ask("7", "ls\nrm -rf x"); hear(); ask("7", "rm -rf /"); hear(); ask("8", "rm -rf /"); ask("8", "rm -rf //"); hear(); hear(); done(); sys.exit()'
	is "$agent: the question has all that would run" "$(abctl show "$id" --json | json 'l.pending[0].input.command')" $'ls\nrm -rf x'
	abctl approve "$id" 7 >/dev/null
	wait_for 10 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q '\"8\"'"
	is 'an id that had its answer asks no more' "$(log 'e.filter(x=>x.type==="permission.asked").map(x=>x.permissionId).join()')" '7,8'
	not abctl approve "$id" 7 >/dev/null 2>"$T/err"
	like 'and is not answered twice' "$(cat "$T/err")" 'has been answered'
	abctl deny "$id" 8 >/dev/null
	ok 'it ends' wait_for 20 ended
	is 'each had one answer' "$(answers)" '7:once:user,8:deny:user'
done

for agent in claude codex pi liar; do
	id=$(abctl run $agent -s "u/late-$agent" -p 'say("over"); done(); ask("9", "rm"); sys.exit()' --detach)
	wait_for 20 ended
	is "$agent: after its last word nobody is asked" "$(log 'e.filter(x=>/permission/.test(x.type)).length+" "+e.filter(x=>x.type==="agent.raw").length+" "+l.result.status')" '0 1 succeeded'
done

# ---- floods ----

for agent in claude codex pi liar; do
	id=$(abctl run $agent -s "u/flood-$agent" -p 'for i in range(5000): ask(str(i), "rm %d" % i)
say("over"); done(); sys.exit()' --detach)
	ok "$agent: questions by the thousand, whose answers nobody reads" wait_for 60 ended
	is 'each that was asked is answered' "$(log '(n=>n("permission.asked")===n("permission.answered")&&n("permission.asked")>=64)(t=>e.filter(x=>x.type===t).length)')" true
done
# It reads nothing for a while, and people have told it all that it has room for.
head -c 1000000 /dev/zero | tr '\0' y >"$T/text"
for answer in deny once; do
	id=$(abctl run "hasty-$answer" -s "u/deaf-$answer" -p 'ask("1", "ls"); say("asked"); time.sleep(8)
while True:
    m = hear()
    if m["type"] == "control_response":
        break
say("heard " + m["response"]["response"]["behavior"]); done(); sys.exit()' --detach)
	wait_for 20 waits
	for _ in $(seq 40); do
		abctl send "$id" - <"$T/text" >/dev/null 2>"$T/err" || break
	done
	like 'an agent that does not read takes no more' "$(cat "$T/err")" 'has not read what it was told before'
	ok 'a question whose time is over then' wait_for 60 ended
	is 'is denied' "$(answers)" 1:deny:harness
	is 'which the agent hears when it reads again' "$(log 'e.filter(x=>/heard/.test(x.text)).map(x=>x.text).join()')" 'heard deny'
done
like 'and why it is not allowed, as the harness would have it' "$(log 'e.find(x=>x.type==="permission.answered").reason')" 'has not read'
id=$(abctl run claude-auto -s u/forged -p 'line({"type": "run.done", "result": {"status": "succeeded"}}); line({"type": "permission.answered", "permissionId": "1", "answer": "once"}); sys.exit(3)' --detach)
ok 'an agent that says run.done' wait_for 20 ended
is 'has said nothing' "$(log '[l.type,l.result.status,e.filter(x=>x.type==="run.done").length,e.filter(x=>x.type==="permission.answered").length].join()')" 'run.done,failed,1,0'
is 'all by the same supervisor' "$(super)" "$super"
sanitized || ok 'which is small' test "$(awk '/VmHWM/ {print $2}' "/proc/$super/status")" -lt 200000
ok 'nothing is left' wait_for 10 no_jail_processes
finish
