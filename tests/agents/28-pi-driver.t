#!/usr/bin/env bash
# The real pi by its driver.
# shellcheck disable=SC2034 # read by prove_driver
. tests/agents/driver.sh
agent=pi host=anthropic.agentbox header=x-api-key prefix='' model=anthropic/claude-sonnet-4-5 state=.pi/agent/sessions
mcp_model=$model
node=/opt/agent/bin/node
call='write write out/hello.txt'
refused='bash(ls)' because='takes names of tools, no patterns'
prove_driver
