#!/usr/bin/env bash
# What sessions and runs must not have of each other: policies, homes, files that are being kept, what
# is written for an agent where another has left links; what cannot be deleted, and what nobody uses.
. tests/integration/lib.sh
. tests/integration/runs.sh

mkdir -p "$T/etc/policy" "$T/agents/claude/bin" "$T/outside"
install -m 755 tests/integration/fake_claude.sh "$T/agents/claude/bin/claude"
printf 'extends: default\nlimits: { nofile: 100 }\n' >"$T/etc/policy/low.yaml"
script free 'ulimit -n'
script low 'ulimit -n' 'policy: low'
script waits 'echo on; until [ -e go ]; do sleep 0.05; done' 'policy: low'
script keeps 'mkdir -p ~/.claude; echo mine | tee ~/.claude/memory notes'
script looks 'cat ~/.claude/memory notes; ls -A ~ . | grep -c -e claude -e notes'
script links "rm -rf ~/.agentbox; ln -s $T/outside ~/.agentbox; ln -s $T/outside/file session-state.json; ln -s $T/outside .agentbox-home; ln -s $T/outside out"
script fills 'read -r m; mkdir -p out; for i in $(seq 20); do yes "$m" | head -n 20000 >out/$i; done' 'artifacts: [out/*]'
harness told 'backend: claude' 'model: m' 'policy: demo' 'artifacts: [out/*]'
echo 'Be brief.' >>"$T/etc/harnesses/told.md"
echo 'runs: { max: 2 }' >"$T/etc/agentboxd.yaml"
DAEMON_ENV=(env SECRET_OF_OURS=seen)
daemon() { start_daemon --config "$T/etc/agentboxd.yaml" --agents "$T/agents"; }
daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
DAEMON_ENV=()
says() { abctl run "$1" -s "$2" -p "${3:-x}" --json 2>"$T/err" | tee "$T/out" | json 'e.filter(x=>x.type==="agent.message").map(x=>x.text.trim()).join(" ").split("\n").join(" ")'; }
dir_of() { readlink -f "$T/state/sessions/$(abctl session show "$1" --json | json 'l.sessionId')"; }

# ---- a session's policy is that of its run, whoever came first ----
wide=$(says free u/policy)
is 'a run has the policy of its harness' "$(says low u/policy)" 100
ok 'which is a narrower one than that of the run before it' test "$wide" != 100
is 'and its name is in the record' "$(json 'e.find(x=>x.type==="run.started").policy' <"$T/out")" low
begin waits policy
is 'a command beside such a run has the same' "$(abctl exec u/policy -- sh -c 'ulimit -n; touch go' 2>/dev/null)" 100
wait_for 30 ended
is 'the first has what it had' "$(says free u/policy)" "$wide"

# ---- homes and workspaces ----
says keeps u/home >/dev/null
is 'a session finds what it has left' "$(says looks u/home)" 'mine mine 2'
is 'another of its user does not' "$(says looks u/other)" 0
is 'nor one of another user' "$(says looks v/home)" 0

# ---- links where something is written ----
echo mine >"$T/outside/file"
chmod 777 "$T/outside"
chmod 666 "$T/outside/file"
outside() { find "$T/outside" -printf '%P %y %T@ %s\n'; }
was=$(outside)
is 'an agent is told its instructions' "$(says told u/honest 'say:on result')" on
is 'by a file' "$(abctl exec u/honest -- cat /home/agent/.agentbox/system-prompt.md 2>/dev/null)" 'Be brief.'
says links u/links >/dev/null
says told u/links 'say:on result' >/dev/null
ok 'where another has left links it has an end' test -n "$(json 'l.result.status' <"$T/out")"
is 'nothing is written through them' "$(outside)" "$was"
is 'nor read' "$(json 'l.result.artifacts.length' <"$T/out")" 0

# ---- files are kept before the next run can touch them ----
for word in one two three four; do
	abctl run fills -s u/files -p "$word" --detach --json | json 'l.runId' >"$T/$word.id"
done
for word in one two three four; do wait_for 60 ended "$(cat "$T/$word.id")"; done
for word in one two three four; do
	kept=$T/state/supervisor/artifacts/$(cat "$T/$word.id")
	echo "$(find "$kept" -type f | wc -l) $(find "$kept" -type f -exec cat {} + | sort | uniq -c | xargs)"
done >"$T/kept"
is 'each run has its own files, though others of its session came at once' "$(xargs <"$T/kept")" \
	'20 400000 one 20 400000 two 20 400000 three 20 400000 four'

# ---- what is told of the host ----
session=$(basename "$(dir_of u/files)")
run=$(cat "$T/one.id")
for path in "runs/$run" runs "runs/$run/events" "runs/$run/artifacts" sessions "sessions/$session" "sessions/$session/events" \
	"sessions/$session/files/" harnesses stats; do
	curl -sS --unix-socket "$T/sock" "http://x/v1/$path"
done >"$T/told"
ok 'the API tells of it' grep -q "$run" "$T/told"
is 'and not where the host has it' "$(grep -c "$T/state" "$T/told")" 0

# ---- what prepares a snapshot ----
mkdir "$T/dir"
SECRET_OF_OURS=seen abctl snapshot create envs --from "$T/dir" --prepare 'env; echo done' >"$T/prepared" 2>&1
ok 'a snapshot is prepared' grep -qx 'done' "$T/prepared"
ok 'without a variable of who asks or serves' not grep -q SECRET_OF_OURS "$T/prepared"

# ---- what cannot be deleted ----
mkdir "$(dir_of v/home)/workspace/stuck"
ok 'a directory that will not go' chattr +i "$(dir_of v/home)/workspace/stuck"
trap 'chattr -R -i "$T/state" 2>/dev/null; _at_exit' EXIT
ok 'is deleted' abctl session rm v/home
ok 'which is told to have failed' wait_for 20 grep -q 'emptying the trash' "$T/log"
is 'and the daemon works' "$(says free u/policy)" "$wide"
chattr -R -i "$T/state/trash"
no_trash() { [ -z "$(ls -A "$T/state/trash")" ]; }
ok 'when it can it goes' wait_for 30 no_trash

# ---- what nobody has used since a restart ----
printf 'sessions: { idle: 300ms, evict: delete }\n' >"$T/etc/agentboxd.yaml"
ok 'a stop' stop_daemon TERM
daemon
no_session() { [ -z "$(ls -A "$T/state/sessions")" ] && no_trash; }
ok 'sessions that nobody touches after a restart go, too' wait_for 30 no_session
finish
