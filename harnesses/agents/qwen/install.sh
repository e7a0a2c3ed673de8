#!/bin/sh
# install.sh DEST - puts Qwen Code at DEST/lib, with a Node at DEST/bin (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	mv "$1" "$2/lib"
}
npm_install "$@"
