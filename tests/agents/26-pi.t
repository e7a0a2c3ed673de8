#!/usr/bin/env bash
# The real pi.
. tests/agents/matrix.sh
matrix pi anthropic/claude-sonnet-4-5
