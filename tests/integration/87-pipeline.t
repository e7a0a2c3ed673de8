#!/usr/bin/env bash
# Pipelines: steps in a row, what they hand on, approval, and that nothing is done twice or lost
# whatever is killed.  Parameters that a harness declares.
. tests/integration/lib.sh
. tests/integration/runs.sh

# each step says its prompt and adds it to a file of the session
script step 'p=$(cat); echo "$p" >>log; echo "[$p]"'
script fails 'cat >>log; echo bad; exit 3'
script slow 'cat >>log; echo on; sleep 60'
script brief 'cat >>log; echo >>log; sleep 0.3; echo done'
script log 'cat log'
printf -- '---\nbackend: exec\ncommand: [cat]\nparams:\n  lang: { enum: [de, en], default: de }\n  who: { required: true, pattern: "[a-z]+", description: whose it is }\n---\nin {{lang}}\n' >"$T/etc/harnesses/typed.md"
pipeline() { # NAME STEPS [LINE...]
	local name=$1 steps=$2
	shift 2
	harness "$name" "pipeline: [$steps]" "$@"
}
pipeline three '{ harness: step, prompt: "a {{prompt}}" }, { harness: step, prompt: "b {{prev.finalText}}" }, { harness: step, prompt: c }'
pipeline broken '{ harness: step, prompt: a }, { harness: fails, prompt: b }, { harness: step, prompt: c }'
pipeline asks '{ harness: step, prompt: a }, { harness: step, prompt: "b {{prev.finalText}}", approve: true }'
pipeline hasty '{ harness: step, prompt: a, approve: true, timeoutMs: 300 }'
pipeline long '{ harness: slow, prompt: a }, { harness: step, prompt: b }'
pipeline lasting '{ harness: brief, prompt: a }, { harness: brief, prompt: b, approve: true }, { harness: brief, prompt: c }, { harness: brief, prompt: d }'
pipeline nested '{ harness: three, prompt: a }'
pipeline nobody '{ harness: missing, prompt: a }'
pipeline wants '{ harness: typed, prompt: a }'
pipeline gives '{ harness: typed, prompt: "{{who}} {{lang}}" }' 'params: { who: { required: true }, lang: {} }'
printf 'runs: { max: 2 }\n' >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

post() { curl -sS -m 60 --unix-socket "$T/sock" -d "$2" "http://x/v1/runs$1"; }
body() { printf '{"session":{"userId":"u","goalId":"%s"},"harness":"%s","prompt":"%s"%s}' "$1" "$2" "$3" "${4:-}"; }
start() { id=$(abctl run "$1" -s "u/$2" ${3:+-p "$3"} --detach); }
show() { abctl show "$id" --json | json "$1"; }
waits() { abctl show "$id" --json | json '(l.pending||[]).length===1' | grep -qx true; }
done_() { wait_for 30 ended; }
steps() { show '(l.result||l).steps.map(s=>s.harness+":"+s.status).join()'; }
said() { abctl run log -s "u/$1" --json | json 'l.result.finalText.trim().replace(/\n/g," ")'; }

# one after the other
r=$(post '?wait=1' "$(body g three hi)")
is 'a pipeline ends as its last step' "$(json 'l.status+" "+l.finalText.trim()' <<<"$r")" 'succeeded [c]'
is 'with all of them' "$(json 'l.steps.map(s=>[s.step,s.harness,s.status].join(":")).join()' <<<"$r")" '1:step:succeeded,2:step:succeeded,3:step:succeeded'
is 'in the same workspace, each with what the one before said' "$(said g)" 'a hi b [a hi] c'
id=$(json 'l.runId' <<<"$r")
is 'its events' "$(abctl logs "$id" --json | json 'e.map(x=>x.type+(x.step||"")).join()')" 'run.queued,run.started,step.started1,step.done1,step.started2,step.done2,step.started3,step.done3,run.done'
child=$(show 'l.result.steps[1].runId')
is 'a step is a run that names it' "$(abctl show "$child" --json | json 'l.pipelineRunId+" "+l.step+" "+l.result.finalText.trim()')" "$id 2 [b [a hi]]"
like 'abctl run shows the steps and what they say' "$(abctl run three -s u/g2 -p x 2>&1)" 'step 1 of 3: step'
like 'and its words' "$(abctl logs "$id" 2>&1)" '^\[b \[a hi\]\]'
r=$(post '?wait=1' "$(body b broken '')")
is 'the first that fails is the last' "$(json '[l.status,l.exit.reason,l.steps.map(s=>s.status).join("+")].join()' <<<"$r")" 'failed,step,succeeded+failed'
like 'and is named' "$(json 'l.error' <<<"$r")" '^step 2 \(fails\) ended as failed: run run_'
like 'a prompt that no step has' "$(post '' "$(body g broken hi)")" '"status":400.*no step of harness .broken. has \{\{prompt\}\}'
like 'pipelines of pipelines are refused' "$(post '' "$(body g nested '')")" "\"status\":422.*step 1: harness 'three' is a pipeline itself"
like 'and of harnesses that are not there' "$(post '' "$(body g nobody '')")" "\"status\":422.*step 1: .*missing"
is 'also in the list' "$(abctl harness ls --json | json 'l.harnesses.filter(h=>!h.usable&&/step 1/.test(h.error)).map(h=>h.name).sort().join()')" 'nested,nobody,wants'

# parameters
like 'a missing one' "$(post '' "$(body p typed hi)")" '"status":400.*params.who: missing.*whose it is'
like 'one that is not of its form' "$(post '' "$(body p typed hi ',"params":{"who":"--a b"}')")" '"status":400.*params.who: .--a b. is not of the form'
like 'none of its values' "$(post '' "$(body p typed hi ',"params":{"who":"a","lang":"fr"}')")" '"status":400.*none of de, en'
like 'an unknown one' "$(post '' "$(body p typed hi ',"params":{"who":"a","lan":"de"}')")" "\"status\":400.*did you mean 'lang'"
like 'one that no text has' "$(post '' "$(body p step hi ',"params":{"x":"a"}')")" '"status":400.*params.x: neither the prompt nor harness'
like 'help of the harness lists them' "$(abctl run typed --help)" '^who +true +- +- +\[a-z\]\+ +whose it is'
like 'with values and default' "$(abctl run typed --help)" '^lang +false +de +.*de.*en'
like 'one without says so' "$(abctl run step --json --help)" '^It declares no parameters'
like 'and one that is not there' "$(abctl run none --help)" '^No daemon tells of a harness'
is 'a default' "$(post '?wait=1' "$(body p typed '{{who}} {{lang}}' ',"params":{"who":"ana"}')" | json 'l.finalText.trim()')" 'ana de'
like 'are shown' "$(abctl harness show typed)" 'whose it is'
is 'one that runs nothing itself has no time' "$(abctl harness show gives --json | json 'String(l.timeoutMs)') $(abctl harness show typed --json | json l.timeoutMs)" 'undefined 600000'
like 'a step that wants what the pipeline has not' "$(post '' "$(body p wants '')")" "\"status\":422.*requires the parameter 'who'"
like "a step's form holds" "$(post '' "$(body p gives '' ',"params":{"who":"A"}')")" '"status":400.*params.who'
is 'a step has the values of the pipeline' "$(post '?wait=1' "$(body p gives '' ',"params":{"who":"ana"}')" | json 'l.finalText.trim()')" 'ana de'

# a person is asked
start asks a1
ok 'a step waits for approval' wait_for 20 waits
is 'and says for what' "$(show '(p=>[p.permissionId,p.title,p.input.prompt.trim(),p.options.join("|")].join())(l.pending[0])')" "step-2,step 2 of 2: harness 'step',b [a],once|deny"
is 'it takes no slot' "$(abctl stats --json | json 'l.runsRunning')" 0
other=$(abctl run log -s u/a1 --detach)
is 'a look at the workspace is possible' "$(abctl exec u/a1 -- cat log)" a
is 'other runs of the session wait' "$(abctl show "$other" --json | json 'l.status')" queued
like 'always is not among the answers' "$(abctl approve "$id" --always 2>&1)" 'approved once'
ok 'a yes' abctl approve "$id"
like 'counts once' "$(abctl approve "$id" step-2 2>&1)" 'answered|ended'
ok 'lets it go on' done_
is 'to its end' "$(show 'l.status')" succeeded
id=$other
ok 'and then the others' done_
is 'which see all of it' "$(show 'l.result.finalText.trim().replace(/\n/g," ")')" 'a b [a]'
start asks a2
wait_for 20 waits
abctl deny "$id" >"$T/out"
ok 'a no ends it' done_
is 'as cancelled, and says so' "$(show 'l.status+" "+l.result.error')" "cancelled step 2 (step) was denied by uid 0"
start hasty a3
ok 'nobody answers' done_
is 'which is a no' "$(show 'l.status+" "+l.result.error')" 'cancelled step 1 (step) was not approved: nobody answered within 300 ms'
start asks a4
wait_for 20 waits
abctl cancel "$id" >"$T/out"
ok 'cancelled while it waits' done_
is 'ends at once' "$(show 'l.status+" "+l.result.steps.length')" 'cancelled 1'
start long a5
ok 'cancelled in a step' wait_for 20 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q '\"step\":1.*running'"
abctl cancel "$id" --now >"$T/out"
ok 'ends, too' done_
is 'with the step' "$(show 'l.status+" "')$(steps)" 'cancelled slow:cancelled'

# killed
start lasting k1
first=$id
ok 'killed in a step' wait_for 20 sh -c "$BIN/abctl --socket $T/sock show $id --json | grep -q '\"step\":1'"
kill_child agentbox-supervisor
ok 'it comes to its question' wait_for 20 waits
start asks k2
second=$id
wait_for 20 waits
expires=$(show 'l.pending[0].expiresAt.slice(0,19)')
kill_child agentbox-supervisor
ok 'a question outlives a supervisor' wait_for 20 waits
stop_daemon KILL
start_daemon --config "$T/etc/agentboxd.yaml"
ok 'and agentboxd' wait_for 20 waits
is 'and has not got longer' "$(show 'l.pending[0].expiresAt.slice(0,19)')" "$expires"
abctl approve "$id" >"$T/out"
kill_child agentbox-supervisor
ok 'an answer counts, whatever happens next' done_
is 'and is done' "$(show 'l.status+" "')$(steps)" 'succeeded step:succeeded,step:succeeded'
id=$first
abctl approve "$id" >"$T/out"
for i in 1 2 3; do
	kill_child agentbox-supervisor
	"$BIN/abctl" --socket "$T/sock" show "$id" --json | grep -q '"exit"' && break
	sleep "0.$((RANDOM % 4))"
done
ok 'killed again and again' done_
is 'each step is done' "$(steps)" 'brief:succeeded,brief:succeeded,brief:succeeded,brief:succeeded'
is 'and once' "$(said k1)" 'a b c d'
for id in $first $second; do
	is 'its events are told once' "$(abctl logs "$id" --json | json '(t=>t.length===new Set(t).size)(e.filter(x=>x.type!=="run.queued").map(x=>x.type+(x.step||x.permissionId||"")))')" true
done
finish
