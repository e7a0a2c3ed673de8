#!/usr/bin/env bash
# The real Gemini CLI: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent gemini gemini.agentbox x-goog-api-key '' 'model: gemini-2.5-pro'
