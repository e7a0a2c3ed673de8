#!/bin/sh
# install.sh DEST - puts pi at DEST/lib, with a Node at DEST/bin (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	mv "$1" "$2/lib"
	rm -rf "$2/lib/docs" "$2/lib/examples"
}
npm_install "$@"
