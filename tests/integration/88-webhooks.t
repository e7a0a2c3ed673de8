#!/usr/bin/env bash
# Whoever root names is told of runs: signed, in order, at least once, whatever becomes of the receiver,
# of agentbox-egress, of the supervisor and of agentboxd; and no run waits for it.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/receiver.sh

mkdir -p "$T/agents/claude/bin"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
harness ask 'backend: claude' 'model: m' 'policy: demo' 'permissions: ask' 'webhooks: [named]'
harness short 'backend: exec' 'command: [sh, -c, "echo on"]'
harness unknown 'backend: exec' 'command: [true]' 'webhooks: [nobody]'
harness other 'backend: exec' 'command: [true]' 'webhooks: [main]'
harness big 'backend: exec' 'command: [sh, -c, "head -c 1500000 /dev/zero | tr \\\\0 x"]'
config() { # LINE...: of the webhook `main`
	hook main "$@"
	printf '  %s\n' "- {name: named, url: 'http://127.0.0.1:$PORT/named', secret: HOOK_KEY," \
		"  addresses: [127.0.0.1], events: [run.done], named_only: true}" \
		"- {name: metadata, url: 'https://metadata.test', secret: HOOK_KEY, users: [never]}" \
		"- {name: private, url: 'https://localhost:$PORT/x', secret: HOOK_KEY, users: [never]}" >>"$T/etc/agentboxd.yaml"
}
config 'harnesses: [ask, short, b*]' 'timeout: 2s' 'retry: {first: 100ms, most: 400ms, give_up: 1h}'
receiver
up_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }

# told, and what
receiver_mode ok
echo "$BIN/abctl --socket $T/sock approve \$RUN \$ID" >"$R/approve"
abctl run ask -s ana/one -p 'ask:p1 hear result' --json >"$T/one.out"
is 'a run that asks goes on because the receiver answers' "$(json 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join()' <"$T/one.out")" 'heard allow'
ok 'all of it arrives' told 4
is 'what was asked for, in order' "$(got 'e.filter(x=>x.path==="/hook").map(x=>x.body.type).join()')" 'run.started,permission.asked,run.done'
is 'signed as receivers know it' "$(got 'e.every(x=>x.signed)')" true
is 'who and what it is about' "$(got '(b=>[b.webhook,b.user,b.goal,b.harness,b.event.permissionId].join())(e.find(x=>x.body.type==="permission.asked").body)')" 'main,ana,one,ask,p1'
is 'the event is that of the log' "$(got 'JSON.stringify(e.find(x=>x.body.type==="run.done"&&x.path==="/hook").body.event)')" "$(tail -n 1 "$T/one.out")"
is 'its id is the place in the session' "$(got '(x=>x.id===x.body.event.session+"-"+x.body.event.seq)(e[0])')" true
is 'a harness may name one of its own' "$(got 'e.filter(x=>x.path==="/named").map(x=>x.body.webhook+" "+x.body.type).join()')" 'named run.done'
ok 'nothing is left to tell' wait_for 5 pending 0
rm "$R/approve"
not abctl run unknown -s u/u -p x >/dev/null 2>"$T/err"
like 'one that is not there' "$(cat "$T/err")" "webhook 'nobody', which is not in webhooks of agentboxd.yaml"
not abctl run other -s u/u -p x >/dev/null 2>"$T/err"
like 'one that does not take it' "$(cat "$T/err")" "webhook 'main', whose .harnesses. in agentboxd.yaml do not have it"
forget
abctl run big -s u/big -p x >/dev/null
ok 'an event of more than a megabyte' told 2
is 'is told by its head' "$(got '(b=>[b.type,b.event.type,b.event.truncated||false,"result" in b.event].join())(l.body)')" 'run.done,run.done,true,false'

# a receiver that fails
for mode in 500 404 later drop hang redirect; do
	forget
	receiver_mode $mode
	id=$(abctl run short -s "u/$mode" -p x --detach)
	ok "$mode: the run does not wait" wait_for 10 ended
	ok "$mode: it is tried again" told 2
	receiver_mode ok
	ok "$mode: until it is taken" wait_for 20 pending 0
	is "$mode: in order, the same event with the same id" "$(got '(m=>e.filter(x=>x.mode==="ok").map(x=>x.body.type).join()+" "+new Set(m.map(x=>x.id)).size)(e.filter(x=>x.body&&x.body.type==="run.started"))')" 'run.started,run.done 1'
	case $mode in redirect) is 'a redirect is not followed' "$(got 'e.some(x=>x.path==="/elsewhere")')" false ;; esac
	case $mode in later) is 'Retry-After is waited for' "$(got '(e[1].at-e[0].at)>=1')" true ;; esac
done
for mode in huge endless slow; do
	forget
	receiver_mode $mode
	abctl run short -s "u/$mode" -p x >/dev/null
	ok "$mode: it is taken" wait_for 20 pending 0
	is "$mode: once" "$(got 'e.filter(x=>x.body).map(x=>x.body.type).join()')" 'run.started,run.done'
	case $mode in endless) ok 'and the rest is not read' wait_for 10 grep -q cut "$R/got" ;; esac
done
forget
receiver_mode 410@run.started
abctl run short -s u/gone -p x >/dev/null
ok 'an event that is refused for good is given up' wait_for 10 pending 0
is 'and the next is told' "$(got 'e.map(x=>x.mode+" "+x.body.type).join()')" '410@run.started run.started,ok run.done'
is 'which is counted' "$(hooks '(h=>h.failed)(l.webhooks[0])')" 1
like 'and logged with its run' "$(cat "$T/log")" 'r=run_[0-9a-z]+: webhook main: event [0-9]+ is given up: status 410'
receiver_stop
forget
id=$(abctl run short -s u/away -p x --detach)
ok 'nobody there: the run does not wait' wait_for 10 ended
ok 'it is told what is the matter' wait_for 10 sh -c "$BIN/abctl --socket $T/sock webhook ls | grep -qi 'refused\|connect'"
receiver_mode ok
receiver
ok 'it comes when the receiver does' told 2

# what may be called
like 'a test' "$(abctl webhook test main)" '^main: taken \(status 200, [0-9]+ ms\)$'
is 'is signed and says what it is' "$(got 'l.signed+" "+l.body.type')" 'true webhook.test'
receiver_mode 500
ok 'that fails' not abctl webhook test main
like 'says how' "$(abctl webhook test main 2>&1)" 'status 500'
receiver_mode ok
like 'this host is not called by name' "$(abctl webhook test private 2>&1)" 'not public|no address'
like 'an unknown name' "$(abctl webhook test metadata 2>&1)" 'metadata.test'
like 'one that is not there' "$(abctl webhook test nobody 2>&1)" "no webhook 'nobody'"
is 'the list does not show the path, which may be a key' "$(abctl webhook ls --json | grep -c /hook)" 0
like 'metrics' "$(abctl metrics)" '^agentbox_webhook_delivered_total [1-9]'

# deaths
deaths() { # NAME COMMAND...: with a receiver that answers slowly
	local name=$1 i
	shift
	forget
	receiver_mode slow
	for i in 1 2 3; do
		id=$(abctl run short -s "$name/$i" -p x --detach)
		wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q run.started"
	done
	told 1
	"$@"
	receiver_mode ok
	ok "$name: all is told" wait_for 40 pending 0
	is "$name: of each run both, in order" "$(got '[...new Set(e.map(x=>x.body.event.run))].map(r=>[...new Set(e.filter(x=>x.body.event.run===r).map(x=>x.body.type))].join()).join(" ")')" \
		'run.started,run.done run.started,run.done run.started,run.done'
}
renewed() { # PROGRAM
	local old
	old=$(child_pid "$1")
	renew "$T/libexec" "$1"
	abctl reload && wait_for 20 other_child "$1" "$old"
}
deaths renewed-egress renewed agentbox-egress
is 'an egress that finishes what is open tells what came of it: nothing comes twice' "$(got 'new Set(e.map(x=>x.id)).size===e.length')" true
deaths renewed-supervisor renewed agentbox-supervisor
deaths egress kill_child agentbox-egress
deaths supervisor kill_child agentbox-supervisor
again() { stop_daemon "$1"; up_daemon; }
deaths stopped again TERM
deaths killed again KILL

# another configuration
receiver_mode 500
forget
abctl run short -s u/moved -p x >/dev/null
told 2
config 'harnesses: [ask, short, b*]' 'events: [run.done]' 'timeout: 2s' 'retry: {first: 100ms, most: 400ms, give_up: 1h}'
sed -i "s,/hook',/moved'," "$T/etc/agentboxd.yaml"
ok 'a reload' abctl reload
forget
receiver_mode ok
ok 'what waits goes to the new place' wait_for 20 pending 0
# (tried again between the two it comes twice)
is 'and is what is wanted now' "$(got '[...new Set(e.filter(x=>x.path==="/moved").map(x=>x.body.type))].join()')" 'run.done'
receiver_mode 500
abctl run short -s u/moved -p x >/dev/null
wait_for 10 pending 1
is 'a secret that has a value is not spoken of' "$(grep -c 'tells nobody' "$T/log")" 0
sed -i '0,/secret: HOOK_KEY/s//secret: HOOK_KEX/' "$T/etc/agentboxd.yaml"
ok 'a secret that is mistyped' abctl reload
like 'is told at once' "$(cat "$T/log")" 'warning: webhook main tells nobody: its secret HOOK_KEX has no value; remedy: a file'
: >"$T/etc/agentboxd.yaml"
ok 'one that is taken away' abctl reload
ok 'leaves nothing' wait_for 10 sh -c "$BIN/abctl --socket $T/sock stats --json | grep -q '\"webhooksPending\":0'"
finish
