#!/usr/bin/env bash
# What a harness's guardrails deny is not done, not said and not kept, by whatever way it is tried; and
# what cannot be looked at to its end is denied.
. tests/integration/lib.sh
. tests/integration/parrot.sh

mkdir -p "$T/etc/harnesses"
printf 'default_policy: demo\n' >"$T/etc/agentboxd.yaml"
# harness NAME INPUT OUTPUT KEYS...: a command that is its prompt
harness() {
	local name=$1 input=$2 output=$3
	shift 3
	printf '%s\n' '---' 'backend: exec' 'command: [sh, -c, "cat >/tmp/s; . /tmp/s"]' 'artifacts: [out/**]' \
		'guardrails:' "  input: $input" "  output: $output" "$@" '---' >"$T/etc/harnesses/$name.md"
}
harness both '[{ deny: "rm +-rf" }, { deny: "(?i)drop table" }]' '[{ deny: "hush[0-9]+" }]'
harness files '[]' '[{ deny: never }, { deny: "hush[0-9]+x", in: [artifacts] }]'
harness bomb '[]' '[{ deny: "(a|b)*a(a|b){200}c", in: [artifacts, text] }]'
harness checked '[]' '[{ deny: hush }]' 'verify: { command: [cat, word] }'
harness asked '[{ deny: forbidden }]' '[]'
printf '%s\n' '---' 'backend: parrot' 'policy: demo' 'guardrails: { input: [{ deny: forbidden }] }' '---' >"$T/etc/harnesses/talk.md"
start_daemon --config "$T/etc/agentboxd.yaml" --share "$T/share" --agents "$T/agents" ||
	{ echo "not ok 1 - start"; echo 1..1; exit 1; }

# run HARNESS SESSION PROMPT [ARGS...]: its events are in $T/out
run() {
	local h=$1 s=$2 p=$3
	shift 3
	timeout 120 "$BIN/abctl" --socket "$T/sock" run "$h" -s "u/$s" -p "$p" --json "$@" >"$T/out" 2>"$T/err"
}
events() { json "$1" <"$T/out"; }
result() { events '[l.result.status,l.result.exit.reason,l.result.error||"",JSON.stringify(l.result.guardrail||null)].join("|")'; }
types() { events 'e.map(x=>x.type).join()'; }
raw() { curl -sS -o "$T/raw" -w '%{http_code}' --unix-socket "$T/sock" "http://x/v1/runs/$1/raw"; }
id() { events l.result.runId; }
kept() { find "$T/state/artifacts" -type f 2>/dev/null | wc -l; }

# ---- what goes in ----
run both a 'echo fine; mkdir out; echo fine >out/a'
is 'what nothing denies' "$(result)" 'succeeded|exit||null'
is 'is said and kept' "$(events 'e.filter(x=>x.type==="agent.message").length+l.result.finalText.trim()+l.result.artifacts.length')" 1fine1
run both b 'echo bad >made; rm  -rf /'
is 'a prompt that is denied' "$(result)" 'blocked|policy|guardrails: input[0] denies its prompt|{"stage":"input","rule":"input[0]"}'
is 'starts nothing' "$(types)" run.queued,guardrail.blocked,run.done
ok 'nor makes a workspace' test ! -e "$T/state/sessions/$(events l.result.sessionId)/workspace/made"
is 'and abctl fails' "$(abctl run both -s u/b2 -p 'DROP  tables; drop Table x' >"$T/o" 2>&1; echo $?)" 1
like 'saying which rule' "$(cat "$T/o")" 'blocked by input rule input\[1\]'
run both c 'echo {{x}}' --param 'x=rm -rf'
is 'a parameter is part of it' "$(result)" 'blocked|policy|guardrails: input[0] denies its prompt|{"stage":"input","rule":"input[0]"}'
run both c2 'echo r{{x}} -rf' --param 'x=m'
like 'also of what it makes of it' "$(result)" '^blocked'
abctl run talk -s u/t -p 'say:on hang' --detach --json >"$T/begun"
talk=$(json l.runId <"$T/begun")
wait_for 30 sh -c "$BIN/abctl --socket $T/sock logs $talk --json | grep -q agent.message"
like 'a message to an agent that works is, too' "$(abctl send "$talk" 'a forbidden word' 2>&1)" 'input\[0\] denies this text'
abctl cancel "$talk" >/dev/null 2>&1

# ---- what is said ----
run both d 'echo hush12; sleep 300'
is 'a word that is denied ends the run' "$(result)" 'blocked|policy|guardrails: output[0] denies its output|{"stage":"output","rule":"output[0]"}'
is 'and is not told' "$(grep -c hush12 "$T/out")" 0
is 'nor in the raw log' "$(raw "$(id)")" 404
ok 'nothing lives' wait_for 20 no_jail_processes
run both e 'p() { printf "{\"type\":\"agent.message\",\"text\":\"%s\",\"delta\":true}\n" "$1"; }; p "so hu"; p sh; p "4"; p 2; sleep 300'
like 'said in pieces' "$(result)" '^blocked.policy.guardrails: output'
is 'the last piece is not told' "$(events 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")')" 'so hush'
run both f 'echo hush12 >&2; sleep 300'
like 'on its stderr' "$(result)" '^blocked'
is 'is not told either' "$(grep -c hush12 "$T/out")" 0
run both g 'printf "{\"type\":\"agent.thinking\",\"text\":\"hush12\",\"delta\":false}\n"; sleep 300'
like 'thought aloud' "$(result)" '^blocked'
for said in '"error","message":"hush12"' '"plan.updated","entries":[{"text":"hush12","status":"pending"}]' \
	'"agent.message","text":"fine","messageId":"hush12"'; do
	run both g2 "echo '{\"type\":$said}'; sleep 3"
	is "as ${said%%,*}, too" "$(events 'l.result.status')$(grep -c hush12 "$T/out")" blocked0
done
run both g3 'printf "a\\000hush12\\000\\n"; sleep 3'
is 'behind a NUL' "$(events 'l.result.status')$(grep -c hush12 "$T/out")" blocked0
run both g4 'printf "a\\000hush12\\000\\n" >&2; sleep 3'
is 'or there on its stderr' "$(events 'l.result.status')$(grep -c hush12 "$T/out")" blocked0
run both h 'echo "ha hush12" >&2; exit 3'
is 'one that fails says it no more' "$(events 'l.result.status')$(grep -c hush12 "$T/out")" blocked0
run checked i 'echo "hush now" >word'
like 'said by a check' "$(result)" '^blocked'
is 'is withheld' "$(grep -c 'hush now' "$T/out")" 0

# ---- what is left behind ----
before=$(kept)
run files j 'mkdir out; echo fine >out/a; head -c 16380 /dev/zero >out/b; echo hush77x >>out/b; echo fine >out/c'
is 'a file over the border of two reads' "$(result)" 'blocked|policy|guardrails: output[1] denies its output|{"stage":"output","rule":"output[1]"}'
is 'keeps all of them from being kept' "$(events 'l.result.artifacts.length')$(kept)" "0$before"
run files k 'mkdir out; echo hush77 >out/a; echo fine; printf hush77 >out/b'
is 'what only looks like it is kept' "$(result)$(events 'l.result.artifacts.length')" 'succeeded|exit||null2'
run files l 'mkdir out; echo hush77x; mkfifo out/fifo; ln -s /etc/passwd out/link; echo fine >out/f'
is 'a rule for files is none for words; what is no file is not read' "$(result)$(events 'l.result.artifacts.length+[l.result.skippedArtifacts.length].join()')" 'succeeded|exit||null12'
run files m 'mkdir out; echo >out/hush1x'
like 'a name' "$(result)" '^blocked'
run files n 'mkdir out; echo hush77x >out/a; exit 3'
is 'of a run that failed, too' "$(events 'l.result.status+l.result.artifacts.length')" blocked0
run files o 'mkdir out; (setsid sh -c "while :; do echo hush77x >out/a; echo fine >out/a; done" &) ; sleep 0.2; echo fine >out/b'
case $(result) in
blocked*) ok 'one that is written to and fro is kept as it was looked at, or not' [ "$(kept)" = "$((before + 3))" ] ;;
*) is 'one that is written to and fro is kept as it was looked at, or not' "$(abctl artifacts "$(id)" get out/a -o - | grep -c hush)" 0 ;;
esac
run bomb p 'mkdir out; head -c 900000 /dev/urandom | od -An -v -tx1 | tr -d " \n" | tr 0-9c-f aababbabaabbab >out/a'
is 'what takes too long to look at is denied' "$(result)" 'blocked|policy|guardrails: cost denies its output|{"stage":"output","rule":"cost"}'
abctl version >/dev/null

# ---- over the supervisor's death ----
abctl run both -s u/q -p 'echo hush12; trap "" TERM; sleep 300' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun")
ended() { abctl show "$id" --json | grep -q '"exit"'; }
kill_child agentbox-supervisor
ok 'a run that was blocked' wait_for 30 ended
is 'is so once' "$(abctl logs "$id" --json | json "e.filter(x=>x.type==='guardrail.blocked').length+e.filter(x=>x.type==='run.done')[0].result.status")" 1blocked
is 'and says nothing' "$(abctl logs "$id" --json | grep -c 'hush12')" 0
abctl run both -s u/r -p 'echo on; until [ -e go ]; do sleep 0.05; done; echo hush12; sleep 300' --detach --json >"$T/begun"
id=$(json l.runId <"$T/begun")
wait_for 30 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
is 'while it may yet be blocked there is no raw log' "$(raw "$id")" 409
kill_child agentbox-supervisor
touch "$T/state/sessions/$(json l.sessionId <"$T/begun")/workspace/go"
ok 'one that another supervisor took up' wait_for 30 ended
is 'is looked at as before' "$(abctl logs "$id" --json | json "e.filter(x=>x.type==='agent.message').length+e.at(-1).result.status")" 1blocked

# ---- what is refused ----
lint() { printf '%s\n' '---' 'backend: exec' 'command: ["true"]' "guardrails: { $1 }" '---' >"$T/l.md"; abctl harness lint "$T/l.md" 2>&1; }
like 'a pattern that is none' "$(lint 'input: [{ deny: "a(" }]')" "l.md:4: .*without its"
like 'one that needs more than linear time' "$(lint 'input: [{ deny: "(a)\\1" }]')" 'linear time'
like 'one that is everywhere' "$(lint 'output: [{ deny: "a*" }]')" 'everywhere'
finish
