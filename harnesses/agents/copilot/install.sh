#!/bin/sh
# install.sh DEST - puts Copilot CLI at DEST/bin/copilot (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	mv "$1/copilot" "$2/bin/copilot"
}
npm_install "$@"
