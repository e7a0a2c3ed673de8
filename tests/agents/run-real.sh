#!/bin/bash
# run-real.sh AGENT_DIR [BUILD_DIR] - the real Claude Code, through its driver, against the stand-in.
#
# AGENT_DIR is what harnesses/agents/claude/install.sh made; BUILD_DIR has
# lib/drivers.a and lib/base.a.  Outside any jail: it checks that the driver
# speaks to the product as the product is.  TAP; needs node; as root the agent
# runs as uid 4242.
set -u
cd "$(dirname "$0")/../.." || exit 1
agent=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/agentbox/agents/claude}
build=${2:-build/release}
if [ ! -x "$agent/bin/claude" ] || ! command -v node >/dev/null; then
	echo '1..0 # SKIP needs node and an installed agent (harnesses/agents/claude/install.sh)'
	[ "${AGENTBOX_MUST_WORK:-0}" = 1 ] && exit 1
	exit 77
fi

T=$(mktemp -d /tmp/agentbox-real.XXXXXX)
chmod 755 "$T"
MODEL=''
trap '[ -z "$MODEL" ] || kill "$MODEL"; rm -rf "$T"' EXIT
"${CC:-gcc}" -std=gnu17 -D_GNU_SOURCE -I. -O1 tests/agents/drive.c "$build/lib/drivers.a" "$build/lib/base.a" \
	-lcjson -o "$T/drive" || exit 1
mkdir "$T/home" "$T/ws"
[ "$(id -u)" != 0 ] || chown 4242:4242 "$T/home" "$T/ws"
node tests/agents/mock-llm.mjs --scenarios tests/agents/scenarios --port-file "$T/port" --log "$T/model.log" >/dev/null &
MODEL=$!
for _ in $(seq 100); do [ -s "$T/port" ] && break; sleep 0.1; done
url=http://127.0.0.1:$(cat "$T/port")

count=0 failed=0
# drive SCENARIO SESSION [OPTION...]: the last run's lines are in $T/out
drive() {
	local where=$url/x/$1/$2
	shift 2
	timeout 120 "$T/drive" --home "$T/home" --cwd "$T/ws" --program "$agent/bin/claude" --model claude-sonnet-4-5 \
		--env "ANTHROPIC_BASE_URL=$where" --env ANTHROPIC_API_KEY=placeholder "$@" >"$T/out" 2>"$T/argv"
}
ok() { # ok NAME COMMAND...
	local name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $name"
	else
		failed=1
		echo "not ok $count - $name"
		sed 's/^/# /' "$T/argv" "$T/out" | cut -c1-300
	fi
}
said() { grep -qF -- "$1" "$T/out"; }
not_said() { ! grep -qF -- "$1" "$T/out"; }
offered() { [ "$(tail -n 1 "$T/model.log" | sed 's/.*"tools":\(\[[^]]*\]\).*/\1/')" = "$1" ]; }
resume_id() { sed -n 's/.*"outcome".*"resume":"\([^"]*\)".*/\1/p' "$T/out"; }

drive text a claude 'What is six times seven?'
ok 'text' said '"status":"succeeded","finalText":"The answer is 42."'
ok 'nothing unknown in it' not_said agent.raw
ok 'the prompt is not in argv' sh -c "! grep -q 'six times' '$T/argv'"

drive tool a claude 'Make it.'
ok 'a tool call and its result' said '"name":"Bash","ok":true,"output":"hello","exitCode":0'
rm -rf "$T/ws/out"
drive write a claude 'Write it.'
ok 'a written file' said '"type":"file.changed","path":"out/hello.txt","change":"add"'
ok 'which is there' grep -qx hello "$T/ws/out/hello.txt"

rm -rf "$T/ws/out"
drive hello-claude a claude 'Write a greeting and remember the word heliotrope.'
id=$(resume_id)
drive hello-claude a --resume "$id" claude 'Which word?'
ok 'a resumed conversation is in the request' said 'the word was heliotrope.","resume":"'"$id"'"'
ok 'and costs what it costs alone' said '"costUsd":0.00075'
drive text b --resume 99999999-2222-4333-8444-555555555555 claude 'Hi.'
ok 'a conversation that is gone' said '"resumeLost":true'

drive tool c --allow Read claude 'Make it.'
ok 'only the allowed tool is offered' offered '["Read"]'
drive text d --allow '' claude 'Hi.'
ok 'or none' offered '[]'
drive patterns a --allow 'Bash(node:*)' claude 'Try.'
ok 'a pattern: what matches runs' said '"ok":true,"output":"42"'
ok 'what does not is denied' sh -c "[ \$(grep -c '\"answer\":\"deny\",\"by\":\"harness\"' '$T/out') = 3 ]"
drive deny-bash a --deny 'Bash(rm:*)' claude 'Remove.'
ok 'a denied pattern' said 'command rm -f out/hello.txt has been denied'
ok 'denies nothing else' said '"output":"kept"'
drive tool e --permissions deny claude 'Make it.'
ok 'permissions: deny' said '"answer":"deny","by":"harness"'
drive tool f --permissions ask --answer once claude 'Make it.'
ok 'permissions: ask' said '"answer":"once","by":"user"'

drive mcp a --mcp "mock=node:$PWD/tests/agents/mock-mcp.mjs" --allow Read claude 'Call it.'
ok 'an MCP server' said '"output":"echo: ping"'
ok 'and no other tool' offered '["Read","mcp__mock__mock_echo"]'
drive marker a --system 'MARKER-APPENDED-7f3' claude 'Hi.'
ok 'the system prompt' said '"finalText":"The marker is there."'
drive loop a --max-turns 2 claude 'Loop.'
ok 'the turn limit' said '"maxTurns":true'
drive hang a --interrupt 5 claude 'Hang.'
ok 'an interrupt while it speaks' said '"error":"interrupted"'
drive sleep-tool a --interrupt 5 claude 'Sleep.'
ok 'an interrupt while a tool runs' said '"error":"interrupted"'
drive plan a claude 'Plan.'
ok 'a plan' said '"entries":[{"text":"Look around","status":"completed"}]'
drive subagent-late a claude 'Delegate.'
ok 'a subagent that ends after the first turn' said '"finalText":"The subagent found nothing."'
drive err429-once a claude 'Hi.'
ok 'a retry is no failure' said '"code":"rate_limit","retryable":true'
ok 'the run goes on' said '"finalText":"Recovered after the retry."'

echo "1..$count"
exit $failed
