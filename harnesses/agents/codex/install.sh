#!/bin/sh
# install.sh DEST - puts Codex at DEST/bin/codex (jails see DEST as /opt/agent).
set -eu
. "$(dirname "$0")/../npm.sh"

arrange() {
	bin=$1/vendor/x86_64-unknown-linux-musl
	mv "$bin/bin/codex" "$bin/bin/codex-code-mode-host" "$bin/codex-path/rg" "$2/bin/"
}
npm_install "$@"
