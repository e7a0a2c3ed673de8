# shellcheck shell=bash
# An agent of the Agent Client Protocol, `parrot`, in $T/agents, by data in $T/share: sourced after
# lib.sh, for a daemon that is started with --share and --agents.

mkdir -p "$T/agents/parrot/bin" "$T/share/harnesses/agents/parrot"
cp -r harnesses "$T/share/"
install -m 755 tests/integration/fake_acp.sh "$T/agents/parrot/bin/parrot"
cat >"$T/share/harnesses/agents/parrot/agent.yaml" <<'Y'
name: parrot
driver: acp
description: says what it is told
program: /opt/agent/bin/parrot
installed_files: true
acp: { mode: free, ask_mode: careful, failure_text: ["Error: "] }
Y
