#!/bin/sh
# smoke.sh DEST - does the agent in DEST start?  Needs no key and no network.
set -eu
. "$(dirname "$0")/../starts.sh"

[ $# -eq 1 ] || die 'usage: smoke.sh DEST'
starts "$1" "$1/bin/node" "$1/lib/bundle/gemini.js"
