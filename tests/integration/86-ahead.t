#!/usr/bin/env bash
# Agents that are started before anybody asks: each is given once, to a new session.
. tests/integration/lib.sh

. tests/integration/parrot.sh
. tests/integration/warm.sh

harness ahead 'warm: { idleMs: 600000, ahead: 2 }
workspace: { seed: { hello.txt: "seeded" } }
artifacts: [hello.txt]' 'Be brief.'
WARM_KEY=key-of-an-agent-that-waits-$RANDOM
(umask 077 && echo "$WARM_KEY" >"$T/key")
begin "runs: { max: 4, warm: 4 }
secrets: { WARM_KEY: { file: $T/key } }"

sessions_on_disk() { find "$T/state/sessions" -maxdepth 1 -name 'ses_*' | wc -l; }
notes() { find "$T/state/supervisor/ahead" -type f | wc -l; }

ok 'two are there before anybody asks' wait_for 30 waiting 2
ok 'as processes' wait_for 10 live_parrots 2
is 'each in a session that is noted' "$(sessions_on_disk),$(notes)" 2,2
is 'which nobody has' "$(abctl sessions --json | json 'l.sessions.length')" 0
like 'abctl ps shows them' "$(abctl ps)" 'waits +ahead'

run ahead a 'say:hello pid'
like 'a new session gets one' "$(was_warm),$(result)" '^true,succeeded\|told:Be brief. hello pid:[0-9]+\|$'
is 'with the seed files' "$(events 'l.result.artifacts.map(a=>a.path).join()')" hello.txt
first=$(result)
run ahead b 'say:hello pid'
is 'another session gets another' "$(was_warm)" true
ok 'which is another process' test "$(result)" != "$first"
is 'whose files are not those of the first' "$(abctl exec u/b -- ls /workspace 2>/dev/null)" hello.txt
run ahead a 'say:again'
like 'the first session goes on with its own' "$(was_warm),$(result)" '^true,succeeded\|after:say:hello,pid, again\|$'
ok 'and there are others' wait_for 30 waiting 3
is 'which are noted' "$(notes)" 2

# what it was started with has changed
harness ahead 'warm: { idleMs: 600000, ahead: 2 }' 'Be very brief.'
run ahead c 'say:hello'
is 'one of another text is not used' "$(was_warm),$(result)" 'false,succeeded|told:Be very brief. hello|'
ok 'a reload ends them' abctl reload
ok 'and others come' wait_for 30 waiting 2
run ahead d 'say:hello'
is 'of the new text' "$(was_warm),$(result)" 'true,succeeded|told:Be very brief. hello|'
harness bad 'warm: { idleMs: 600000, ahead: 1 }' 'Speak {{language}}.'
like 'a text with parameters cannot be told ahead' "$("$BIN/agentbox-policyc" lint --as harness "$T/etc/harnesses/bad.md" 2>&1; abctl harness lint "$T/etc/harnesses/bad.md" 2>&1)" 'has parameters, which are not known before a run'
for how in none transcript; do
	printf -- '---\nbackend: claude\nresume: %s\nwarm: { idleMs: 1000 }\n---\n' $how >"$T/anew.md"
	like "no next run goes on with resume: $how" "$(abctl harness lint "$T/anew.md" 2>&1)" "anew.md:4: 'warm' keeps an agent .* leave one of them out"
done
printf -- '---\nbackend: claude\nresume: none\nwarm: { idleMs: 1000, ahead: 1 }\n---\n' >"$T/anew.md"
is 'one that is started ahead has a first run' "$(abctl harness lint "$T/anew.md" 2>&1)" ''

# eight at once: none is given twice
pids=()
for i in 1 2 3 4 5 6 7 8; do
	abctl run ahead -s "u/x$i" -p 'say:hello' --json >"$T/x$i" 2>/dev/null &
	pids+=($!)
done
wait "${pids[@]}"
is 'eight new sessions at once are eight sessions' "$(for i in 1 2 3 4 5 6 7 8; do json 'l.session+" "+l.result.status+" "+l.result.finalText.trim()' <"$T/x$i"; done | sort -u | grep -c 'succeeded told:Be very brief. hello$')" 8
ok 'no more wait than may' test "$(stat agentsWaiting)" -le 4

# deaths
ok 'they are made again' wait_for 60 test "$(notes)" -ge 1
kill -9 "$(child_pid agentbox-supervisor)"
ok 'the next supervisor ends what was left, and makes others' wait_for 60 sh -c "grep -q 'is not taken up and ends' '$T/log'"
ok 'which are as many as are noted' wait_for 60 sh -c "test \$(find '$T/state/supervisor/ahead' -type f | wc -l) = 2"
# The sessions that are there are those of runs, and those of the two.
all_known() { test "$(sessions_on_disk)" = "$(($(abctl sessions --json | json 'l.sessions.length') + $(notes)))"; }
ok 'no session is left that nobody has' wait_for 60 all_known
stop_daemon KILL
again
ok 'nor after the death of all' wait_for 60 all_known
ok 'and they are there again' wait_for 60 waiting 2
harness ahead 'warm: { idleMs: 600000 }' 'Be very brief.'
ok 'and end with the reload' abctl reload
ok 'when none is wanted' wait_for 30 waiting 0
ok 'with their sessions' wait_for 30 sh -c "test \$(find '$T/state/supervisor/ahead' -type f | wc -l) = 0"

# a secret that is in its jail since it was started is found in what it says to whichever run
mkdir -p "$T/etc/policy"
printf 'extends: demo\nsecrets: { WARM_KEY: { env: WARM_TOKEN } }\n' >"$T/etc/policy/gives.yaml"
printf -- '---\nbackend: parrot\npolicy: gives\nsecrets: [WARM_KEY]\nwarm: { idleMs: 600000, ahead: 1 }\n---\n' >"$T/etc/harnesses/knows.md"
ok 'a reload' abctl reload
ok 'one that has a secret is started ahead' wait_for 60 waiting 1
for n in first second; do
	run knows k 'env:WARM_TOKEN say:end'
	is "the $n run has it, warm, and asterisks" "$(was_warm)|$(result | sed 's/\*\**/*/; s/after:[^ ]* //')" 'true|succeeded|* end|'
	ok 'and nothing else' not grep -q "$WARM_KEY" "$T/out"
done

stop_daemon TERM
ok 'the daemon leaves none' wait_for 20 no_jail_processes
finish
