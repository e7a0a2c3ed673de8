#!/usr/bin/env bash
# The real Gemini CLI.
. tests/agents/matrix.sh
matrix gemini gemini-2.5-pro
