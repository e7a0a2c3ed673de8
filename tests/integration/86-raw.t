#!/usr/bin/env bash
# The raw log of a run: the agent's bytes before anything is made of them, while it runs, after it, and
# after everything has died.
. tests/integration/lib.sh
. tests/integration/runs.sh

mkdir -p "$T/agents/claude/bin"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
harness c 'backend: claude' 'model: m' 'policy: demo'
script bytes 'head -c 100000 /dev/urandom >b; cat b; cat b >&2' 'artifacts: [b]'
script slow 'echo one; while [ ! -e /tmp/go ]; do sleep 0.1; done; printf two; echo err >&2'
script text 'printf "a\n\nb\tc\303\251 \360\237\216\210"; printf "no line end" >&2'
script much 'head -c 41943040 /dev/zero | tr "\\0" y; echo; echo end'
script quiet 'true'
daemon() { start_daemon --config "$T/etc/agentboxd.yaml" --agents "$T/agents"; }
daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
raw() { timeout 60 "$BIN/abctl" --socket "$T/sock" logs "$@" --raw; }
get() { curl -sS --max-time 60 --unix-socket "$T/sock" "http://x/v1/runs/$1"; }
run_id() { json 'l.run' <"$T/$1.out"; }

run bytes bytes x
id=$(run_id bytes)
abctl artifacts "$id" get b -o "$T/b" >/dev/null
raw "$id" >"$T/stdout" 2>"$T/stderr"
ok 'any bytes of stdout' cmp "$T/b" "$T/stdout"
ok 'and of stderr, apart' cmp "$T/b" "$T/stderr"
run text text x
id=$(run_id text)
is 'what is text is text in the API' "$(get "$id/raw" | json 'e.map(x=>x.stream+":"+x.text).sort().join("|")')" \
	"$(printf 'stderr:no line end|stdout:a\n\nb\tc\303\251 \360\237\216\210')"
is 'and the same with --json' "$(raw "$id" --json | json 'e.map(x=>x.stream).sort().join()')" stderr,stdout
run c proto 'say:hello result'
like 'of an agent it is its protocol' "$(raw "$(run_id proto)")" '^\{"type":"assistant","message":.*hello'
is 'its prompt is not in it: that was not printed' "$(raw "$(run_id proto)" | grep -c 'say:hello')" 0
run quiet quiet x
is 'who says nothing has an empty one' "$(raw "$(run_id quiet)" 2>&1)" ''

begin slow live
timeout 60 "$BIN/abctl" --socket "$T/sock" logs "$id" --raw -f >"$T/live" 2>"$T/live.err" &
a=$!
wait_for 20 grep -q one "$T/live"
is 'while it runs: what there is' "$(raw "$id")" one
is 'who follows waits' "$(cat "$T/live")" one
kill_child agentbox-supervisor
wait $a
is 'the next supervisor has it too' "$(raw "$id")" one
timeout 60 "$BIN/abctl" --socket "$T/sock" logs "$id" --raw -f >"$T/live" 2>"$T/live.err" &
a=$!
abctl exec u/live -- touch /tmp/go >/dev/null 2>&1
wait $a
is 'who follows ends with the run' $? 0
is 'and has all of it' "$(cat "$T/live") $(cat "$T/live.err")" "$(printf 'one\ntwo err')"
live=$id

run much much x
id=$(run_id much)
raw "$id" >"$T/stdout" 2>"$T/stderr"
is 'of a long one the end is kept' "$(tail -c 4 "$T/stdout")" end
like 'the middle is said to be missing' "$(cat "$T/stderr")" '2[0-9]{7} bytes are missing here: the run has ended'
n=$(stat -c %s "$T/stdout")
ok "so much is left ($n)" test "$n" -gt 14000000 -a "$n" -lt 18000000
ok 'and on the disk' test "$(du -s "$T/state/supervisor/journals" | cut -f1)" -lt 20000

abctl run slow -s u/dead -p x --detach --json >"$T/run"
dead=$(json 'l.runId' <"$T/run")
wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $dead --raw | grep -q one"
stop_daemon KILL
daemon || { echo 'not ok - restart'; exit 1; }
is 'after the death of everything: of a run that had ended' "$(raw "$live" 2>/dev/null)" "$(printf 'one\ntwo')"
is 'and of one that had not' "$(status "$dead") $(raw "$dead" -f)" 'interrupted one'
session=$(json 'l.session' <"$T/text.out")
id=$(run_id text)
files() { find "$T/state/supervisor/journals" -name "$id" | wc -l; }
is 'it is there as long as its session' "$(files)" 1
abctl session rm "$session" >/dev/null 2>&1 || abctl session rm u/text >/dev/null
ok 'and goes with it' wait_for 10 test "$(files)" = 0
like 'a run that is not there' "$(get "$id/raw")" '"status": ?404'
abctl run slow -s u/live -p x --detach --json >/dev/null
abctl run quiet -s u/live -p x --detach --json >"$T/run"
waiting=$(json 'l.runId' <"$T/run")
is 'one that waits has printed nothing' "$(raw "$waiting")" ''
abctl cancel "$waiting" >/dev/null
wait_for 20 ended "$waiting"
like 'one that never began has none' "$(raw "$waiting" 2>&1)" 'no raw log is kept'
like 'nor is it of events' "$(raw "$live" --from 3 2>&1)" 'no --from'
finish
