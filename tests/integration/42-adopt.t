#!/usr/bin/env bash
# Runs that outlive their supervisor: killed at random, or replaced by a new binary, the next one
# goes on where it was.  Nothing is lost, or the log says what.
. tests/integration/lib.sh
. tests/integration/runs.sh

RANDOM=${ADOPT_SEED:=$((RANDOM))}
echo "# ADOPT_SEED=$ADOPT_SEED"
mkdir -p "$T/libexec" "$T/agents/claude/bin"
cp "$BIN"/agentbox-* "$T/libexec/"
# Claude Code as it was recorded, slowly, a line in two halves.
grep -v '^$' tests/fixtures/claude/plan.jsonl >"$T/agents/claude/lines"
cat >"$T/agents/claude/bin/claude" <<'S'
#!/bin/sh
read -r prompt || exit 7
case $prompt in *heliotrope*) ;; *) exit 8 ;; esac
while IFS= read -r line; do
	rest=${line#??????????????????????????????}
	printf %s "${line%"$rest"}"
	sleep "$PACE"
	printf '%s\n' "$rest"
	sleep "$PACE"
done </opt/agent/lines
read -r more && exit 9
exit 0
S
chmod 755 "$T/agents/claude/bin/claude"
harness slow-claude 'backend: claude' 'model: claude-sonnet-4-5' 'policy: demo' 'env: { PACE: "0.2" }'
harness fast-claude 'backend: claude' 'model: claude-sonnet-4-5' 'policy: demo' 'env: { PACE: "0" }'
script greedy 'sleep 2; wc -c; sleep 1'
script sleeper 'trap : TERM; echo mine >/tmp/mark; echo on; while :; do sleep 1; done'
start_daemon --config "$T/etc/agentboxd.yaml" --libexec "$T/libexec" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }
answers() { abctl version --json; }
# What the agent said and did, without what differs from run to run.
said() {
	json 'e.filter(x=>!/^(run|output)\./.test(x.type)).map(x=>{for(const k of["seq","ts","run","session"])delete x[k];return JSON.stringify(x)}).join("\n")' <"$1"
}

run fast-claude quiet heliotrope
is 'the stand-in for Claude' "$(json 'l.result.status' <"$T/quiet.out")" succeeded
said "$T/quiet.out" >"$T/want"
ok 'says something' test "$(wc -l <"$T/want")" -gt 10

# killed at random: lossless unless it is hit within a read, and then it says so
judge() { # NAME...: chatty ones, or claude*
	local n
	for n in "$@"; do
		is "$n: it ends well" "$(json 'l.result.status' <"$T/$n.out")" succeeded
		is "$n: its numbers have no hole" "$(seq_ok "$n")" true
		if [ "$(gaps "$n")" != 0 ]; then
			echo "# $n: the log has an output.gap"
			continue
		fi
		case $n in
		claude*)
			said "$T/$n.out" >"$T/now"
			is "$n: all events are there, once" "$(diff "$T/want" "$T/now")" ''
			;;
		*)
			is "$n: every byte is there, once" "$(text "$n")" "$want_text"
			is "$n: and of its errors" "$(errors "$n")" "$want_errors"
			is "$n: its artifact is kept" "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/$n.out")" out/file
			;;
		esac
	done
}
run slow-claude claude1 heliotrope &
a=$!
run chatty c1 "$(chatty 0.01)" &
b=$!
run chatty c2 "$(chatty 0.01)" &
c=$!
kills=0
for _ in 1 2 3 4 5 6; do
	sleep "0.$((RANDOM % 9 + 1))"
	kill_child agentbox-supervisor && kills=$((kills + 1))
done 2>/dev/null
is 'six supervisors were killed' $kills 6
wait $a $b $c
judge claude1 c1 c2
like 'the client was told, and went on' "$(cat "$T/c1.err")" 'connection.*lost, trying again'
is 'the raw log has every byte, once' "$(for n in c1 c2; do [ "$(gaps $n)" = 0 ] && abctl logs "$(json 'l.run' <"$T/$n.out")" --raw 2>/dev/null | diff - <(echo "$want_text") ; done)" ''

# two megabytes of input, of which the pipe takes 64 KiB before the supervisor dies
head -c 2000000 /dev/zero | tr '\0' x >"$T/big"
timeout 90 "$BIN/abctl" --socket "$T/sock" run greedy -s u/greedy -p - --json <"$T/big" >"$T/greedy.out" 2>"$T/greedy.err" &
a=$!
sleep 1
kill_child agentbox-supervisor
wait $a
is 'input goes on where it was' "$(text greedy)" 2000000

begin short t
sleep 8
kill_child agentbox-supervisor
ok 'the time limit counts from the first start' wait_for 20 ended
is 'it is a timeout' "$(status)" timeout
ms=$(abctl logs "$id" --json | json 'l.result.durationMs')
ok "in time (${ms} ms)" test "$ms" -lt 19500
is 'and limit.hit is told once' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="limit.hit").length')" 1

begin sleeper x
kill_child agentbox-supervisor
abctl cancel "$id" >/dev/null
sleep 0.5
kill_child agentbox-supervisor
ok 'a cancel that was accepted is not forgotten' wait_for 10 ended
is 'it is cancelled' "$(status)" cancelled
begin sleeper y
kill_child agentbox-supervisor
session=$(json 'l.sessionId||l.session' <"$T/y.run")
is 'a command joins the jail of a run that goes on' "$(timeout 20 "$BIN/abctl" --socket "$T/sock" exec u/y -- cat /tmp/mark 2>/dev/null)" mine
abctl cancel "$id" >/dev/null
ok 'and a later one can be cancelled' wait_for 10 ended

# it ends while its supervisor does nothing: only agentboxd hears of it
begin ends z
old=$(super)
kill -STOP "$old"
sleep 2.5
kill -9 "$old"
ok 'an end that the dead one did not hear of' wait_for 10 ended
is 'is the right one' "$(status)" succeeded
is 'with all that was said' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")')" "$(printf 'on\noff')"
is 'and its artifact' "$(abctl logs "$id" --json | json 'l.result.artifacts.map(a=>a.path).join()')" out/x

# new binaries: nothing is lost at all
old=$(super)
ok 'a reload with the same programs' abctl reload
sleep 0.5
is 'leaves them' "$(super)" "$old"
abctl exec "$session" -- sleep 60 >/dev/null 2>"$T/exec.err" &
e=$!
run slow-claude claude2 heliotrope &
a=$!
run chatty c3 "$(chatty 0.01)" &
b=$!
refused=0 same=0 lost=0
for i in $(seq 20); do
	[ $((i % 10)) = 1 ] && { run chatty "r$i" "$(chatty 0.01)" & pids="${pids:-} $!"; }
	old=$(super)
	renew "$T/libexec" agentbox-supervisor agentbox-egress
	timeout 20 "$BIN/abctl" --socket "$T/sock" reload >/dev/null 2>>"$T/reload.err" || refused=$((refused + 1))
	timeout 20 "$BIN/abctl" --socket "$T/sock" run hello -s "u/h$i" -p x --json >"$T/h.out" 2>/dev/null
	[ "$(json 'l.result.status' <"$T/h.out")" = succeeded ] || lost=$((lost + 1))
	wait_for 10 sh -c "p=\$(pgrep -P $DAEMON -f agentbox-supervisor) && test \$p != $old" || same=$((same + 1))
done
is 'twenty reloads are answered' "$refused$(cat "$T/reload.err")" 0
is 'each brings another supervisor' $same 0
is 'runs that begin meanwhile are not lost' $lost 0
# shellcheck disable=SC2086 # a list of numbers
wait $a $b ${pids:-}
judge claude2 c3 r1 r11
is 'and nothing was lost' "$(($(gaps claude2) + $(gaps c3) + $(gaps r1) + $(gaps r11)))" 0
wait $e
is 'a command of a client ends with the old supervisor' $? 111
like 'which it is told' "$(cat "$T/exec.err")" 'replaced'
like 'an orderly end' "$(cat "$T/log")" 'supervisor .* ended with exit code 0'
is 'none was late' "$(grep -c 'does not make room' "$T/log")" 0
ok 'nothing is left' wait_for 10 no_jail_processes
finish
