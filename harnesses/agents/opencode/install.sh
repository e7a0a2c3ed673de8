#!/bin/sh
# install.sh DEST - puts opencode at DEST/bin/opencode (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	mv "$1/bin/opencode" "$2/bin/opencode"
}
npm_install "$@"
