#!/usr/bin/env bash
# The real Gemini CLI: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent gemini '' 'model: gemini-2.5-pro'
