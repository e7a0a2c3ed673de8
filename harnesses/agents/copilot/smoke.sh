#!/bin/sh
# smoke.sh DEST - does the agent in DEST start?  Needs no key and no network.
set -eu
. "$(dirname "$0")/../npm.sh"

[ $# -eq 1 ] || die 'usage: smoke.sh DEST'
npm_smoke "$1" "$1/bin/copilot"
