#!/usr/bin/env bash
# Agents whose models are a service's of their own, with an account: installed, started, led to an injected name with the key that
# is outside; what they say of a service that knows no such account is the run's error.
. tests/agents/real.sh

for agent in amp auggie; do
	install_agent $agent
	ok "$agent starts" sh harnesses/agents/$agent/smoke.sh "$AGENTS/$agent"
done
trap 'kill "${HELPERS[@]}" 2>/dev/null; _at_exit' EXIT
node -e '
const fs = require("fs"), [port, log] = process.argv.slice(1);
const server = require("http").createServer((q, r) => {
	fs.appendFileSync(log, q.method + " " + q.url + " " + q.headers.authorization + "\n");
	q.resume().on("end", () => r.writeHead(404, { "content-type": "application/json" }).end("{}"));
}).listen(0, "127.0.0.1", () => fs.writeFileSync(port, String(server.address().port)));' "$T/port" "$T/service.log" &
HELPERS+=($!)
ok 'a service that knows nobody' wait_for 30 test -s "$T/port" || finish
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
for agent in amp auggie; do
	host=$agent.agentbox
	[ $agent != auggie ] || host=augment.agentbox
	cat >"$T/etc/policy/$agent.yaml" <<Y
extends: offline
egress:
  inject:
    - { host: $host, upstream: "http://127.0.0.1:$(cat "$T/port")", header: authorization, prefix: "Bearer ", secret: PROOF_KEY, allow_loopback: true }
Y
	printf -- '---\nbackend: %s\npolicy: %s\nlimits: { timeoutMs: 120000 }\n---\n' $agent $agent >"$T/etc/harnesses/$agent.md"
done
: >"$T/etc/agentboxd.yaml"
export PROOF_KEY=$KEY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$AGENTS" || finish
# asks AGENT FIRST-REQUEST ERROR
asks() {
	: >"$T/service.log"
	abctl run "$1" -s "u/$1" -p 'Say hello.' --json >"$T/events" 2>"$T/err"
	like "$1 asks its service first, with the key" "$(cat "$T/service.log")" "^POST $2 Bearer $KEY\$"
	is 'which fails the run' "$(json l.result.status <"$T/events")" failed
	like 'with the reason' "$(json l.result.error <"$T/events")" "$3"
	like 'it says what was never tried' "$(abctl agent show "$1" --json | json l.untried)" 'a run that succeeds'
}
asks amp '/api/internal\?getUserInfo' 'getUserInfo failed: 404'
asks auggie /get-models 'HTTP error: 404 Not Found'
like 'auggie gets as far as the prompt' "$(cat "$T/service.log")" "^POST /chat-stream Bearer $KEY\$"
like 'who cannot be installed says why' "$(abctl agent install cursor 2>&1)" 'not on npm .the package cursor-agent there is somebody else'
like 'another' "$(abctl agent install goose 2>&1)" 'not on npm but a release of its repository'
ok 'nothing is left' wait_for 20 no_jail_processes
finish
