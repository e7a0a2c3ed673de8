#!/usr/bin/env bash
# The real pi: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent pi '' 'model: anthropic/claude-sonnet-4-5'
