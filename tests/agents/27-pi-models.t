#!/usr/bin/env bash
# pi with models of three makers, each by its injected name.
. tests/agents/real.sh
models_of pi anthropic/claude-sonnet-4-5=anthropic.agentbox openai/gpt-5=openai.agentbox \
	google/gemini-2.5-pro=gemini.agentbox
