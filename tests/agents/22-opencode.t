#!/usr/bin/env bash
# The real opencode; it asks for plugins that nobody wanted.
. tests/agents/matrix.sh
also=registry."npmjs.org" matrix opencode anthropic/claude-sonnet-4-5
