#!/usr/bin/env bash
# The real Qwen Code.
. tests/agents/matrix.sh
matrix qwen qwen3-coder-plus
