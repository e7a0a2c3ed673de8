#!/usr/bin/env bash
# The real GitHub Copilot CLI, with a model provider of its own.
. tests/agents/matrix.sh
matrix copilot gpt-5.5
