#!/usr/bin/env bash
# The features in one story: a tenant's pipeline over TCP, on a snapshot, whose first step fails once, is
# retried, checked and guarded and has a secret, and whose second a person has to approve, told to a webhook and a
# command, while supervisor and agentboxd are killed; then history, export, retention, drain.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/receiver.sh

# ---- what there is ----
# Adds up in its workspace; its first attempt fails.
script build 'read -r p; echo x >>tries; [ "$(wc -l <tries)" -gt 1 ] || { echo first >&2; exit 3; };
	mkdir -p out; echo "$p" >out/app; cat lib; echo "key $RELEASE_KEY" >&2; echo "$p"' \
	'policy: keyed' 'secrets: [RELEASE_KEY]' \
	'retry: { maxAttempts: 2, backoffMs: 700, on: [failed] }' \
	'verify: { command: [sh, -c, "test $(head -c 5 out/app) = built"] }' \
	'guardrails: { input: [{ deny: "(?i)drop table" }], output: [{ deny: "hunter[0-9]", in: [text, artifacts] }] }' \
	'params: { lang: { enum: [de, en], required: true } }' \
	'workspace: { snapshot: base }' 'artifacts: [out/app]'
script ship 'mkdir -p out; cat >out/shipped; echo >>out/shipped; cat lib out/shipped; wc -l <tries' 'workspace: { snapshot: base }' 'artifacts: [out/shipped]'
harness release 'pipeline:' '- { harness: build, prompt: "{{prompt}} {{lang}}" }' \
	'- { harness: ship, prompt: "ship {{prev.finalText}}", approve: true }' 'params: { lang: { enum: [de, en], default: de } }'
mkdir -p "$T/etc/policy" "$T/base"
printf 'extends: default\nsecrets: { RELEASE_KEY: { env: RELEASE_KEY } }\n' >"$T/etc/policy/keyed.yaml"
export RELEASE_KEY=a-key-of-the-release
echo library >"$T/base/lib"
mkdir -m 777 "$T/told"
printf '#!/bin/sh\nbody=$(cat)\nprintf "%%s\\n" "$body" >>%s/told/all\n' "$T" >"$T/hook"
chmod 755 "$T/hook" "$T"
P=$(free_port)
config() { # LINE...
	hook desk
	printf '%s\n' 'runs: { max: 2 }' "listen: [{ address: '127.0.0.1:$P' }]" "hooks: [{ name: log, command: [$T/hook], events: [run.started, run.done] }]" "$@" \
		>>"$T/etc/agentboxd.yaml"
}
config
receiver
ok 'a daemon with all of it' up_daemon || finish
ok 'a snapshot' abctl snapshot create base --from "$T/base"
abctl key add acme >"$T/acme.key" 2>/dev/null
abctl key add bolt --verbs read,steer >"$T/bolt.key" 2>/dev/null
as() { # TENANT ARGS...
	local key=$T/$1.key
	shift
	"$BIN/abctl" --url "http://127.0.0.1:$P" --key-file "$key" "$@"
}
show() { as acme show "$id" --json | json "$1"; }
waits() { as acme show "$id" --json | json '(l.pending||[]).length===1' | grep -qx true; }
events() { as acme logs "$1" --json | json "$2"; }
has_event() { as acme logs "$1" --json | grep -q "\"type\":\"$2\""; }
told_all() { [ "$(abctl webhook ls --json | json 'l.webhooks.concat(l.hooks||[]).reduce((n,h)=>n+h.pending,0)')" = 0 ]; }
step() { show "(l.result||l).steps[$1].runId"; }
began() { [ "$(show '(l.steps||[]).length')" -ge 1 ] && has_event "$(step 0)" run.retry; }

# ---- the story ----
id=$(as acme run release -s ana/app -p built --param lang=de --detach)
ok 'the first attempt of the first step has failed, another follows' wait_for 20 began
kill_child agentbox-supervisor
ok 'the supervisor is killed: it comes to its question all the same' wait_for 20 waits
like 'no other tenant answers it' "$(as bolt approve "$id" 2>&1)" "no run '$id'"
stop_daemon KILL
ok 'agentboxd is killed' up_daemon
ok 'it is still asked' waits
is 'for what would begin' "$(show 'l.pending[0].input.prompt.trim().replace(/\n/g," ")')" 'ship library built de'
ok 'a yes' as acme approve "$id"
ok 'it ends' wait_for 20 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q '\"exit\"'"
is 'well, in two steps' "$(show 'l.status+" "+l.result.steps.map(s=>s.harness+":"+s.status).join()')" 'succeeded build:succeeded,ship:succeeded'
is 'the failed attempt was made once' "$(show 'l.result.finalText.trim().split("\n").join()')" 'library,ship library,built de,2'
first=$(step 0)
second=$(step 1)
is 'each attempt, the check and one end, in this order' \
	"$(events "$first" 'e.map(x=>x.type).filter(t=>/^(run|verify|guardrail)/.test(t)).join()')" \
	'run.queued,run.started,run.retry,run.queued,run.started,verify.done,run.done'
is 'the secret that its agent has is in no event' "$(events "$first" 'e.filter(x=>x.stream==="stderr").map(x=>x.line).join()')" "first,key $(printf '%*s' ${#RELEASE_KEY} '' | tr ' ' '*')"
is 'the check is in the result' "$(as acme show "$first" --json | json 'l.result.verification.passed+" "+l.result.attempts')" 'true 2'
session=$(show l.sessionId)
is 'the events of all have no gap' "$(curl -sS -H "Authorization: Bearer $(cat "$T/acme.key")" "http://127.0.0.1:$P/v1/sessions/$session/events" |
	json 'e.every((x,i)=>x.seq===i+1)&&e.filter(x=>x.type==="run.done").length')" 3
is 'what was made' "$(as acme artifacts "$first" get out/app)$(as acme artifacts "$second" get out/shipped | head -n 1)" 'built deship library'

# ---- what is denied ----
as acme run build -s ana/app -p 'built hunter2' --param lang=de --json >"$T/out" 2>/dev/null
is 'a guardrail denies what is made' "$(json '[l.result.status,l.result.guardrail.rule,l.result.artifacts.length].join()' <"$T/out")" 'blocked,output[0],0'
as acme run build -s ana/app -p 'DROP TABLE {{lang}}' --param lang=de --json >"$T/out" 2>/dev/null
is 'or what is asked, before anything begins' "$(json '[l.result.guardrail.rule,e.filter(x=>x.type==="run.started").length].join()' <"$T/out")" 'input[0],0'
as acme run build -s ana/app -p 'other {{lang}}' --param lang=en --json >"$T/out" 2>/dev/null
is 'a check that fails is a failure' "$(json '[l.result.status,l.result.exit.reason].join()' <"$T/out")" 'failed,verification'
like 'a parameter is one of its values' "$(as acme run release -s ana/app -p x --param lang=fr 2>&1)" 'none of de, en'

# ---- who is told ----
ok 'all is told' wait_for 20 told_all
is 'the webhook of the whole story, signed' "$(got 'e.every(x=>x.signed)+" "+["run.started","permission.asked","run.done"].every(t=>e.some(x=>x.body.type===t&&x.body.event.run==="'"$id"'"))')" 'true true'
is 'the command of each run, its start and its end' "$(json "[...new Set(e.filter(x=>x.event.run==='$first').map(x=>x.event.type))].join()" <"$T/told/all")" 'run.started,run.done'

# ---- whose it is ----
is 'history of the tenant' "$(as acme runs --json | json 'l.runs.map(r=>r.status).sort().join()')" 'blocked,blocked,failed,succeeded,succeeded,succeeded'
is 'and of another' "$(as bolt runs --json | json l.runs.length)$(as bolt sessions --json | json l.sessions.length)" 00
is 'the operator sees whose' "$(abctl show "$id" --json | json 'l.tenant')" acme
like 'another may not even' "$(as bolt run ship -s ana/app -p x 2>&1)" 'lacks|verb'

# ---- taken along, cleared, ended ----
ok 'an export' as acme session export ana/app -o "$T/app.tar"
ok 'an import' as acme session import ana/copy -f "$T/app.tar"
is 'has the files, also of the snapshot' "$(as acme run ship -s ana/copy -p again --json | json 'l.result.finalText.trim().split("\n").join()')" 'library,again,5'
config 'retention: { artifacts: 1ms }'
abctl reload >/dev/null
gone() { [ "$(as acme artifacts "$first" --json | json l.artifacts.length)" = 0 ]; }
ok 'artifacts go when they are not kept' wait_for 20 gone
is 'their run stays' "$(as acme show "$first" --json | json l.result.status)" succeeded
id=$(as acme run release -s ana/two -p built --detach)
ok 'another pipeline comes to its question' wait_for 20 waits
abctl drain >/dev/null
like 'a daemon that drains takes no run' "$(as acme run ship -s ana/new -p x 2>&1)" 'drained'
abctl drain --undo >/dev/null
as acme deny "$id" >/dev/null
ok 'afterwards a no' wait_for 20 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q '\"exit\"'"
is 'ends it' "$(show 'l.status+" "+l.result.steps.length')" 'cancelled 1'

# ---- what is on record ----
abctl audit --json >"$T/audit"
is 'who approved' "$(json "(x=>[x.tenant,x.remote,x.status,x.uid].join())(e.find(x=>x.method==='POST'&&/permissions/.test(x.path)&&x.key==='acme'&&x.status<300))" <"$T/audit")" 'acme,true,200,'
is 'and who might not' "$(json "e.some(x=>x.key==='bolt'&&x.status===404)&&e.some(x=>x.key==='bolt'&&x.status===403)" <"$T/audit")" true
is 'no key and no secret anywhere' "$(grep -rlF -e "$(cut -c40- "$T/acme.key")" -e "$HOOK_KEY" -e "$RELEASE_KEY" "$T/state" "$T/log" "$T/audit" "$T/told" "$R/got" 2>/dev/null)" ''
ok 'nothing is left running' wait_for 20 no_jail_processes
finish
