#!/usr/bin/env bash
# The real Cline.
. tests/agents/matrix.sh
also=data.cline.bot matrix cline claude-sonnet-4-5
