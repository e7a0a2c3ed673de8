#!/usr/bin/env bash
# Commands of root's that are told of runs: what they get and under whose id, in order, at least once,
# whatever they do and whoever is killed; and no run waits for them.
. tests/integration/lib.sh
. tests/integration/runs.sh

script short 'echo on'
script other 'echo off'
mkdir -m 777 "$T/told"
printf 'ok' >"$T/mode"
chmod 755 "$T"
cat >"$T/hook" <<-S
	#!/bin/sh
	mode=\$(cat $T/mode)
	body=\$(cat)
	printf '{"id":"%s","hook":"%s","mode":"%s","who":"%s","caps":"%s","env":"%s","arg":"%s","body":%s}\n' \
		"\$AGENTBOX_EVENT_ID" "\$AGENTBOX_HOOK" "\$mode" "\$(id -u):\$(id -g)" "\$(grep CapEff /proc/self/status | tr -dc 0-9)" \
		"\$AB_SECRET" "\$1" "\$body" >>$T/told/all
	case \$mode in
	fail) echo 'no such desk'; exit 7 ;;
	never) exit 100 ;;
	hang) sleep 1000 & sleep 1000 ;;
	loud) head -c 300000 /dev/zero | tr '\\\\0' x; head -c 100000 /dev/zero >&2 ;;
	slow) sleep 0.4 ;;
	leaves) sleep 1000 & ;;
	endless) yes & yes ;;
	esac
S
chmod 755 "$T/hook"
config() { # LINE...: of the hook `desk`
	printf '%s\n' 'hooks:' "- { name: desk, command: [$T/hook, 'a b'], harnesses: [short], events: [run.started, run.done]," \
		"    timeout: 1s, retry: { first: 100ms, most: 200ms, give_up: 1h } }" "$@" >"$T/etc/agentboxd.yaml"
}
config
AB_SECRET=hidden start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
got() { json "$1" <"$T/told/all"; }
told() { [ "$(wc -l <"$T/told/all" 2>/dev/null || echo 0)" -ge "$1" ]; }
forget() { rm -f "$T/told/all"; }
mode() { echo "$1" >"$T/mode"; }
hook() { abctl webhook ls --json | json "l.webhooks.find(x=>x.name===\"desk\").$1"; }
pending() { [ "$(hook pending)" = "$1" ]; }
run_short() { abctl run short -s "u/$1" -p x --json >"$T/$1.out"; }

run_short one
ok 'a run is told of' wait_for 20 told 2
is 'its start and its end' "$(got 'e.map(x=>x.body.type).join()')" 'run.started,run.done'
is 'the event is that of the log' "$(got 'JSON.stringify(e[1].body.event)')" "$(tail -n 1 "$T/one.out")"
is 'with an id that is its place' "$(got '(x=>x.id===x.body.event.session+"-"+x.body.event.seq)(e[0])')" true
is 'under an id of its own, without privileges' "$(got 'l.who+" "+/^0+$/.test(l.caps)')" '536805385:536805385 true'
is 'with its arguments and no variable of the daemon' "$(got '[l.arg,l.hook,l.env].join()')" 'a b,desk,'
ok 'nothing is left to tell' wait_for 10 pending 0
forget
abctl run other -s u/other -p x >/dev/null
run_short two
wait_for 20 pending 0
is 'other harnesses are not told of' "$(got 'e.map(x=>x.body.harness).join()')" 'short,short'

# what it may do
for m in fail hang endless leaves loud; do
	forget
	mode $m
	id=$(abctl run short -s "u/$m" -p x --detach)
	ok "$m: the run does not wait" wait_for 10 ended
	case $m in fail | hang | endless) ok "$m: it is told again" wait_for 20 told 2 ;; esac
	case $m in
	fail) like "$m: and said why" "$(hook last)" '^exit code 7: no such desk$' ;;
	hang | endless) like "$m: and said why" "$(hook last)" 'did not end in time' ;;
	esac
	mode ok
	ok "$m: until it is taken" wait_for 20 pending 0
	is "$m: in order, with the same id" "$(got '(s=>new Set(s.map(x=>x.id)).size)(e.filter(x=>x.body.type==="run.started"))+" "+l.body.type')" '1 run.done'
done
like 'what it printed is in the log, as far as it goes' "$(grep 'hook desk' "$T/log" | head -n 1)" 'hook desk, event ses_.*-[0-9]+: exit code 7: no such desk$'
ok 'and no more' not grep -qE 'x{200}' "$T/log"
nothing() { ! pgrep -U 536805385 -r R,S,D,T >/dev/null; }
ok 'what it leaves behind is ended' wait_for 10 nothing
forget
mode never
run_short never
ok 'one that will never take it is not asked again' wait_for 20 pending 0
is 'each event once' "$(got 'e.map(x=>x.body.type).join()')" 'run.started,run.done'
is 'and that is counted' "$(hook failed)" 2
mode ok
like 'a test' "$(abctl webhook test desk)" '^desk: taken \(exit code 0\)$'
mode fail
not abctl webhook test desk >"$T/out" 2>&1
like 'one that fails' "$(cat "$T/out")" '^desk: no answer \(exit code 7: no such desk\)'
like 'abctl webhook ls' "$(abctl webhook ls)" "desk .*$T/hook"

# killed
for who in supervisor agentboxd; do
	forget
	mode slow
	abctl run short -s "u/k$who" -p x --detach >"$T/id"
	ok "$who is killed while a command runs" wait_for 20 told 1
	if [ $who = supervisor ]; then
		kill_child agentbox-supervisor
	else
		stop_daemon KILL
		ok 'the command ends with it' wait_for 10 nothing
		start_daemon --config "$T/etc/agentboxd.yaml"
	fi
	ok "$who: all of it is told" wait_for 30 pending 0
	is "$who: to the end, which comes with its id" "$(got 'l.body.type+" "+(l.id===l.body.event.session+"-"+l.body.event.seq)')" 'run.done true'
done

# configuration
config "- { name: desk, command: [/bin/true] }"
like 'a name is given once' "$("$BIN/agentbox-policyc" lint config "$T/etc/agentboxd.yaml" 2>&1)" 'webhook or hook desk is given twice'
config "- { name: near, command: [true] }"
like 'a program has a path' "$("$BIN/agentbox-policyc" lint config "$T/etc/agentboxd.yaml" 2>&1)" "'true' is not the absolute path of a program"
config "- { name: near, command: [/bin/true], url: 'https://x.test' }"
like 'and no URL' "$("$BIN/agentbox-policyc" lint config "$T/etc/agentboxd.yaml" 2>&1)" "unknown key 'url'"
config "- { name: near, command: [/nonexistent/x] }" "- { name: plain, command: [$T/mode] }"
ok 'a program that is not there' abctl reload
like 'is told at once' "$(cat "$T/log")" 'hook near tells nobody: /nonexistent/x: No such file'
like 'and what is none' "$(cat "$T/log")" "hook plain tells nobody: $T/mode: is no program that may be executed"
config "- { name: near, command: [/bin/true] }"
ok 'a reload' abctl reload
ok 'takes another into use' wait_for 20 sh -c "$BIN/abctl --socket $T/sock webhook ls | grep -q ^near"
finish
