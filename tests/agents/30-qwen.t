#!/usr/bin/env bash
# The real Qwen Code: its key is nowhere in its jail.
. tests/agents/real.sh
prove_agent qwen 'Bearer ' 'model: qwen3-coder-plus'
