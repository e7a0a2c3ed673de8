#!/usr/bin/env bash
# The real GitHub Copilot CLI with a model provider of its own: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent copilot 'Bearer ' 'model: gpt-5.5'
