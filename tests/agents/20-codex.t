#!/usr/bin/env bash
# The real Codex: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent codex 'Bearer ' 'model: gpt-5.5'
