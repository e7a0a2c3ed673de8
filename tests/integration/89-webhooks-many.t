#!/usr/bin/env bash
# Ten thousand events and nobody who takes them: the run does not wait, nothing grows, and all of them
# come in order when the receiver does.  A receiver whose certificate does not hold gets none.
. tests/integration/lib.sh
. tests/integration/runs.sh
. tests/integration/receiver.sh

EVENTS=10000
cat >"$T/events.sh" <<'S'
i=0
while [ $i -lt N ]; do
	printf '{"type":"plan.updated","entries":[{"text":"step %d of a plan that is of some length","status":"pending"}]}\n' $i
	i=$((i + 1))
done
S
sed -i "s/N ]/$EVENTS ]/" "$T/events.sh"
harness many 'backend: exec' 'command: [sh, /workspace/events.sh]' 'workspace:' '  seed:' '    events.sh: |' \
	"$(sed 's/^/      /' "$T/events.sh")"
harness one 'backend: exec' 'command: [sh, -c, "echo on"]'
hook main 'events: [plan.updated, run.done]' 'retry: {first: 100ms, most: 500ms}' 'timeout: 5s'
up_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }

rss() { awk '/^VmRSS/ { print $2 }' "/proc/$(super)/status"; }
begun=$(date +%s%N)
abctl run many -s u/without -p x --json >"$T/without.out"
alone=$(($(date +%s%N) - begun))
ok 'a first run, of which all is told later' grep -q run.done "$T/without.out"
before=$(rss)
begun=$(date +%s%N)
abctl run many -s u/dead -p x --json >"$T/dead.out"
took=$(($(date +%s%N) - begun))
is 'all of them are in the log' "$(json 'e.filter(x=>x.type==="plan.updated").length' <"$T/dead.out")" $EVENTS
echo "# runs took $((alone / 1000000)) and $((took / 1000000)) ms, the supervisor grew by $(($(rss) - before)) KiB"
is 'two runs are pending, whatever their events' "$(hooks 'l.webhooks[0].pending')" 2
ok 'nothing has been given up' test "$(hooks 'l.webhooks[0].failed')" = 0
sanitized || ok 'the supervisor does not hold them' test $(($(rss) - before)) -lt 16384
grown=$(stat -c %s "$T/state/supervisor/db"* | awk '{ n += $1 } END { print n }')
ok "neither does the database ($grown bytes)" test "$grown" -lt 8000000
receiver
begun=$(date +%s%N)
ok 'the receiver comes, and all of them to it' wait_for 150 pending 0
echo "# $((2 * EVENTS)) events in $((($(date +%s%N) - begun) / 1000000)) ms"
is 'of each run all, in order, the end last' "$(got '[...new Set(e.map(x=>x.body.event.run))].map(r=>(m=>m.filter(x=>x.body.type==="plan.updated").every((x,i)=>x.body.event.entries[0].text.startsWith("step "+i+" "))+" "+m.length+" "+m[m.length-1].body.type)(e.filter(x=>x.body.event.run===r))).join()')" \
	"true $((EVENTS + 1)) run.done,true $((EVENTS + 1)) run.done"
is 'each signed' "$(got 'e.every(x=>x.signed)')" true

# a certificate of nobody
receiver_stop
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=IP:127.0.0.1' -keyout "$T/key.pem" -out "$T/cert.pem" 2>/dev/null
forget
receiver "$T/cert.pem" "$T/key.pem"
sed -i "s,http://127,https://127," "$T/etc/agentboxd.yaml"
ok 'a reload' abctl reload
like 'a certificate of nobody' "$(abctl webhook test main 2>&1)" 'no answer .*certificate'
is 'and nothing was sent' "$(wc -l <"$R/got")" 0
finish
