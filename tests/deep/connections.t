#!/usr/bin/env bash
# Two thousand clients follow runs, ten thousand idle ones come and go, others trickle, reset, stop half-way or
# send too much: nobody who follows misses an event, and who asks is answered.  Then the same over TLS.
. tests/integration/lib.sh
. tests/integration/runs.sh
command -v openssl >/dev/null || skip_all 'needs openssl'

P=$(free_port)
certificate one
script shell 'cat >/tmp/s; . /tmp/s'
printf '%s\n' 'runs: { max: 24, queue: 2000, per_user_queue: 1000 }' 'listen:' \
	"- { address: '127.0.0.1:$P', tls: { cert: '$T/one.pem', key: '$T/one.pem.key' } }" >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
abctl key add acme >"$T/acme.key" 2>/dev/null
ok 'TLS is served' wait_for 10 curl -sSf --cacert "$T/one.pem" "https://127.0.0.1:$P/healthz"
super=$(child_pid agentbox-supervisor)
listener=$(child_pid agentbox-listener)
sanitized && export SANITIZED=1
number() { abctl stats --json | json "l.$1"; }
quiet() { [ "$(number 'runsRunning+l.runsQueued+l.jails')" = 0 ]; }

timeout 300 python3 tests/deep/connections.py "$T/sock" "$super" "$listener" "$P" "$T/one.pem" "$T/acme.key" \
	>"$T/wrong" 2>"$T/numbers"
is 'the clients come to their end' "$?" 0
cat "$T/numbers"
is 'every promise was kept' "$(head -n 30 "$T/wrong")" ''
ok 'all is quiet' wait_for 60 quiet
is 'no run failed over it' "$(number 'runs.failed+l.runs.interrupted')" 0
is 'the supervisor is the same process' "$(child_pid agentbox-supervisor)" "$super"
is 'and so is the listener' "$(child_pid agentbox-listener)" "$listener"
is 'nobody had anything to complain of' "$(grep -cE '(supervisor|listener): error' "$T/log")" 0
finish
