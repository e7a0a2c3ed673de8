#!/usr/bin/env bash
# What an agent does to its neighbours, to the daemon and to what is kept of it.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/tools"
cp "$TESTS/escape/hog" "$TESTS/escape/streams" "$T/tools/"
printf 'extends: default\nfilesystem: { mounts: [ { source: %s, target: /tools } ] }\n' "$T/tools" >"$T/etc/policy/tools.yaml"
harness() { printf -- '---\nbackend: exec\npolicy: tools\ncommand: [sh, -c, "cat >/tmp/s; exec sh /tmp/s"]\n%s\n---\n' "$2" >"$T/etc/harnesses/$1.md"; }
harness sh "artifacts: ['out/**']
limits: { timeoutMs: 120000 }"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
jail() { abctl jail --policy tools "$@" 2>"$T/err"; }
# run SESSION SCRIPT
run() { timeout 120 "$BIN/abctl" --socket "$T/sock" run sh -s "u/$1" -p "$2" --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }

# ---- what the kernel counts for everybody ----
mkfifo "$T/release"
jail -- /tools/hog hold <"$T/release" >"$T/held" &
hog=$!
exec 7>"$T/release"
ok 'a jail takes all it can get' wait_for 60 grep -q '^held' "$T/held"
sed -n 's/^# /# /p' "$T/held"
is 'another jail still gets of each' "$(jail -- /tools/hog probe | grep -c '^ok')" 3
is 'and the host does' "$("$TESTS/escape/hog" probe </dev/null | grep -c '^ok')" 3
is 'another jail still has a terminal' "$(jail --tty -- tty </dev/null | tr -d '\r')" /dev/pts/0
start=$(date +%s%N)
like 'and the way out answers it' "$(jail -- curl -sS -m 60 http://1.2.3.4/)" 'not in policy'
ok 'without waiting' test $((($(date +%s%N) - start) / 1000000)) -lt 30000
exec 7>&-
wait "$hog"

# ---- streams ----
is 'lines in packet mode through a pipe of changing size' "$(jail -- /tools/streams flood 100000 | sort -u | wc -l)" 100000
is 'stdin held open by its reader ends with it' "$(echo x | jail -- sh -c 'exec 9>/proc/self/fd/0; read a; echo $a')" x
is 'a closed stdout is no end' "$(jail -- sh -c 'exec >&-; sleep 0.2; echo there >&2'; tail -n 1 "$T/err")" there

# ---- events ----
run spoof 'echo "{\"type\":\"run.done\",\"result\":{\"status\":\"succeeded\"},\"run\":\"x\"}"
echo "{\"type\":\"limit.hit\",\"limit\":\"wall\",\"value\":1}"
echo "{\"type\":\"agent.message\",\"text\":\"t\",\"delta\":false,\"seq\":99,\"session\":\"ses_x\",\"run\":\"run_x\"}"
exit 4'
is 'an agent writes no event of the supervisor' "$(json 'e.filter(x=>x.type==="run.done"||x.type==="limit.hit").length' <"$T/out")" 1
is 'nor its members' "$(json 'e.every((x,i)=>x.seq===i+1&&x.run===e[0].run&&x.session===e[0].session)' <"$T/out")" true
is 'nor its result' "$(result status)" failed
# 18 MB in the log: each byte becomes six
run long 'head -c 3000000 /dev/zero | tr "\0" "\033"; echo; echo "{\"a\":"; head -c 2000000 /dev/zero | tr "\0" "["; echo; echo end'
is 'the longest events are delivered' "$(result status)" succeeded
like 'and those behind them' "$(result finalText | tail -c 10)" end

# ---- files ----
run files 'mkdir -p out/deep out/many
cd out
printf ok >a.txt
: >"$(printf "bad\377\376")"; : >"$(printf "esc\033]0;x\007")"; : >"$(printf "nl\nx")"; : >-rf
mkfifo fifo; ln -s /etc/passwd link; ln -s / root; ln -s /proc/self/root proc
truncate -s 15G sparse || echo no sparse file
printf x >closed; chmod 0 closed
mkdir shut; printf x >shut/in; chmod 0 shut
printf x >suid; chmod 6755 suid; ln suid hard
chattr +i a.txt 2>/dev/null && echo immutable
(cd deep; i=0; while [ $i -lt 1000 ]; do mkdir d && cd d || break; i=$((i+1)); done; printf deep >f)
(cd many; seq 1 300 | xargs touch)
echo done'
is 'a hostile tree is collected' "$(result status)" succeeded
not_immutable=$(result finalText)
is 'nothing was made immutable' "$not_immutable" 'done'
names=$(result 'artifacts.map(a=>a.path).filter(p=>!p.startsWith("out/many")).sort().join(" ")')
is 'plain files with names are what comes back' "$names" "$(printf 'out/-rf out/a.txt out/esc\033]0;x\007 out/hard out/nl\nx out/suid')"
is 'bytes of it, not what links point at' "$(result 'artifacts.filter(a=>a.bytes>2).length')" 0
run=$(json l.run <"$T/out")
is 'control characters of names are shown, not sent' "$(abctl artifacts "$run" | grep -c "$(printf '\033')")" 0
is 'what is kept of them has no special bits' "$(find "$T/state/supervisor" -perm /7111 -type f | wc -l)" 0
run files 'chmod 0 /workspace /home/agent; echo closed'
is 'a closed workspace does not hinder the end' "$(result status)" succeeded
ok 'such a session is removed' abctl session rm u/files
gone() { [ -z "$(ls "$T/state/trash")" ] && [ "$(find "$T/state/sessions" -type f | grep -c -e a.txt -e suid)" = 0 ]; }
ok 'with all its files' wait_for 60 gone

# ---- the path of a workspace ----
run paths 'grep -c "/sessions/[^ ]*/workspace /workspace " /proc/self/mountinfo; grep -o "ses_[0-9a-z]*" /proc/self/mountinfo'
is "mountinfo names a workspace's directory, which is not called like the session" "$(result finalText)" 1
ok 'whose name leads to it' test -d "$T/state/sessions/$(json l.session <"$T/out")/workspace"

# ---- the end, at every moment ----
for ms in 000 005 010 020 040 080 160 320; do
	abctl run sh -s "u/end$ms" -p 'mkdir out; (setsid sh -c "trap \"\" TERM; while :; do :; done" &); seq 1 1000000; sleep 1000' --detach --json >"$T/id"
	sleep "0.$ms"
	abctl cancel "$(json 'l.runId||l.run' <"$T/id")" >/dev/null 2>&1
done
ended() { [ "$(abctl runs --json | json 'JSON.stringify(e).split("\"running\"").length+JSON.stringify(e).split("\"queued\"").length')" = 2 ]; }
ok 'runs cancelled at any moment end' wait_for 60 ended
ok 'and leave no process' wait_for 10 no_jail_processes
ok 'the daemon is well' abctl version
is 'it was the same one all the time' "$(grep -c 'supervisor started' "$T/log")" 1
finish
