#!/usr/bin/env bash
# The real Claude Code in the default jail, with the stand-in model server.
. tests/integration/lib.sh
. tests/integration/agent.sh

install_agent claude
PORT=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
KEY=sk-ant-test-$RANDOM$RANDOM$RANDOM
MODEL=''
trap 'kill $MODEL 2>/dev/null; _at_exit' EXIT
start_model() {
	node tests/agents/mock-llm.mjs --listen "127.0.0.1:$PORT" --scenarios tests/agents/scenarios \
		--scenario tests/agents/scenarios/hello-claude.json --log "$T/model.log" --bodies "$T/bodies" >"$T/model.out" 2>&1 &
	MODEL=$!
	wait_for 30 grep -q '^mock-llm:' "$T/model.out"
	grep -q 'listening on' "$T/model.out"
}
# The port is the one that the policy `demo` names, so a demo on this machine may hold it for a while.
for _ in $(seq 30); do
	start_model && break
	sleep 2
done
ok 'the stand-in model listens' grep -q 'listening on' "$T/model.out" || finish
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
# one policy for each scenario: the upstream's prefix picks it
policy() {
	cat >"$T/etc/policy/$1.yaml" <<Y
extends: default
egress:
  inject:
    - host: anthropic.agentbox
      upstream: http://127.0.0.1:$PORT/x/$1/$1
      header: x-api-key
      secret: TEST_KEY
      allow_loopback: true
Y
}
for s in text tool write resume err401 hang env; do policy $s; done
harness() { printf -- '---\nbackend: claude\nmodel: claude-sonnet-4-5\npolicy: %s\n%s\n---\nBe brief.\n' "$2" "$3" >"$T/etc/harnesses/$1.md"; }
harness text text ''
harness tool tool 'artifacts: [out/**]'
harness write write 'artifacts: [out/**]'
harness resume resume ''
harness onlyread text 'tools: { allow: [Read] }'
harness err err401 'env: { CLAUDE_CODE_MAX_RETRIES: "1" }'
harness hang hang 'limits: { timeoutMs: 4000 }'
harness env env ''
harness look hang 'limits: { timeoutMs: 300000 }'
cat >"$T/etc/agentboxd.yaml" <<Y
default_policy: demo
Y
export TEST_KEY=$KEY
start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
run() { abctl run "$1" -s "u/${2:-$1}" -p "${3:-Do it.}" --json 2>"$T/err"; }
last_request() { ls -t "$T"/bodies/* | head -n 1; }

run text >"$T/out"
is 'a text answer' "$(json 'l.result.status' <"$T/out")" succeeded
ok 'is the final text' test -n "$(json 'l.result.finalText' <"$T/out")"
ok 'usage is counted' test "$(json 'l.result.usage.inputTokens' <"$T/out")" -gt 0
is 'and metered outside the jail' "$(json 'l.result.usage.metered' <"$T/out")" true
is 'as many tokens as the agent says, by what the model told it' \
	"$(json '[l.result.usage.inputTokens,l.result.usage.outputTokens].join()' <"$T/out")" \
	"$(json '(u=>[u.inputTokens,u.outputTokens].join())(e.filter(x=>x.type==="usage").pop())' <"$T/out")"
ok 'as many requests as the model had' test "$(json 'l.result.usage.requests' <"$T/out")" = "$(grep -c '"method":"POST"' "$T/model.log")"
like 'the model got the system prompt' "$(cat "$(last_request)")" 'Be brief\.'
run tool >"$T/out"
is 'a tool call' "$(json 'e.filter(x=>x.type==="tool.call").map(x=>x.name).join()' <"$T/out")" Bash
is 'has its result by id' "$(json '(c=>e.find(x=>x.type==="tool.result"&&x.callId===c.callId).ok)(e.find(x=>x.type==="tool.call"))' <"$T/out")" true
is 'and its artifact' "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/out")" out/hello.txt
run write >"$T/out"
is 'a file written by a tool comes back' "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/out")" out/hello.txt
run resume r 'Remember heliotrope.' >"$T/out"
is 'first of a conversation' "$(json 'l.result.status' <"$T/out")" succeeded
run resume r 'Which word?' >"$T/out"
is 'the second run resumes it' "$(json 'l.result.status' <"$T/out")" succeeded
like 'the model had the first in its request' "$(json 'l.result.finalText' <"$T/out")" heliotrope
abctl exec u/r -- rm -rf /home/agent/.claude >/dev/null 2>&1
run resume r 'Which word?' >"$T/out"
is 'a conversation that the agent has lost: it begins a new one' "$(json 'l.result.status+" "+l.result.attempts' <"$T/out")" 'succeeded 2'
like 'and says so' "$(json 'e.find(x=>x.type==="run.retry").reason' <"$T/out")" "lost this session's conversation"
is 'with the old one as text' "$(json 'e.filter(x=>x.type==="session.resumed").map(x=>x.how+" "+x.lost).join()' <"$T/out")" \
	'native false,transcript true'
like 'which the model had in its request' "$(json 'l.result.finalText' <"$T/out")" heliotrope
run resume r 'Which word?' >"$T/out"
is 'the next run goes on with the new one' "$(json '[l.result.status,l.result.attempts,e.find(x=>x.type==="session.resumed").how].join()' <"$T/out")" succeeded,1,native
run onlyread >"$T/out"
is 'a tool that the harness does not allow is not offered' \
	"$(node -e 'const b=JSON.parse(require("fs").readFileSync(process.argv[1]));const t=(b.body||b).tools||[];console.log(t.map(x=>x.name).join())' "$(last_request)")" Read
run err >"$T/out"
is 'an API error fails the run' "$(json 'l.result.status' <"$T/out")" failed
like 'with its reason' "$(json 'l.result.error' <"$T/out")" '401|[Aa]uth|API key'
start=$(date +%s)
run hang >"$T/out"
is 'a hanging model: timeout' "$(json 'l.result.status' <"$T/out")" timeout
ok 'in time' test $(($(date +%s) - start)) -lt 15
big=$(head -c 1000000 /dev/zero | tr '\0' w)
printf '%s' "$big" >"$T/big"
abctl run text -s u/big -f "$T/big" --json >"$T/out" 2>"$T/err"
is 'a prompt of 1 MB' "$(json 'l.result.status' <"$T/out")" succeeded
run text dash '--version' >"$T/out"
is 'a prompt that looks like a flag' "$(json 'l.result.status' <"$T/out")" succeeded

# the key
ok 'the model server got the key' grep -q "\"key\":\"$KEY\"" "$T/model.log"
run env >"$T/out"
is 'the key is in no event' "$(grep -c "$KEY" "$T/out")" 0
abctl run look -s u/look -p x --detach --json >"$T/run"
wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $(json 'l.runId||l.run' <"$T/run") --json | grep -q run.started"
sleep 2
mapfile -t pids < <(jail_processes | awk '{print $2}')
python3 tests/integration/needles.py "$KEY" placeholder-the-key -- "${pids[@]}" >"$T/found" 2>&1
ok 'the jail of an agent that waits can be searched' test $? = 0
tail -n 1 "$T/found"
for place in environ memory proc; do
	ok "the placeholder is found: $place" grep -qP "^placeholder-the-key\t$place\t" "$T/found"
done
is 'the key is nowhere in it' "$(grep "^$KEY" "$T/found")" ''
grep -q "$KEY" "/proc/$(child_pid agentbox-supervisor)/environ" "/proc/$DAEMON/environ"
ok 'nor in the environment of supervisor and agentboxd' test $? -ne 0
is 'nor in a file of state' "$(grep -rl "$KEY" "$T/state" | wc -l)" 0
is 'nor in the log' "$(grep -c "$KEY" "$T/log")" 0
abctl cancel "$(json 'l.runId||l.run' <"$T/run")" >/dev/null
ok 'nothing is left' wait_for 10 no_jail_processes
finish
