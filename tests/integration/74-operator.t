#!/usr/bin/env bash
# An operator who mistypes, forgets and breaks things: each time the exit code of the contract, a
# last line that says what, and nothing half done.
. tests/integration/lib.sh

# usage|system ARGS...: abctl ends with 100 or 111 and says so in its last line
usage() {
	abctl "$@" </dev/null >"$T/out" 2>"$T/err"
	[ $? = 100 ] && tail -n 1 "$T/err" | grep -q '^abctl: usage: .'
}
system() {
	"$BIN/abctl" "$@" </dev/null >"$T/out" 2>"$T/err"
	[ $? = 111 ] && tail -n 1 "$T/err" | grep -q '^abctl: system: .'
}
# refused TEXT ARGS...: agentboxd does not start, and its last line has the text
refused() {
	local text=$1
	shift
	timeout 30 "$BIN/agentboxd" --state "$T/state" --socket "$T/sock" "$@" 2>"$T/err"
	[ $? = 111 ] && tail -n 1 "$T/err" | grep -qF -- "$text"
}

# no daemon
ok 'no daemon' system --socket "$T/sock" ps
ok 'a socket that is a file' system --socket /etc/passwd ps
ok 'a socket that is a directory' system --socket "$T" jail -- true
ok 'an empty path' system --socket '' version
like 'says so' "$(cat "$T/err")" 'socket is empty'
ok 'a path that cannot be a socket' system --socket "$T/$(printf '%0120d' 0)" version

# agentboxd
echo x >"$T/file"
mkdir -p "$T/foreign" "$T/etc/policy" "$T/etc/harnesses"
chown 1234 "$T/foreign"
ln -s "$T/nowhere" "$T/dangling"
: >"$T/etc/agentboxd.yaml"
ok 'a state directory of somebody else' refused 'chown root' --state "$T/foreign"
ok 'a file as state directory' refused 'Not a directory' --state "$T/file"
ok 'below a file' refused 'Not a directory' --state "$T/file/x"
ok 'a dangling link' refused 'No such file' --state "$T/dangling"
ok 'no place for state' refused '/proc/x' --state /proc/x
ok 'a file as socket' refused 'is not a socket' --socket "$T/file"
is 'which stays as it is' "$(cat "$T/file")" x
ok 'a socket path that is too long' refused 107 --socket "$T/$(printf '%0120d' 0)"
ok 'no bundled harnesses' refused '--share' --share /nonexistent
ok 'no programs' refused agentbox-policyc --libexec /nonexistent
unshare -m sh -c "mount --make-rprivate / && mkdir -p '$T/ro' && mount -t tmpfs -o ro t '$T/ro' && \
	exec timeout 30 '$BIN/agentboxd' --state '$T/ro/state' --socket '$T/sock'" 2>"$T/err"
is 'a read-only place for state' $? 111
like 'says so' "$(tail -n 1 "$T/err")" 'Read-only'

# config LINE TEXT YAML: the place and the reason
config() {
	printf '%b' "$3" >"$T/etc/agentboxd.yaml"
	refused "agentboxd.yaml:$1: " --config "$T/etc/agentboxd.yaml" && grep -qF -- "$2" "$T/err"
}
ok 'an unknown key' config 2 "unknown key 'maximum'" 'runs:\n  maximum: 1\n'
ok 'a number that is none' config 2 "'x' is not a number" 'runs:\n  max: x\n'
ok 'below the least' config 4 'too small' '\n\nruns:\n  max: 0\n'
ok 'too large' config 1 'too large' 'runs: { max: 99999999999999999999 }\n'
ok 'a tab' config 2 'cannot start any token' 'runs:\n\tmax: 1\n'
ok 'a list for a map' config 1 'a map is expected' 'runs: [1]\n'
ok 'a key twice' config 3 'given twice' 'runs:\n  max: 1\n  max: 2\n'
ok 'a quote left open' config 2 'began in line 1' '"open\n'
ok 'an anchor' config 1 'anchors' 'runs: &a { max: 1 }\n'
ok 'no UTF-8' config 1 'UTF-8' '\xff\xfe\n'
ok 'a group that is not there' config 1 nosuchgroup 'group: nosuchgroup\n'
ok 'a relative directory' config 1 'absolute' 'harness_dirs: [rel]\n'
: >"$T/etc/agentboxd.yaml"
policy() {
	printf '%b' "$3" >"$T/etc/policy/p.yaml"
	refused "p.yaml:$1: " --config "$T/etc/agentboxd.yaml" && grep -qF -- "$2" "$T/err"
}
ok 'a base that is not there' policy 1 "'nosuch'" 'extends: nosuch\n'
ok 'a size that is none' policy 2 "'1X' is not a size" 'limits:\n  memory: 1X\n'
ok 'no value' policy 2 'has no value' 'extends: default\nlimits: ~\n'
ok 'a tag' policy 1 'tags' '!!python/object x\n'
printf 'extends: default\n' >"$T/etc/policy/p.yaml"
place() { refused "$1" --config "$T/etc/agentboxd.yaml"; }
chmod 666 "$T/etc/policy/p.yaml"
ok 'a policy others may write' place 'chmod go-w'
chmod 644 "$T/etc/policy/p.yaml"
chown 1234 "$T/etc/policy/p.yaml"
ok 'a policy of somebody else' place 'chown root'
chown 0 "$T/etc/policy/p.yaml"
chmod 777 "$T/etc/policy"
ok 'a directory others may write' place 'chmod go-w'
chmod 755 "$T/etc/policy"
mkfifo "$T/etc/policy/fifo.yaml"
ok 'a FIFO does not block it' place 'not a regular file'
rm "$T/etc/policy/fifo.yaml"
ok 'nothing of that is left' not pgrep -f "$T/state"

# The lock of a holder that is dead, still with a child of it for a moment.
mkdir -p "$T/state"
chmod 700 "$T/state"
python3 -c 'import fcntl, os, subprocess, sys, time
f = open(sys.argv[1], "w")
dead = subprocess.Popen(["true"])
dead.wait()
f.write("%d\n" % dead.pid)
f.flush()
fcntl.flock(f, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(1)' "$T/state/agentboxd.lock" >"$T/held" &
holder=$!
wait_for 10 grep -q held "$T/held"
ok 'the lock of a dead one is waited for' start_daemon --config "$T/etc/agentboxd.yaml"
[ -n "$DAEMON" ] && kill -0 "$DAEMON" || { echo "1..$count"; exit 1; }
wait "$holder"

# abctl
for verb in run jail exec show logs cancel session artifacts harness policy completion; do
	ok "$verb: something is missing" usage $verb
done
for verb in run jail exec ps runs show logs cancel sessions session artifacts harness policy doctor \
	stats metrics reload version help completion; do
	ok "$verb: an unknown option" usage $verb --nosuch
done
for verb in ps runs show logs cancel sessions session artifacts doctor stats metrics reload version; do
	ok "$verb: too much" usage $verb a b c d e f
done
while read -r line; do
	# shellcheck disable=SC2086 # words
	ok "abctl $line" usage $line
done <<'L'
nosuch
run hello -p x
run hello -s
run hello -s u -p x
run hello -s u/ -p x
run hello -s /g -p x
run hello -s u/g -p x -f /etc/passwd
run hello -s u/g -f /nonexistent
run hello -s u/g -p x --param x
run hello -s u/g -p x --param =x
run nosuch -s u/g -p x
jail --
jail --policy nosuch -- true
jail --bind x -- true
jail --bind /etc:/x:rx -- true
jail --limit x -- true
jail --limit memory=x -- true
jail --limit nosuch=1 -- true
jail --env =x -- true
jail --cwd rel -- true
jail --user bob -- true
exec nosuch -- true
exec u/nosuch -- true
exec ses_00000000000000000000000000 -- true
show nosuch
logs nosuch
logs run_00000000000000000000000000 --from x
cancel run_00000000000000000000000000
session show nosuch
session rm u/nosuch
artifacts run_00000000000000000000000000
runs --status nosuch
runs --limit x
runs --limit 99999
runs --limit 0
sessions --limit 0
sessions --limit x
policy show nosuch
harness show nosuch
L

# harnesses: a broken one is named, with its line; its old version stays
printf -- '---\nbackend: exec\ncommand: [echo, one]\n---\n' >"$T/etc/harnesses/mine.md"
wait_for 10 abctl harness show mine
printf -- '---\nbackend: exec\ncommand: [echo, two]\ntimeoutMs: 5\n---\n' >"$T/etc/harnesses/mine.md"
ok 'a broken save is told, with its line' wait_for 10 grep -q 'mine.md:4' "$T/log"
is 'the old version stays' "$(abctl run mine -s u/g -p x --json | json 'l.result.finalText.trim()')" one

# policies change while a run goes on
printf -- '---\nbackend: exec\npolicy: p\ncommand: [sh, -c, "echo on; sleep 3; echo off"]\n---\n' >"$T/etc/harnesses/slow.md"
wait_for 10 abctl harness show slow
abctl run slow -s u/slow -p x --json >"$T/slow" &
slow=$!
wait_for 10 grep -q agent.message "$T/slow"
rm "$T/etc/policy/p.yaml"
ok 'a policy taken away' abctl reload
wait "$slow"
is 'the run that has it goes on to its end' "$(json 'l.result.status' <"$T/slow")" succeeded
abctl run slow -s u/slow -p x >"$T/out" 2>"$T/err"
ok 'the next is refused' test $? -ge 100
like 'by the name of the policy' "$(cat "$T/out" "$T/err")" "'?p'?"
finish
