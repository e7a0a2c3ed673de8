# shellcheck shell=bash
# Agents that run their prompt as Python, one of each dialect that can ask: sourced after lib.sh and
# runs.sh, for a daemon that is started with --share and --agents.  Harnesses: claude, codex, pi, liar
# (permissions: ask), and the same with -auto.

mkdir -p "$T/etc/policy" "$T/share/harnesses/agents/liar" "$T/agents/pi/lib/dist/bundle"
cp -r harnesses "$T/share/"
: >"$T/agents/pi/lib/dist/bundle/cli.js"
cat >"$T/share/harnesses/agents/liar/agent.yaml" <<'Y'
name: liar
driver: acp
description: does what its prompt says
program: /opt/agent/bin/liar
installed_files: true
Y
cat >"$T/etc/policy/hosts.yaml" <<'Y'
description: the hosts that agents want, with nothing behind them
extends: demo
egress:
  inject:
    - { host: anthropic.agentbox, upstream: "http://127.0.0.1:9", header: x-api-key, allow_loopback: true }
    - { host: openai.agentbox, upstream: "http://127.0.0.1:9", header: x-api-key, allow_loopback: true }
Y
for agent in claude:claude codex:codex pi:node liar:liar; do
	mkdir -p "$T/agents/${agent%:*}/bin"
	install -m 755 tests/integration/liar.py "$T/agents/${agent%:*}/bin/${agent#*:}"
	harness "${agent%:*}" "backend: ${agent%:*}" 'policy: hosts' 'permissions: ask' 'limits: { timeoutMs: 120000 }'
	harness "${agent%:*}-auto" "backend: ${agent%:*}" 'policy: hosts' 'limits: { timeoutMs: 120000 }'
done
