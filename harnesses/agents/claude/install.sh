#!/bin/sh
# install.sh DEST - puts Claude Code at DEST/bin/claude (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	mv "$1/claude" "$2/bin/claude"
	mv "$1/LICENSE.md" "$2/LICENSE.md"
}
npm_install "$@"
