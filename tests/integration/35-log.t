#!/usr/bin/env bash
# Records as JSON: of every program, with ids, not to be forged; changed by a reload.
. tests/integration/lib.sh
. tests/integration/runs.sh

settings() { printf 'log: { %s }\n' "$1" >"$T/etc/agentboxd.yaml"; }
settings 'format: json, level: debug'
script denied 'echo | nc -w1 192.0.2.7 443; getent hosts secret.example.net; echo done'
printf -- '---\n"x\\"}\\n{\\"level\\":\\"err\\",\\"run\\":\\"run_forged\\"}\\e[2J": 1\n---\n' >"$T/etc/harnesses/hostile.md"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
# What was swept of a daemon before is told before there are settings.
all() { sed -n '/^{/,$p' "$T/log"; }
records() { all | grep "$1"; }
programs() { all | json '[...new Set(e.map(x=>x.program))].sort().join()'; }
has_record() { records "$1"; }

run denied logged x
id=$(json 'e[0].run' <"$T/logged.out")
session=$(json 'e[0].session' <"$T/logged.out")
ok 'what was denied is logged' wait_for 10 has_record 'secret.example.net'
is 'every line is a record' "$(json 'e.every(x=>/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/.test(x.ts)&&/^(err|warn|info|debug)$/.test(x.level)&&x.program&&x.pid>1&&typeof x.msg==="string")' < <(all))" true
is 'of each program' "$(programs)" 'agentbox-egress,agentbox-supervisor,agentboxd'
is 'with its session and run' "$(records secret.example.net | json 'l.session+" "+l.run')" "$session $id"
like 'which are no part of the text' "$(records secret.example.net | json l.msg)" '^jail [0-9]+: '
is 'a key of a harness file forges none' "$(json 'e.filter(x=>x.run==="run_forged").length+" "+e.filter(x=>x.msg.includes("run_forged")).length' < <(all))" '0 1'
kill_child agentbox-supervisor
: >"$T/log"
kill_child agentbox-egress
is 'those that come later, too' "$(json 'e.every(x=>x.level&&x.program)' <"$T/log")" true

settings 'level: debug'
abctl reload >/dev/null
ok 'text after a reload' wait_for 10 grep -q '^agentbox-egress: policies of generation' "$T/log"
settings 'level: err'
abctl reload >/dev/null
: >"$T/log"
run denied quiet x
is 'and nothing but errors' "$(cat "$T/log")" ''
settings 'format: xml'
like 'a format that is none' "$(abctl reload 2>&1)" "log.*xml|'xml'"
finish
