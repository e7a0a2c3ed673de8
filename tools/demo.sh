#!/usr/bin/env bash
# make demo: a real coding agent in a jail, start to end, with a private
# agentboxd.  Leaves nothing behind but packages and the agent cache.
set -euo pipefail
cd "$(dirname "$0")/.."
BIN=${BIN:-build/release/bin}
PORT=47821 # named by policy/builtin/demo.yaml
MUST=${AGENTBOX_MUST_WORK:-0}
AGENTS=${XDG_CACHE_HOME:-$HOME/.cache}/agentbox/installed
bold='' dim='' off=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' off=$'\e[0m'; fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
note() { printf '%s%s%s\n' "$dim" "$*" "$off"; }
fail() {
	printf '\ndemo: %s\n' "$*" >&2
	[ ! -s "$T/daemon.log" ] || { echo 'agentboxd said:' >&2; tail -n 20 "$T/daemon.log" >&2; }
	exit 1
}

T=$(mktemp -d /tmp/agentbox-demo.XXXXXX)
chmod 755 "$T"
DAEMON='' MODEL=''
finish() {
	[ -z "$DAEMON" ] || { kill "$DAEMON" 2>/dev/null && wait "$DAEMON" 2>/dev/null; } || true
	[ -z "$MODEL" ] || { kill "$MODEL" 2>/dev/null && wait "$MODEL" 2>/dev/null; } || true
	rm -rf "$T"
}
trap finish EXIT
trap 'exit 130' INT TERM

[ "$(id -u)" = 0 ] || fail 'needs root: agentboxd makes namespaces and user id blocks'

# ---- agentboxd ----
config=$T/etc/agentboxd.yaml
mkdir -p "$AGENTS" "$T/etc/policy"
: >"$config"
[ -n "${ANTHROPIC_API_KEY:-}" ] || echo 'default_policy: demo' >"$config"
if tools/registry-policy.sh >"$T/install.yaml" 2>/dev/null; then
	mv "$T/install.yaml" "$T/etc/policy/"
fi
"$BIN/agentboxd" --config "$config" --state "$T/state" --socket "$T/sock" --agents "$AGENTS" 2>"$T/daemon.log" &
DAEMON=$!
abctl() { "$BIN/abctl" --socket "$T/sock" "$@"; }
for _ in $(seq 200); do
	abctl version >/dev/null 2>&1 && break
	kill -0 "$DAEMON" 2>/dev/null || fail 'agentboxd did not start'
	sleep 0.05
done

# ---- the agent ----
real=yes harness=hello-claude
say 'The agent: Claude Code, one pinned package from npm (abctl agent install claude)'
if ! abctl agent install claude --registry "$(npm config get registry)"; then
	real=no harness=hello
	[ "$MUST" != 1 ] || fail 'REAL AGENT: no (the package could not be fetched, and AGENTBOX_MUST_WORK=1)'
	note 'The package could not be fetched; the demo goes on with a plain command as the agent.'
fi

# ---- the model ----
if [ $real = yes ] && [ -n "${ANTHROPIC_API_KEY:-}" ]; then
	note 'Model: the real API (ANTHROPIC_API_KEY is set; agentboxd hands it to egress and to nobody else).'
elif [ $real = yes ]; then
	node tests/agents/mock-llm.mjs --listen "127.0.0.1:$PORT" --scenario tests/agents/scenarios/hello-claude.json \
		--log "$T/model.log" >"$T/model.out" 2>&1 &
	MODEL=$!
	# Its own words, not an answer on the port: that may be another demo's.
	for _ in $(seq 100); do
		grep -q 'listening on' "$T/model.out" 2>/dev/null && break
		kill -0 "$MODEL" 2>/dev/null || fail "the stand-in model server ended: $(tail -n 3 "$T/model.out")"
		sleep 0.1
	done
	grep -q 'listening on' "$T/model.out" || fail 'the stand-in model server did not come up'
	note "Model: the scripted stand-in on 127.0.0.1:$PORT (set ANTHROPIC_API_KEY for the real one)."
fi
unset ANTHROPIC_API_KEY

say "First run: abctl run $harness -s demo/hello"
abctl run "$harness" -s demo/hello \
	-p 'Write a short greeting into out/hello.txt with one of your tools, and say what you wrote. Remember the word heliotrope.' ||
	fail 'the first run failed'
run=$(abctl runs --session demo/hello --json | grep -o 'run_[0-9a-z]*' | head -n 1)
say 'The artifact that it wrote, collected after its jail was killed'
abctl artifacts "$run" get out/hello.txt || fail 'no artifact'

say 'Second run of the same session: the conversation goes on in a new jail'
abctl run "$harness" -s demo/hello -p 'Which word did I ask you to remember?' || fail 'the second run failed'
if [ -n "$MODEL" ]; then
	[ -s "$T/model.log" ] || fail 'the stand-in was never asked'
	grep -q '"status":4' "$T/model.log" && fail 'the model did not get the first conversation'
	note '(the stand-in answers only when the first conversation is in the request: it was)'
fi

say 'Three things that a jail refuses'
refused() {
	local what=$1
	shift
	printf '%s$ %s%s\n' "$dim" "$what" "$off"
	if abctl jail -- "$@" 2>&1 | grep -v '^abctl: notice' | sed 's/^/  /'; [ "${PIPESTATUS[0]}" = 0 ]; then
		fail "this should have been refused: $what"
	fi
}
refused 'cat /etc/shadow' cat /etc/shadow
refused 'curl https://example.com' curl -sS -m 5 https://example.com
refused 'unshare -U (a user namespace of its own)' unshare -U true

say 'What is left'
tree=$(for fd in "/proc/$DAEMON"/fd/*; do readlink "$fd" || true; done | awk '/\/agentbox-[0-9a-f]+$/ && !n++')
[ -n "$tree" ] || fail 'the cgroup of agentboxd is not known'
kill "$DAEMON" && wait "$DAEMON" || true
DAEMON=''
# Every process that it started was in there, and a cgroup with processes cannot be removed.
[ ! -e "$tree" ] || fail "its cgroup is left: $tree"
! grep -F "$T" /proc/self/mountinfo || fail 'a mount is left'
note 'no process, no mount, no cgroup of the demo'
printf '\nREAL AGENT: %s\n' "$real"
