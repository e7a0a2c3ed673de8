#!/usr/bin/env bash
# What a run has done is checked by the harness's command, in a jail where nothing of the agent is left
# but its files: it cannot be fooled from the side, and a check that did not pass is told so.
. tests/integration/lib.sh

mkdir -p "$T/etc/harnesses"
printf 'default_policy: demo\n' >"$T/etc/agentboxd.yaml"
# harness NAME VERIFY KEYS...: a command that is its prompt; VERIFY is a script
harness() {
	local name=$1 check=$2
	shift 2
	printf '%s\n' '---' 'backend: exec' 'command: [sh, -c, "cat >/tmp/s; . /tmp/s"]' 'artifacts: [out/**]' \
		'verify:' "  command: [sh, -c, '$check']" "$@" '---' >"$T/etc/harnesses/$name.md"
}
harness look 'env; ls -a ~; ls /tmp /dev/shm; cd /proc; ls -d [0-9]* | wc -l; sh -lc "echo login \$LD_PRELOAD"; type sh'
harness three 'echo one; echo two >&2; exit 3'
harness told 'exit 3' '  required: false'
harness sig 'kill -9 $$'
harness built 'mkdir -p out; cat word >out/word'
harness slow 'echo begun; setsid sleep 300 & touch at; sleep 300' '  timeoutMs: 700'
harness leaves 'setsid sh -c "sleep 300; touch late" & exit 0'
harness waits 'echo again >>tries; touch at; until [ -e go ]; do sleep 0.05; done; grep -q good word'
harness disk 'cat word' '  required: true' 'limits: { disk: 64M, inodes: 4k }'
harness long 'i=0; while [ $i -lt 3000 ]; do echo 0123456789$i; i=$((i+1)); done; printf "\\303"; exit 1'
printf '%s\n' '---' 'backend: exec' 'command: ["true"]' 'verify: { command: [/no/such/program] }' '---' >"$T/etc/harnesses/none.md"
DAEMON_ENV=(env SECRET_OF_OURS=seen)
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
DAEMON_ENV=()

# run HARNESS SESSION PROMPT: its events are in $T/out
run() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/out" 2>"$T/err"; }
events() { json "$1" <"$T/out"; }
result() { events '[l.result.status,l.result.exit.reason,l.result.error||""].join("|")'; }
check() { events 'JSON.stringify(l.result.verification||null,["passed","exitCode","signal","timedOut","error"])'; }

# ---- a check, and an agent that would fool it ----
run look a 'mkdir -p bin ~/bin ~/.local/bin /tmp/x; touch /tmp/mine /dev/shm/mine
for d in bin /home/agent/bin /home/agent/.local/bin; do printf "#!/bin/sh\necho fooled\n" >$d/env; cp $d/env $d/ls; chmod +x $d/*; done
export LD_PRELOAD=/workspace/evil.so PATH=/workspace/bin:$PATH
for f in .profile .bashrc .bash_profile .shrc; do echo "echo fooled; export LD_PRELOAD=/workspace/evil.so" >~/$f; done
(setsid sh -c "while :; do sleep 1; done" &) ; exit 0'
is 'one that passes' "$(result)" 'succeeded|exit|'
is 'is in the result' "$(check)" '{"passed":true,"exitCode":0}'
seen=$(events 'l.result.verification.output')
is 'and an event in front of the last' "$(events 'e.at(-2).type+e.at(-2).passed')" verify.donetrue
ok 'which says the same' [ "$(events 'e.at(-2).output')" = "$seen" ]
ok 'nothing of the agent has fooled it' not grep -q fooled <<<"$seen"
like 'its path is ours' "$seen" '^PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin$'
like 'its home is empty' "$seen" '^HOME=/tmp$'
ok 'no variable of the agent reaches it' not grep -q evil <<<"$seen"
ok 'nor one of the daemon' not grep -q SECRET_OF_OURS <<<"$seen"
ok 'nothing that the agent left in memory' not grep -q mine <<<"$seen"
like 'a shell that reads profiles finds none' "$seen" '^login$'
ok 'the only processes are its own' test "$(grep -xE '[0-9]+' <<<"$seen")" -le 5
ok 'and nothing lives' wait_for 20 no_jail_processes

run three b true
is 'one that fails' "$(result)" 'failed|verification|verification failed (exit 3)'
is 'is told' "$(check)" '{"passed":false,"exitCode":3}'
is 'with what it said' "$(events 'l.result.verification.output.split("\n").filter(x=>x).sort().join()')" one,two
is 'and abctl fails with it' "$(abctl run three -s u/b2 -p true >/dev/null 2>&1; echo $?)" 1
run told c true
is 'one that need not pass' "$(result)|$(check)" 'succeeded|exit||{"passed":false,"exitCode":3}'
run sig d true
is 'one that is killed' "$(result)|$(check)" 'failed|verification|verification failed (signal 9)|{"passed":false,"signal":9}'
run none e true
is 'one that is not there' "$(result)|$(check)" 'failed|verification|verification failed (exit 127)|{"passed":false,"exitCode":127}'
run three f 'exit 7'
is 'an agent that failed is not checked' "$(events 'l.result.status+l.result.exit.code+e.some(x=>x.type==="verify.done")')|$(check)" 'failed7false|null'
run built g 'echo word >word'
is 'what the check makes is kept' "$(events 'l.result.artifacts.map(x=>x.path).join()')" out/word
run disk h2 'echo word >word'
is 'a workspace with a limit of its own is seen, too' "$(result)|$(events 'l.result.verification.output.trim()')" 'succeeded|exit||word'
run long h true
ok 'of what it prints the end is kept' test "$(events 'Buffer.byteLength(l.result.verification.output)')" -le 4010
like 'and is text' "$(events 'l.result.verification.output.slice(-8)')" '2999'

# ---- its end ----
run slow i true
is 'one that takes too long' "$(result)" 'failed|verification|verification failed (not done after 700 ms)'
is 'is told so' "$(check)" '{"passed":false,"timedOut":true}'
ok 'and ends with all it began' wait_for 20 no_jail_processes
run leaves j true
is 'one that leaves something behind' "$(result)" 'succeeded|exit|'
ok 'has left nothing' wait_for 20 no_jail_processes

# begin SESSION PROMPT: a run of `waits` whose check waits; $id and $ws are the run and its files
begin() {
	abctl run waits -s "u/$1" -p "$2" --detach --json >"$T/begun"
	id=$(json 'l.runId' <"$T/begun")
	ws=$T/state/sessions/$(json 'l.sessionId' <"$T/begun")/workspace
	wait_for 30 test -e "$ws/at"
}
ended() { abctl show "$id" --json | grep -q '"exit"'; }
shown() { abctl show "$id" --json | json '[l.result.status,l.result.verification?.passed,l.result.error||""].join("|")'; }
said() { abctl logs "$id" --json | json "e.filter(x=>x.type==='verify.done').length"; }

begin k 'echo good >word'
ok 'a run whose check runs is canceled' abctl cancel "$id"
ok 'and ends' wait_for 20 ended
is 'as that' "$(shown)|$(said)" 'cancelled|||0'
ok 'with all of the check' wait_for 20 no_jail_processes

# ---- the supervisor dies while it runs ----
begin l 'echo good >word; echo words'
rm "$ws/at"
ok 'the supervisor dies' kill_child agentbox-supervisor
ok 'the check begins anew' wait_for 30 test -e "$ws/at"
is 'after the first one has ended' "$(wc -l <"$ws/tries")" 2
touch "$ws/go"
ok 'the run ends' wait_for 20 ended
is 'as it should' "$(shown)|$(said)" 'succeeded|true||1'
is 'no event twice' "$(abctl logs "$id" --json | json "e.filter(x=>x.type==='agent.message').map(x=>x.text.trim()).join()")" words
begin m 'echo bad >word'
rm "$ws/at"
ok 'it dies again' kill_child agentbox-supervisor
ok 'and once more' wait_for 30 test -e "$ws/at"
ok 'with a reload in between' abctl reload
touch "$ws/go"
ok 'the run has an end' wait_for 20 ended
is 'a check that does not pass is not forgotten' "$(shown)" 'failed|false|verification failed (exit 1)'
begin n 'echo good >word'
abctl cancel "$id" >"$T/out" && kill_child agentbox-supervisor
ok 'a cancel holds over it' wait_for 20 ended
is 'whatever the check would have said' "$(shown | cut -d'|' -f1,2)" 'cancelled|'
ok 'nothing of it lives' wait_for 20 no_jail_processes

# ---- what is refused ----
lint() { printf '%s\n' '---' 'backend: exec' 'command: ["true"]' "$@" '---' >"$T/l.md"; abctl harness lint "$T/l.md" 2>&1; }
like 'no command' "$(lint 'verify: { command: [] }')" 'l.md:4: .*command'
like 'an empty one' "$(lint 'verify: { command: [""] }')" "l.md:4: .*must name a program"
like 'one of the workspace is warned of' "$(lint 'verify: { command: [./check] }')" 'the agent can change what checks it'
finish
