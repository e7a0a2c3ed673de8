#!/usr/bin/env bash
# The real Claude Code.
. tests/agents/matrix.sh
matrix claude claude-sonnet-4-5
