#!/usr/bin/env bash
# What models cost: metered outside the jail, whatever runs in it; budgets of run, session, user and
# secret, which outlive egress and the daemon.
. tests/integration/lib.sh

PORT=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
MODEL=''
trap 'kill $MODEL 2>/dev/null; _at_exit' EXIT
cat >"$T/scenario.json" <<'J'
{ "turns": [ { "repeat": -1, "text": "Yes.", "usage": { "input": 1000, "output": 100 } } ] }
J
node tests/agents/mock-llm.mjs --listen "127.0.0.1:$PORT" --scenario "$T/scenario.json" --log "$T/model.log" >"$T/model.out" 2>&1 &
MODEL=$!
wait_for 30 grep -q 'listening on' "$T/model.out"
ok 'the stand-in model listens' grep -q 'listening on' "$T/model.out" || finish
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
# policy NAME BUDGET
policy() {
	cat >"$T/etc/policy/$1.yaml" <<Y
extends: default
egress:
  inject:
    - { host: model.agentbox, upstream: "http://127.0.0.1:$PORT", header: x-api-key, secret: TEST_KEY, allow_loopback: true }
  budget: { $2 }
Y
}
# harness NAME POLICY KEYS: asks the model $ASKS times and tells the status of each
harness() {
	cat >"$T/etc/harnesses/$1.md" <<Y
---
backend: exec
policy: $2
$3
command: [sh, -c, 'ask() { curl -s -o /tmp/answer -w "%{http_code}\n" -d "{\"model\":\"$MODEL_NAME\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"Go.\"}]}" http://model.agentbox/v1/messages; }; $4']
---
Y
}
MODEL_NAME=claude-sonnet-4-5
policy free ''
policy three 'run: { requests: 3 }'
policy dear 'run: { cost: 0.005 }'
policy user 'user: { tokens: 2200 }'
policy session 'session: { tokens: 2200 }'
policy secret 'secret: { requests: 9 }'
harness free free '' 'ask; ask'
harness three three '' 'for i in 1 2 3 4 5; do ask; done; sleep 100'
harness dear dear '' 'for i in 1 2 3 4 5; do ask; done; sleep 100'
harness cheap free 'limits: { costUsd: 0.004 }' 'ask; ask; sleep 100'
harness greedy dear 'limits: { costUsd: 1 }' 'ask'
harness user user '' 'ask; ask; ask; sleep 100'
harness session session '' 'ask; ask; ask; sleep 100'
harness secret secret '' 'for i in 1 2 3 4 5 6 7 8 9 10; do ask; done; sleep 100'
harness waits three '' 'ask; ask; touch /workspace/asked; while [ ! -e /workspace/go ]; do sleep 0.2; done; ask; ask; sleep 100'
MODEL_NAME=unheard-of
harness unknown dear '' 'ask; ask; sleep 100'
harness unpriced free '' 'ask; ask'
MODEL_NAME=ours-7b
harness ours free '' 'ask'
# a harness that asks with the key of a file, of a command
for s in FILE_KEY COMMAND_KEY; do
	cat >"$T/etc/policy/${s,,}.yaml" <<Y
extends: default
egress:
  inject:
    - { host: model.agentbox, upstream: "http://127.0.0.1:$PORT", header: x-api-key, secret: $s, allow_loopback: true }
Y
	harness "${s,,}" "${s,,}" '' 'ask'
done
mkdir "$T/keys"
(umask 077 && echo sk-file-1 >"$T/keys/key")
cat >"$T/keys/print" <<'Y'
#!/bin/sh
echo "sk-command-$(id -u)"
Y
chmod 755 "$T/keys/print"
cat >"$T/etc/agentboxd.yaml" <<Y
secrets:
  TEST_KEY: { env: TEST_KEY }
  FILE_KEY: { file: $T/keys/key }
  COMMAND_KEY: { command: [$T/keys/print] }
prices:
  ours-*: { input: 2, output: 20 }
Y
export TEST_KEY=sk-test-$RANDOM$RANDOM
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
# run HARNESS [USER/GOAL]
run() { abctl run "$1" -s "${2:-u/$1}" -p x --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }
limit() { json 'e.filter(x=>x.type==="limit.hit").map(x=>[x.limit,x.scope,x.value].join(" ")).join()' <"$T/out"; }
asked() { grep -c '"/v1/messages"' "$T/model.log"; }

run free
is 'a run without a budget' "$(result status)" succeeded
is 'its tokens are metered, though its agent says nothing of them' \
	"$(result 'usage.inputTokens') $(result 'usage.outputTokens') $(result 'usage.requests')" '2000 200 2'
is 'and priced' "$(result 'usage.costUsd')" 0.009
is 'as metered ones' "$(result 'usage.metered')" true
run ours
is "by root's prices first" "$(result 'usage.costUsd')" 0.004
run unpriced
is 'a model without a price: its cost is not known' "$(result 'status') $(result 'usage.inputTokens') $(result 'usage.costUsd||"none"')" 'succeeded 2000 none'

before=$(asked)
run three u/three
is 'a budget of requests: quota' "$(result status)" quota
is 'the limit that was hit' "$(limit)" 'requests run 3'
like 'and why' "$(result error)" '3 requests of this run are used up'
is 'the model saw those and no more' $(($(asked) - before)) 3
run three u/three
is 'the next run has its own' "$(result 'usage.requests')" 3
run dear
is 'a budget of cost: quota' "$(result status) $(limit)" 'quota cost run 0.005'
is 'after the request that went over it' "$(result 'usage.requests')" 2
run cheap
is 'limits.costUsd of a harness' "$(result status) $(limit)" 'quota cost run 0.004'
run greedy
ok 'may not be more than the policy gives' grep -q 'limits.costUsd: 1 asked, the policy gives at most 0.005' "$T/out" "$T/err"
run unknown
is 'a budget of cost and a model without a price: quota' "$(result status) $(result 'usage.requests')" 'quota 1'
like 'and why' "$(result error)" 'the price of unheard-of is not known'

run session s/one
is 'a budget of a session' "$(result status) $(limit)" 'quota tokens session 2200'
run session s/one
is 'its next run has nothing left' "$(result status) $(json 'l.result.usage.requests||0' <"$T/out")" 'quota 0'
run session s/two
is 'another session has' "$(result 'usage.requests')" 2
run user ann/one
is 'a budget of a user' "$(result status) $(limit)" 'quota tokens user 2200'
run user ann/two
is 'is that of all sessions' "$(result status) $(json 'l.result.usage.requests||0' <"$T/out")" 'quota 0'
run user bob/one
is 'another user has one' "$(result 'usage.requests')" 2

abctl run waits -s w/w -p x --json >"$T/out" 2>"$T/err" &
follower=$!
ok 'a run that has asked twice' wait_for 60 sh -c "'$BIN/abctl' --socket '$T/sock' exec w/w -- test -e /workspace/asked"
sleep 1
kill -KILL "$(child_pid agentbox-egress)"
abctl exec w/w -- touch /workspace/go
wait $follower
is 'egress that is started anew knows what was spent' "$(result status) $(limit)" 'quota requests run 3'
is 'to the request' "$(result 'usage.requests')" 3

used_key() { run "$1" "k/$1"; tail -n 1 "$T/model.log" | json 'l.key'; }
is 'a secret of a file' "$(used_key file_key)" sk-file-1
is 'of a command, which runs as nobody in particular' "$(used_key command_key)" sk-command-536805381
(umask 077 && echo sk-file-2 >"$T/keys/new" && mv "$T/keys/new" "$T/keys/key")
ok 'a new file is noticed' wait_for 20 grep -q 'secrets have changed' "$T/log"
is 'and counts for the next request' "$(used_key file_key)" sk-file-2
sed -i 's/^echo .*/exit 4/' "$T/keys/print"
ok 'a reload' abctl reload
ok 'says that a command failed' grep -q 'secret COMMAND_KEY: its command ended with exit code 4: its last value stays' "$T/log"
is 'and its last value stays' "$(used_key command_key)" sk-command-536805381
chmod 644 "$T/keys/key"
refused() { run file_key k/open && [ "$(result finalText | tr -d '\n')" = 503 ]; }
ok 'a file that others may read is none, from then on' wait_for 20 refused
is 'no secret is in the log' "$(grep -cE 'sk-(file|command|test)' "$T/log")" 0

like 'metrics: tokens' "$(abctl metrics)" 'agentbox_tokens_total\{kind="input"\} [1-9][0-9]*000$'
like 'cost' "$(abctl metrics)" 'agentbox_cost_usd_total 0\.[0-9]*[1-9]'
ok 'the daemon ends' stop_daemon
ok 'and starts again' start_daemon --config "$T/etc/agentboxd.yaml"
run user ann/three
is 'which does not give a user more' "$(result status) $(json 'l.result.usage.requests||0' <"$T/out")" 'quota 0'
run session s/one
is 'nor a session' "$(result status)" quota
run secret x/y
is 'a budget of a secret counts what other policies used it for' "$(result status) $(limit)" 'quota requests secret 9'
is 'at once' "$(json 'l.result.usage.requests||0' <"$T/out")" 0
finish
