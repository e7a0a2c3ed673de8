#!/bin/sh
# smoke.sh DEST - does the Auggie in DEST start?
set -eu
. "$(dirname "$0")/../starts.sh"

[ $# -eq 1 ] || die 'usage: smoke.sh DEST'
starts "$1" "$1/bin/node" "$1/lib/augment.mjs"
