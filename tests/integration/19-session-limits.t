#!/usr/bin/env bash
# How many sessions are ready and for how long: only idle ones are evicted, and with their files only
# where root says so; what a session has outlives stops, kills and restarts.
. tests/integration/lib.sh
. tests/integration/runs.sh

script note 'read -r m; echo "$m" >>notes; cat notes'
script hold 'echo up >up; until [ -e go ]; do sleep 0.05; done'
harness seeded 'backend: exec' 'command: [sh, -c, "cat given.txt"]' 'workspace: { seed: { given.txt: "from the harness" } }'
config() { printf '%s\n' "harness_dirs: [$T/etc/harnesses]" "$@" >"$T/etc/agentboxd.yaml"; }
config 'runs: { max: 1 }' 'sessions: { max: 4 }'
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

api() { curl -s --unix-socket "$T/sock" "$@"; }
id_of() { api "http://x/v1/sessions?user=${1%/*}&goal=${1#*/}" | json 'l.sessions.map(x=>x.sessionId).join()'; }
evicted() { abctl session show "$(id_of "$1")" --json | json 'String(!!l.evictedAt)'; }
is_evicted() { [ "$(evicted "$1")" = true ]; }
ready() { api 'http://x/v1/sessions?limit=1000' | json 'l.sessions.filter(x=>!x.evictedAt).length'; }
note() { abctl run note -s "$1" -p "$2" --json 2>/dev/null | json 'e.find(x=>x.type=="run.done").result.finalText.trim().split("\n").join(",")'; }
detach() { abctl run "$@" --detach --json | json 'l.runId'; }
has_status() { [ "$(abctl show "$1" --json | json 'l.status')" = "$2" ]; }
workspace() { echo "$T/state/sessions/$(id_of "$1")/workspace"; }
free() { touch "$(workspace "$1")/go"; }

# ---- room for one more ----
for i in 1 2 3 4; do note u/s$i one >/dev/null; done
is 'four are ready' "$(ready)" 4
ok 'one is pinned' abctl session pin u/s1
is 'which is listed' "$(api 'http://x/v1/sessions' | json 'l.sessions.filter(x=>x.pinned).map(x=>x.goalId).join()')" s1
note u/s5 one >/dev/null
is 'a fifth takes the place of the one used longest ago' "$(for i in 1 2 3 4 5; do evicted u/s$i; done | tr '\n' ' ')" 'false true false false false '
is 'four are ready still' "$(ready)" 4
is 'it is told in its events' "$(api "http://x/v1/sessions/$(id_of u/s2)/events" -H 'Accept: application/x-ndjson' | json 'e.filter(x=>x.type=="session.evicted").map(x=>[x.reason,!!x.usedAt,x.run||""].join()).join(" ")')" 'room,true,'
ok 'and in the log' grep -q "s=$(id_of u/s2) is evicted (room) and kept" "$T/log"
ok 'its files stay' test -e "$(workspace u/s2)/notes"
is 'its next run goes on with them' "$(note u/s2 two)" one,two
is 'and it is ready again, in the place of another' "$(for i in 1 2 3 4 5; do evicted u/s$i; done | tr '\n' ' ')" 'false false true false false '

# ---- what is never evicted ----
run=$(detach hold -s u/s2 -p x)
ok 'a run is up' wait_for 30 test -e "$(workspace u/s2)/up"
queued=$(detach note -s u/s4 -p two)
"$BIN/abctl" --socket "$T/sock" exec "$(id_of u/s5)" -- sh -c 'echo >held; until [ -e go ]; do sleep 0.05; done' >/dev/null 2>&1 &
command=$!
ok 'a command is in another' wait_for 30 test -e "$(workspace u/s5)/held"
like 'where all are pinned, run, wait or have a command there is no room' "$(abctl run note -s u/s6 -p x --detach 2>&1)" 'sessions\.max.*remedy'
is 'which is a 429' "$(api -o "$T/body" -w '%{http_code}' -d '{"userId":"u","goalId":"s6"}' http://x/v1/sessions) $(json 'l.type' <"$T/body")" '429 urn:agentbox:error:quota'
is 'and leaves no session' "$(id_of u/s6)" ''
ok 'one is unpinned' abctl session unpin u/s1
is 'then there is' "$(api -d '{"userId":"u","goalId":"s6"}' http://x/v1/sessions | json 'typeof l.sessionId')" string
ok 'instead of that one' is_evicted u/s1
kill_child agentbox-supervisor
is 'so it is after SIGKILL of the supervisor' "$(evicted u/s1) $(ready)" 'true 4'
ok 'whose queued run is there' has_status "$queued" queued
free u/s2
wait $command
ok 'the runs end' wait_for 30 has_status "$run" succeeded
ok 'also the one that waited' wait_for 30 has_status "$queued" succeeded
is 'with the files of its session' "$(abctl show "$queued" --json | json 'l.result.finalText.trim().split("\n").join()')" one,two

# More sessions than there may be, and all runs at once: none is evicted under a run that waits.
config 'runs: { max: 1 }' 'sessions: { max: 6 }'
ok 'more may be ready' abctl reload
for n in 1 2; do for i in 1 2 3 4 5 6; do detach note -s "q/s$i" -p "$n"; done; done >"$T/runs" 2>"$T/refused"
grep -v '^$' "$T/runs" >"$T/accepted"
all_done() { while read -r r; do has_status "$r" succeeded || return 1; done <"$T/accepted"; }
ok 'all that were accepted succeed' wait_for 60 all_done
ok 'none of them without its files' test "$(for i in 1 2 3 4 5 6; do cat "$(workspace q/s$i)/notes"; done | wc -l)" = "$(wc -l <"$T/accepted")"
ok 'and never more than there may be' test "$(ready)" -le 6

# ---- time ----
config 'runs: { max: 4 }' 'sessions: { idle: 1s }'
abctl session pin q/s1
abctl reload
run=$(detach hold -s t/busy -p x)
ok 'sessions that are idle long enough are evicted' wait_for 30 is_evicted q/s2
ok 'all but those in use or pinned' wait_for 30 sh -c "[ \"\$(curl -s --unix-socket '$T/sock' 'http://x/v1/sessions?limit=1000' | grep -o '\"goalId\":\"[^\"]*\"[^}]*' | grep -vc evictedAt)\" = 2 ]"
is 'which are' "$(api 'http://x/v1/sessions?limit=1000' | json 'l.sessions.filter(x=>!x.evictedAt).map(x=>x.goalId).sort().join()')" busy,s1
free t/busy
ok 'then that one is' wait_for 30 is_evicted t/busy
is 'with its files' "$(note q/s2 three)" 1,2,three

# ---- deleted instead ----
config 'runs: { max: 4 }' 'sessions: { idle: 300ms, evict: delete }'
abctl session pin q/s3 && abctl session pin u/s2
abctl reload
no_session() { [ -z "$(id_of "$1")" ]; }
note d/gone one >/dev/null
was=$(workspace d/gone)
ok 'a session may be deleted instead' wait_for 30 no_session d/gone
ok 'with its files' wait_for 30 not test -e "$was"
ok 'not one that is pinned' test -e "$(workspace q/s3)/notes"
ok 'nor one that was put aside before' test -e "$(workspace q/s4)/notes"

# ---- what stays, and what is never mixed up ----
config 'runs: { max: 4 }'
abctl reload
edit() { abctl exec "$(id_of s/edit)" -- sh -c 'echo "an edit" >given.txt' >/dev/null 2>&1; }
seeded() { abctl run seeded -s s/edit -p x --json 2>/dev/null | json 'e.find(x=>x.type=="run.done").result.finalText.trim()'; }
is 'a session is seeded' "$(seeded)" 'from the harness'
edit
is 'once' "$(seeded)" 'an edit'
count_files() { find "$T/state/sessions/"*/workspace -type f 2>/dev/null | wc -l; }
n=$(count_files)
kill_child agentbox-supervisor
is 'not again after SIGKILL' "$(seeded)" 'an edit'
ok 'the daemon is stopped' stop_daemon TERM
is 'and no workspace is gone' "$(count_files)" "$n"
start_daemon --config "$T/etc/agentboxd.yaml"
is 'nor seeded again by the next' "$(seeded)" 'an edit'
long=$(printf 'a%.0s' $(seq 240))
for pair in "$long/1" "$long/2" 'a-b/c' 'a/b-c' 'a_b/c' 'a b/c' 'a?b/c'; do
	IFS=/ read -r user goal <<<"$pair"
	api -d "{\"userId\":\"$user\",\"goalId\":\"$goal\"}" http://x/v1/sessions | json 'l.sessionId'
done >"$T/ids"
is 'sessions of names that are nearly one are not one' "$(sort -u "$T/ids" | wc -l)" 7
finish
