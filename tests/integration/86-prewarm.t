#!/usr/bin/env bash
# A session that is prepared for its next run: workspace, seed files, and an agent that waits in it.
. tests/integration/lib.sh
. tests/integration/parrot.sh
. tests/integration/warm.sh

seed='workspace: { seed: { hello.txt: "seeded", b/c.txt: "too" } }'
harness warm "warm: { idleMs: 60000 }
$seed" 'Be brief.'
harness plain "$seed"
harness asks 'warm: { idleMs: 60000 }' 'Speak {{language}}.'
harness clones 'workspace: { repo: "https://git.example/x" }'
printf -- '---\npipeline: [{ harness: plain, prompt: a }]\n---\n' >"$T/etc/harnesses/steps.md"
printf -- '---\nbackend: cluade\n---\n' >"$T/etc/harnesses/slip.md"
begin 'runs: { max: 4, warm: 2 }'

prewarm() { abctl session prewarm "u/$1" "$2" --wait --json 2>&1; }
said() { json '[l.state,l.agent,l.why||""].join("|")'; }
file() { abctl session cp "u/$1:$2" - 2>&1; }
ids() { abctl sessions --json | json "l.sessions.filter(x=>x.goalId===\"$1\").map(x=>x.sessionId).join()"; }

is 'a session that is not there is made and an agent waits in it' "$(prewarm a warm | said)" 'ready|true|'
is 'it is one of its user' "$(abctl sessions --json | json 'l.sessions.map(x=>x.userId+"/"+x.goalId+x.runs).join()')" u/a0
ok 'one process' live_parrots 1
ok 'which is counted' waiting 1
is 'the files are there' "$(file a hello.txt),$(file a b/c.txt)" seeded,too
is 'once more is no other agent' "$(prewarm a warm | said)" 'ready|true|'
is 'and ends none' "$(grep -c 'the agent of jail' "$T/log")" 0
run warm a 'say:hello pid'
like 'its first run is warm' "$(was_warm),$(result)" '^true,succeeded\|told:Be brief. hello pid:[0-9]+\|$'
run warm a 'say:again'
is 'and the next' "$(was_warm),$(result | cut -d '|' -f 1)" true,succeeded
is 'an agent that waits after a run is what is wanted' "$(prewarm a warm | said)" 'ready|true|'
is 'with its run' "$(curl -s --unix-socket "$T/sock" http://x/v1/jails | json 'l.jails.filter(x=>x.waits&&x.waits.lastRunId).length')" 1
printf edited >"$T/edited"
abctl session cp "$T/edited" u/a:hello.txt >/dev/null
ok 'a command ends it' abctl exec u/a -- true
is 'and one is started that goes on' "$(prewarm a warm | said)" 'ready|true|'
is 'over nothing that is there' "$(file a hello.txt)" edited
run warm a 'say:more'
like 'with the conversation' "$(was_warm),$(result)" '^true,succeeded\|after:.*say:again, more'

is 'without warm the workspace alone' "$(prewarm p plain | said)" 'ready|false|the harness has no `warm`'
is 'is made' "$(file p hello.txt),$(file p b/c.txt)" seeded,too
like 'which is said' "$(abctl session prewarm u/p plain --wait)" '^ses_.* is ready for plain: its workspace alone, for the harness has no .warm.$'
run plain p 'say:x'
is 'and used' "$(result)" 'succeeded|x|'
like 'a text with parameters is not told ahead' "$(prewarm q asks | said)" '^ready|false|.*has parameters'
like 'a checkout is its run'"'"'s' "$(prewarm q clones)" 'workspace.repo.*cannot be prewarmed'
like 'a pipeline has no agent' "$(prewarm q steps)" 'is a pipeline: prewarm the harness of its first step'
like 'an agent that is not there, said once' "$(prewarm q slip)" "^[^']*harness 'slip': no agent 'cluade' .*claude"
like 'a harness that is not there' "$(prewarm q wram)" "no harness 'wram'.*warm"
like 'wait is 0 or 1' "$(curl -s --unix-socket "$T/sock" -d '{"harness":"warm"}' 'http://x/v1/sessions/ses_00000000000000000000000000/prewarm?wait=yes')" '"status":400.*wait'
like 'nor a session' "$(abctl session prewarm ses_00000000000000000000000000 warm 2>&1)" 'no session'

prewarm b warm >/dev/null
like 'no more than runs.warm wait: others get the workspace' "$(prewarm c warm | said)" '^ready|false|as many agents wait'
is 'which is there' "$(file c hello.txt)" seeded
ok 'a session is deleted with its agent' abctl session rm u/b
ok 'which is gone' wait_for 10 live_parrots 1

# at once
for i in 1 2 3; do prewarm d warm >"$T/at$i" & pids[i]=$!; done
wait "${pids[@]}"
is 'of three at once two wait, and none makes a second agent' "$(for i in 1 2 3; do said <"$T/at$i"; done | sort | uniq -c | tr -s ' ')" ' 3 ready|true|'
ok 'there is one in the session' wait_for 10 live_parrots 2
abctl session rm u/d >/dev/null
for round in $(seq 20); do
	for i in 1 2 3 4; do prewarm f plain >"$T/at$round.$i" & pids[i]=$!; done
	wait "${pids[@]}"
	abctl session rm u/f >/dev/null 2>&1 || echo refused >"$T/at$round.1"
done
is 'who makes the session once more, as each of them does, is in no other'"'"'s way' "$(cat "$T"/at*.[1-4] | grep -c '"state":"ready"')" 80
id=$(abctl session prewarm u/e warm --json | json 'l.sessionId')
run warm e 'say:meanwhile'
is 'a run that comes meanwhile waits and gets it' "$(was_warm),$(result)" 'true,succeeded|told:Be brief. meanwhile|'
is 'in that session' "$(events 'e[0].session')" "$id"
ok 'a run is under way' abctl run warm -s u/e -p 'say:on hang' --detach
like 'then nothing is prepared' "$(prewarm e warm)" 'a run or command of session .* is just starting or ending'
abctl cancel "$(abctl runs --json | json 'l.runs[0].runId')" --now >/dev/null

# tenants
abctl key add bolt --harness plain >"$T/bolt.key" 2>/dev/null
as() { "$BIN/abctl" --socket "$T/sock" --key-file "$T/bolt.key" session prewarm "$@" --wait 2>&1; }
like 'a key has its own harnesses' "$(as u/a warm)" "no harness 'warm'"
like 'and sessions' "$(as "$id" plain)" "no session"
ok 'in which it prepares' as u/a plain
is 'which are not others'"'"'s of that name' "$(ids a | tr , '\n' | grep -c ses_)" 2
abctl key add look --tenant bolt --verbs read,session >"$T/bolt.key" 2>/dev/null
like 'who may not run may not prepare' "$(as u/a plain)" "lacks the verb 'run'"

# deaths
ok 'a reload' abctl reload
ok 'ends those that wait' wait_for 20 no_jail_processes
bad=0
for i in 1 2 3 4; do
	abctl session prewarm "u/k$i" warm >/dev/null
	sleep "0.$(printf %03d $((RANDOM % 60)))"
	kill_child agentbox-supervisor >/dev/null || bad=$((bad + 1))
	run warm "k$i" "say:k$i"
	test "$(result)" = "succeeded|told:Be brief. k$i|" || bad=$((bad + 1))
	test "$(file "k$i" hello.txt),$(file "k$i" b/c.txt)" = seeded,too || bad=$((bad + 1))
	test "$(ids "k$i" | tr , '\n' | grep -c ses_)" = 1 || bad=$((bad + 1))
done
is 'a supervisor killed in the middle leaves what the next run finishes' $bad 0
is 'and no session that nobody has' "$(find "$T/state/sessions" -maxdepth 1 -name 'ses_*' | wc -l)" "$(abctl sessions --json | json 'l.sessions.length')"
ok 'no more wait than may' test "$(stat agentsWaiting)" -le 2
abctl drain >/dev/null
like 'nothing is prepared while the daemon is drained' "$(prewarm z warm)" 'drained'
ok 'and none waits' wait_for 20 no_jail_processes
stop_daemon TERM
ok 'the daemon leaves none' wait_for 20 no_jail_processes
finish
