#!/usr/bin/env bash
# What root's daemon finds on disk is not what it left there: files of policies and harnesses that are
# traps, a state directory that was tampered with.  Nothing hangs, nothing outside changes, each thing
# is named, and what is whole goes on working.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/outside/in"
echo untouched >"$T/outside/file"
chown 1234 "$T/outside/file"
outside() { find "$T/outside" -printf '%p %u %g %m %s\n' | sort; }
before=$(outside)
: >"$T/etc/agentboxd.yaml"
daemon() { timeout 60 "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml"; }
# refused TEXT: within a minute, with a last line that has the text
refused() {
	daemon 2>"$T/err"
	test $? = 111 && tail -n 1 "$T/err" | grep -qE -- "$1"
}

# ---- root's policies ----

trap_policy() { ln -sf "$1" "$T/etc/policy/trap.yaml"; }
trap_policy /dev/zero
ok 'a policy that is an endless device' refused 'trap\.yaml.*(regular file|link)'
trap_policy "$T/outside/file"
ok 'one that links to a file of somebody else' refused 'trap\.yaml'
rm "$T/etc/policy/trap.yaml"
truncate -s 4G "$T/etc/policy/large.yaml"
ok 'one of 4 GiB' refused 'large\.yaml.*(large|KiB|bytes|MiB)'
head -c 500000 /dev/zero | tr '\0' '[' >"$T/etc/policy/large.yaml"
ok 'one that is nested half a million deep' refused 'large\.yaml'
{ echo 'a: &a [x, x]'; for i in b c d e f g h; do echo "$i: &$i [*a, *a, *a, *a]"; done; } >"$T/etc/policy/large.yaml"
ok 'one that doubles itself' refused 'large\.yaml.*anchors'
rm "$T/etc/policy/large.yaml"
mkdir "$T/etc/policy/dir.yaml"
ok 'one that is a directory' refused 'dir\.yaml'
rmdir "$T/etc/policy/dir.yaml"

# ---- harnesses ----

printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo well"]\n---\n' >"$T/etc/harnesses/good.md"
mkfifo "$T/etc/harnesses/fifo.md"
ln -s /dev/zero "$T/etc/harnesses/zero.md"
ln -s "$T/nowhere" "$T/etc/harnesses/dangling.md"
ln -s loop.md "$T/etc/harnesses/loop.md"
mkdir "$T/etc/harnesses/dir.md"
truncate -s 4G "$T/etc/harnesses/large.md"
{ echo ---; head -c 500000 /dev/zero | tr '\0' '{'; } >"$T/etc/harnesses/deep.md"
head -c 100000 /dev/urandom >"$T/etc/harnesses/noise.md"
printf -- '---\na: &a [x]\nb: [*a, *a]\n---\n' >"$T/etc/harnesses/bomb.md"
: >"$T/etc/harnesses/$(printf 'new\nline \033[2J.md')"
ok 'among harnesses that are traps it starts' start_daemon --config "$T/etc/agentboxd.yaml"
[ -n "$DAEMON" ] && kill -0 "$DAEMON" || { echo "1..$count"; exit 1; }
super=$(child_pid agentbox-supervisor)
run() { abctl run good -s "u/$1" -p x --json >"$T/out" 2>"$T/err" && json 'l.result.finalText' <"$T/out" | grep -q well; }
ok 'and the one that is whole runs' run first
for name in fifo zero dir large deep noise bomb; do
	ok "$name.md is named in the log" grep -qE "$name\.md" "$T/log"
done
ok 'without control characters' not env LC_ALL=C grep -qP '\x1b' "$T/log"
abctl harness ls >"$T/out" 2>&1
ok 'the list too' not env LC_ALL=C grep -qP '\x1b' "$T/out"
is 'the supervisor lives' "$(child_pid agentbox-supervisor)" "$super"
rm -r "$T/etc/harnesses/"[!g]*

# ---- sessions, while it runs ----

run victim
session=$(json 'l.result.sessionId' <"$T/out")
dir=$T/state/sessions/$session
ok 'a session is there' test -d "$dir/workspace"
# tampered TEXT: a run in the session is refused by that
tampered() {
	! abctl run good -s u/victim -p x >"$T/out" 2>&1 && grep -qE -- "$1" "$T/out"
}
mv "$dir/workspace" "$T/aside"
ln -s "$T/outside" "$dir/workspace"
ok 'a workspace that became a link' tampered 'workspace'
rm "$dir/workspace"
cp "$T/outside/file" "$dir/workspace"
ok 'a workspace that became a file' tampered 'workspace'
rm "$dir/workspace"
mv "$T/aside" "$dir/workspace"
owner=$(stat -c %u "$dir/workspace")
chown 1234 "$dir/workspace"
ok 'a workspace of somebody else' tampered 'workspace belongs to uid 1234'
chown "$owner:$owner" "$dir/workspace"
chown 1234 "$dir"
ok 'a session directory of somebody else' tampered 'owned by uid 1234|belongs|chown root'
chown 0 "$dir"
chmod 777 "$dir"
ok 'one that others may write' tampered 'chmod go-w|written by others'
chmod 700 "$dir"
real=$(realpath "$dir")
mv "$real" "$T/aside"
ln -s "$T/outside" "$real"
ok 'one that became a link' tampered 'session|link'
rm "$real"
mv "$T/aside" "$real"
ok 'as it was it runs' run victim
mv "$dir" "$T/aside"
ln -s "$T/outside" "$dir"
ok 'one whose name leads elsewhere' tampered 'its link is none of ours'
is 'nothing was made behind the link' "$(outside)" "$before"
ok 'deleting it' abctl session rm u/victim
is 'takes nothing outside along' "$(outside)" "$before"
ok 'another session works' run other
ok 'it stops' stop_daemon TERM

# ---- the rest, between two starts ----

state=$T/state
mv "$state/sessions" "$T/aside2"
ln -s "$T/outside" "$state/sessions"
ok 'sessions/ that became a link' refused 'sessions'
rm "$state/sessions"
mv "$T/aside2" "$state/sessions"
mv "$state/supervisor" "$T/aside3"
ln -s "$T/outside" "$state/supervisor"
ok 'supervisor/ that became a link' refused 'supervisor'
is 'what it leads to has its owner' "$(outside)" "$before"
rm "$state/supervisor"
mv "$T/aside3" "$state/supervisor"
chown -R 1234 "$state/trash"
ok 'a trash of somebody else' refused 'trash'
chown -R 0 "$state/trash"
ln -s "$T/outside" "$state/trash/link"
mkdir -p "$state/trash/old/deep"
ln -s "$T/outside" "$state/trash/old/deep/link"

# events: a line cut in the middle, noise, and a number from the future
log=$(find "$state/supervisor/events" -name '*.jsonl' -size +0 | head -n 1)
ok 'there is a log of events' test -s "$log"
is 'that is whole' "$(json 'e.length>0' <"$log")" true
{ head -c 300 /dev/urandom; printf '\n{"seq":99999999999,"type":"run.done"}\n{"seq":4,"ty'; } >>"$log"
ok 'with a log that was written to it starts' start_daemon --config "$T/etc/agentboxd.yaml"
ok 'the trash is emptied' wait_for 20 sh -c "test -z \"\$(ls -A '$state/trash')\""
is 'and what it linked to is there' "$(outside)" "$before"
id=$(basename "$log" .jsonl)
curl -sS -m 20 --unix-socket "$T/sock" "http://x/v1/sessions/$id/events" -H 'Accept: application/x-ndjson' >"$T/events"
is 'what is told of it is JSON, each number once' "$(json 'new Set(e.map(x=>x.seq)).size===e.length' <"$T/events")" true
ok 'a run works' run other
ok 'it stops again' stop_daemon TERM

# the store: noise in the middle, then nothing but noise
db=$state/supervisor/db
ok 'there is a store' test -s "$db"
cp "$db" "$T/store"
rm -f "$db"-wal "$db"-shm
head -c 65536 /dev/urandom >"$db"
timeout 20 "$BIN/agentboxd" --state "$state" --socket "$T/sock" --config "$T/etc/agentboxd.yaml" 2>"$T/err"
ok 'a store of noise is named' grep -qE '(malformed|not a database|corrupt)' "$T/err"
ok 'and not overwritten' not cmp -s -n 16 "$db" "$T/store"
cp "$T/store" "$db"
ok 'with the store back it starts' start_daemon --config "$T/etc/agentboxd.yaml"
ok 'and works' run other
is 'nothing outside was changed by any of this' "$(outside)" "$before"
ok 'no process of a jail' wait_for 5 no_jail_processes
finish
