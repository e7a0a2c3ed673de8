#!/usr/bin/env bash
# The real Codex by its driver: events, a conversation that goes on, one that was lost, errors, the end of a run.
. tests/agents/real.sh
install_agent codex
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
node tests/agents/mock-llm.mjs --port-file "$T/port" --scenarios tests/agents/scenarios --cwd /workspace --log "$T/model.log" >"$T/model.out" 2>&1 &
HELPERS+=($!)
ok 'the stand-in model listens' wait_for 30 test -s "$T/port" || finish
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
for s in write tool tool-fail resume err401 hang marker mcp; do
	cat >"$T/etc/policy/$s.yaml" <<Y
extends: default
egress:
  inject:
    - { host: openai.agentbox, upstream: "http://127.0.0.1:$(cat "$T/port")/x/$s/$s", header: authorization, prefix: "Bearer ", secret: PROOF_KEY, allow_loopback: true }
Y
	printf -- '---\nbackend: codex\npolicy: %s\nmodel: gpt-5.5\nlimits: { timeoutMs: %s }\n---\n' $s "$([ $s = hang ] && echo 8000 || echo 120000)" >"$T/etc/harnesses/$s.md"
done
printf -- '---\nbackend: codex\ntools: { allow: [shell] }\n---\n' >"$T/etc/harnesses/tools.md"
printf -- '---\nbackend: codex\npolicy: tool\nmodel: gpt-5.5\npermissions: deny\n---\n' >"$T/etc/harnesses/deny.md"
printf -- '---\nbackend: codex\npolicy: marker\nmodel: gpt-5.5\n---\nMARKER-APPENDED-7f3\n' >"$T/etc/harnesses/marker.md"
# a model that Codex does not know is told of the servers' tools at once
printf -- '---\nbackend: codex\npolicy: mcp\nmodel: mock-model\ntools: { mcp: { mock: { command: node, args: [/workspace/mcp.mjs] } } }\nworkspace: { seed: { mcp.mjs: %s } }\n---\n' \
	"$(node -p 'JSON.stringify(require("fs").readFileSync("tests/agents/mock-mcp.mjs", "utf8"))')" >"$T/etc/harnesses/mcp.md"
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
run() { abctl run "$1" -s "u/$1" -p "${2:-Do it.}" --json >"$T/out" 2>"$T/err"; }
result() { json "l.result.$1" <"$T/out"; }

run write
is 'a run' "$(result status) $(result finalText)" 'succeeded Wrote out/hello.txt.'
is 'a call is an event' "$(json 'e.filter(x=>x.type==="tool.call").map(x=>x.name+" "+x.title).join()' <"$T/out")" 'apply_patch add out/hello.txt'
is 'a file that it changed, too' "$(json 'e.filter(x=>x.type==="file.changed").map(x=>x.change+" "+x.path).join()' <"$T/out")" 'add out/hello.txt'
is 'it says the tokens that were metered' "$(json '(u=>[u.inputTokens,u.outputTokens].join())(e.filter(x=>x.type==="usage").pop())' <"$T/out")" \
	"$(result usage.inputTokens),$(result usage.outputTokens)"
is 'nothing is unknown in it' "$(json 'e.filter(x=>x.type==="agent.raw").map(x=>x.line).join()' <"$T/out")" ''
run tool-fail
is 'a command that fails' "$(json '(x=>x.ok+" "+x.exitCode+" "+x.output)(e.find(x=>x.type==="tool.result"))' <"$T/out" | tr -d '\n')" 'false 3 oops'
run resume 'Remember heliotrope.'
is 'the first of a conversation' "$(result status)" succeeded
run resume 'Which word?'
is 'the second goes on with it' "$(result finalText)" 'The word was heliotrope.'
abctl exec u/resume -- rm -rf /home/agent/.codex >/dev/null 2>&1
run resume 'Which word?'
is 'a conversation that it has lost' "$(result status)" failed
like 'is said' "$(result error)" "lost this session's conversation.*next run begins a new one"
run err401
is 'an API error' "$(result status)" failed
like 'with its reason' "$(result error)" 'unexpected status 401'
run hang
is 'a model that hangs' "$(result status)" timeout
run deny
is 'permissions: deny' "$(json 'e.filter(x=>x.type==="permission.answered").map(x=>x.answer+" "+x.by).join()' <"$T/out")" 'deny harness'
is 'the command does not run' "$(json '(x=>x.ok+" "+x.output)(e.find(x=>x.type==="tool.result"))' <"$T/out")" 'false The call was declined.'
run marker
is 'the system prompt' "$(result finalText)" 'The marker is there.'
run mcp
is 'a tool of an MCP server' "$(json '(x=>x.name+" "+x.ok+" "+x.output)(e.find(x=>x.type==="tool.result"))' <"$T/out")" 'mcp__mock__mock_echo true echo: ping'
run tools
like 'what it cannot be told is refused' "$(cat "$T/out" "$T/err")" 'no tools that could be allowed or denied'
ok 'nothing is left' wait_for 20 no_jail_processes
finish
