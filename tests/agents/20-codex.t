#!/usr/bin/env bash
# The real Codex.  A model that it does not know is told of the servers' tools at once; others search for them.
. tests/agents/matrix.sh
mcp_model=mock-model matrix codex gpt-5.5
