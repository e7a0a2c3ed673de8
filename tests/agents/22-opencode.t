#!/usr/bin/env bash
# The real opencode: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent opencode '' 'model: anthropic/claude-sonnet-4-5' registry."npmjs.org" # for plugins that nobody asked for
