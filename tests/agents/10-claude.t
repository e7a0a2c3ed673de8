#!/usr/bin/env bash
# The real Claude Code: its key is nowhere in its jail, also where the model sends it back.
. tests/agents/real.sh
prove_agent claude '' 'model: claude-sonnet-4-5'
