#!/usr/bin/env bash
# The real Codex by its driver.
# shellcheck disable=SC2034 # read by prove_driver
. tests/agents/driver.sh
agent=codex host=openai.agentbox header=authorization prefix='Bearer ' model=gpt-5.5 state=.codex
mcp_model=mock-model # one that Codex does not know is told of the servers' tools at once
node=node
call='apply_patch add out/hello.txt'
refused=shell because='no tools that could be allowed or denied'
prove_driver
