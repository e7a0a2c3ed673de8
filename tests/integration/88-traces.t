#!/usr/bin/env bash
# Runs as traces: what a strict collector gets, and that one which is dead, slow or refuses hurts no run.
. tests/integration/lib.sh
. tests/integration/runs.sh

R=$T/collector
COLLECTOR=''
mkdir -p "$R"
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
collector() {
	python3 tests/integration/collector.py "$PORT" "$R" 2>>"$T/collector.err" &
	COLLECTOR=$!
	wait_for 20 python3 -c "import socket; socket.create_connection(('127.0.0.1', $PORT))"
}
collector_stop() {
	[ -z "$COLLECTOR" ] || kill -9 "$COLLECTOR" 2>/dev/null
	wait "$COLLECTOR" 2>/dev/null
	COLLECTOR=''
}
trap 'collector_stop; _at_exit' EXIT
mode() { printf '%s' "$1" >"$R/mode"; }
forget() { : >"$R/spans"; : >"$R/requests"; }
# otlp [LINE...]: root's settings
otlp() {
	{
		echo 'otlp:'
		printf '  %s\n' "url: 'http://127.0.0.1:$PORT/v1/traces'" 'addresses: [127.0.0.1]' 'delay: 100ms' 'timeout: 1s' \
			'retry: { first: 100ms, most: 400ms, give_up: 1h }' "headers: { authorization: { value: 'Bearer ', secret: OTLP_KEY }, x-scope-orgid: { value: acme } }" \
			'service: box' 'attributes: { deployment.environment.name: test }' "$@"
	} >"$T/etc/agentboxd.yaml"
}
req() { curl -sS -m 30 --unix-socket "$T/sock" "$@"; }
metric() { req http://x/metrics | sed -n "s/^agentbox_trace_$1 //p"; }
none_pending() { [ "$(metric pending)" = 0 ]; }
spans() { json "$1" <"$R/spans"; }
# of run ID: JS over s (its spans), r (its root), by(name)
of() { spans "(id=>{const r=e.find(x=>x.attributes['agentbox.run.id']===id),s=e.filter(x=>x.traceId===r.traceId),by=n=>s.filter(x=>x.name===n);return $2})('$1')"; }
told() { [ "$(spans "e.filter(x=>x.attributes['agentbox.run.id']==='$1').length" 2>/dev/null)" = 1 ]; }
# each span's parent is there, and has it within its times; one root
tree='(()=>{const m=new Map(s.map(x=>[x.spanId,x]));return m.size===s.length&&s.filter(x=>!m.has(x.parentSpanId)).length===1&&s.every(x=>{const p=m.get(x.parentSpanId);return !p||(BigInt(p.startTimeUnixNano)<=BigInt(x.startTimeUnixNano)&&BigInt(x.endTimeUnixNano)<=BigInt(p.endTimeUnixNano))})})()'
names='s.map(x=>x.name).sort().join()'

harness traced 'backend: exec' 'command: [sh, -c, "cat >/tmp/s; . /tmp/s"]' 'artifacts: [out/**]' 'verify: { command: [test, -e, out/x] }' \
	'retry: { maxAttempts: 2, on: [failed], backoffMs: 50 }'
script slow 'echo on; sleep 60'
harness short 'backend: exec' 'command: [sh, -c, "echo on"]'
harness line 'pipeline: [{ harness: short, prompt: "{{prompt}}" }, { harness: short, prompt: two }]'
otlp
collector
mode ok
OTLP_KEY=s3cr3t start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
call() { echo "echo '{\"type\":\"tool.call\",\"callId\":\"$1\",\"name\":\"$2\",\"kind\":\"execute\",\"input\":{\"command\":\"cat /prompt-secret\"},\"title\":\"title-secret\"$3}'"; }
result() { echo "echo '{\"type\":\"tool.result\",\"callId\":\"$1\",\"name\":\"x\",\"ok\":$2,\"output\":\"output-secret\"}'"; }

# a run with everything: a failed attempt, tools within tools, one that is left, a check, artifacts
parent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
cat >"$T/prompt" <<S
: prompt-secret
$(call a Task '')
$(call b Bash '')
sleep 0.1
$(result b false)
$(result a true)
$(call c 'Re\"ad x' '')
mkdir -p out; echo 1 >>out/n; test "\$(wc -l <out/n)" = 2 && echo x >out/x
exit \$((2 - \$(wc -l <out/n)))
S
python3 - "$T/prompt" >"$T/body" <<'P'
import json, sys
print(json.dumps({"session": {"userId": "ana", "goalId": "g"}, "harness": "traced", "prompt": open(sys.argv[1]).read()}))
P
req -H "traceparent: $parent" -H 'tracestate: vendor=1' -H 'content-type: application/json' -d @"$T/body" 'http://x/v1/runs?wait=1' >"$T/all.out"
id=$(json l.runId <"$T/all.out")
is 'the run has succeeded' "$(json l.status <"$T/all.out")" succeeded
ok 'its trace comes' wait_for 20 told "$id"
is 'every request is as the protocol wants it' "$(cat "$R/faults" 2>/dev/null)" ''
is 'of the trace that the client began' "$(of "$id" '[r.traceId,r.parentSpanId,r.traceState,r.kind].join()')" '4bf92f3577b34da6a3ce929d0e0e4736,00f067aa0ba902b7,vendor=1,2'
is 'a tree, each within its parent' "$(of "$id" "$tree")" true
is 'with all that happened' "$(of "$id" "$names")" 'agent,agent,artifacts,attempt,attempt,pause,queue,run traced,start jail,start jail,tool Bash,tool Bash,tool Re\.ad.x,tool Re\.ad.x,tool Task,tool Task,verify'
is 'what failed in it' "$(of "$id" '[...new Set(s.filter(x=>x.status).map(x=>x.name+":"+x.status.message))].sort().join()')" 'attempt:failed,tool Bash:the tool says that it failed,tool Re\.ad.x:the tool says that it failed'
is 'what is said of the run' "$(of "$id" '(a=>[a["agentbox.harness"],a["agentbox.run.status"],a["agentbox.run.attempts"],a["agentbox.run.tool_calls"],a["gen_ai.agent.name"]].join())(r.attributes)')" 'traced,succeeded,2,6,exec'
is 'and of who says it' "$(of "$id" '(a=>[a["service.name"],a["deployment.environment.name"]].join())(r.resource)')" 'box,test'
is 'with root'"'"'s headers' "$(json 'l.auth+" "+l.org' <"$R/requests")" 'Bearer s3cr3t acme'
is 'nothing of what was said, and no path' "$(grep -cE 'secret|out/|ana' "$R/spans")" 0
is 'the run tells its trace' "$(req "http://x/v1/runs/$id" | json l.traceId)" 4bf92f3577b34da6a3ce929d0e0e4736
is 'and so do its events' "$(abctl logs "$id" --json | json 'e.filter(x=>x.type==="run.started").map(x=>x.traceId).join()')" '4bf92f3577b34da6a3ce929d0e0e4736,4bf92f3577b34da6a3ce929d0e0e4736'

# without a trace of the client's, of a pipeline, failed, cancelled while it waits
run short plain x
plain=$(json 'e[0].run' <"$T/plain.out")
run line steps x
line=$(json 'e[0].run' <"$T/steps.out")
run traced bad 'exit 7'
bad=$(json 'e[0].run' <"$T/bad.out")
ok 'others come' wait_for 20 eval 'told "$plain" && told "$line" && told "$bad"'
is 'one of its own' "$(of "$plain" 'r.parentSpanId===undefined&&r.traceId' | cut -c1-32)" "$(req "http://x/v1/runs/$plain" | json l.traceId)"
ok 'the steps of a pipeline too' wait_for 20 eval '[ "$(of "$line" "s.filter(x=>x.name===\"run short\").length")" = 2 ]'
is 'below their steps, in one trace' "$(of "$line" "$tree&&by('run short').every(x=>by('step').some(p=>p.spanId===x.parentSpanId))")" true
is 'why it failed' "$(of "$bad" 'r.status.message')" exit
req -H "traceparent: ${parent%01}00" -d '{"session":{"userId":"u","goalId":"n"},"harness":"short","prompt":"x"}' 'http://x/v1/runs?wait=1' >"$T/unsampled"
is 'one that its client does not sample is not told' "$(none_pending && json l.status <"$T/unsampled")" succeeded
req -H 'traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01' -d '{"session":{"userId":"u","goalId":"n"},"harness":"short","prompt":"x"}' 'http://x/v1/runs?wait=1' >"$T/forged"
forged=$(json l.runId <"$T/forged")
ok 'what is no traceparent does not count' wait_for 20 told "$forged"
like 'it has another id' "$(of "$forged" r.traceId)" '^[0-9a-f]{32}$'
is 'and what was sent is counted' "$(metric spans_sent_total)" "$(wc -l <"$R/spans")"

# two that do not fit one body: a client's state is in each span
harness calls 'backend: exec' 'command: [python3, -]'
mode 503
state=a=$(printf '\\%.0s' {1..500})
calls() { # N: the run's id
	python3 - "$1" <<-'P' | req -H "traceparent: $parent" -H "tracestate: $state" -H 'content-type: application/json' -d @- 'http://x/v1/runs?wait=1' | json l.runId
		import json, sys
		prompt = """import json
		for i in range(N): print(json.dumps({"type": "tool.call", "callId": str(i), "name": "x", "kind": "other", "input": {}}))""".replace("N", sys.argv[1]).replace("\t", "")
		print(json.dumps({"session": {"userId": "u", "goalId": "c" + sys.argv[1]}, "harness": "calls", "prompt": prompt}))
	P
}
few=$(calls 300)
many=$(calls 500)
mode ok
tools() { spans 'e.filter(x=>x.traceState&&x.traceState.length===502&&x.name==="tool x").length'; }
ok 'both come' wait_for 20 eval 'told "$few" && told "$many"'
ok 'whole' wait_for 20 eval '[ "$(tools 2>/dev/null)" = 800 ]'
is 'and once' "$(none_pending && tools)" 800

# a collector that is not well
for how in 503 later hang; do
	forget
	mode "$how"
	run short "$how" x
	id=$(json 'e[0].run' <"$T/$how.out")
	is "$how: the run does not wait" "$(json l.result.status <"$T/$how.out")" succeeded
	ok "$how: it is tried" wait_for 20 test -s "$R/requests"
	mode ok
	ok "$how: and again, until it is taken" wait_for 20 told "$id"
	case $how in later) is 'Retry-After is waited for' "$(json '(n=>n.at-e[0].at>=0.95)(e.find(x=>x.mode==="ok"))' <"$R/requests")" true ;; esac
done
ok 'nothing is left' wait_for 10 none_pending
is 'nothing was dropped' "$(metric spans_dropped_total) $(metric runs_dropped_total)" '0 0'
mode partial
run short partial x
ok 'spans that it does not take' wait_for 20 eval '[ "$(metric spans_dropped_total)" = 2 ]'
like 'are told to root' "$(cat "$T/log")" 'traces: the collector says 200: too \{"old; it has not taken all spans'
mode 400
run short refused x
ok 'what it will never take is dropped' wait_for 20 eval '[ "$(metric runs_dropped_total)" = 1 ]'
collector_stop
run short dead x
dead=$(json 'e[0].run' <"$T/dead.out")
is 'one that is dead: the run does not wait' "$(json l.result.status <"$T/dead.out")" succeeded
run short more x
more=$(json 'e[0].run' <"$T/more.out")
begin slow killed
killed=$id
kill_child agentbox-supervisor
abctl cancel "$killed" >/dev/null
kill_child agentbox-egress
forget
mode ok
collector
ok 'all of it comes after SIGKILL of supervisor and egress' wait_for 20 eval 'told "$dead" && told "$more" && told "$killed"'
is 'in one request, or two' "$(json 'e.length<=2' <"$R/requests")" true
is 'the one that lived through it is whole' "$(of "$killed" "$tree&&by('attempt').length===1&&r.attributes['agentbox.run.status']")" cancelled
is 'and still as the protocol wants it' "$(cat "$R/faults" 2>/dev/null)" ''

ok 'nothing waits any more' wait_for 10 none_pending
otlp 'sample: 0'
abctl reload >/dev/null
run short none x
is 'a sample of none' "$(metric pending)" 0
sed -i "s/127.0.0.1:$PORT/collector.test/" "$T/etc/agentboxd.yaml"
sed -i '/addresses/d' "$T/etc/agentboxd.yaml"
like 'not over plain http to anywhere' "$(abctl reload 2>&1)" 'plain http'
finish
