#!/bin/sh
# install.sh DEST - puts Claude Code at DEST/bin/claude (jails see DEST as /opt/agent).
#
# Fetches the one package that agent.yaml pins, with npm and whatever registry
# npm is configured for; no script of the package runs.  The SHA-512 in
# agent.yaml is checked here, not left to npm.  A DEST that is complete and
# unchanged is left alone; otherwise the new tree takes its place at once.
# Exits 0, or 1 with the reason on stderr.
set -eu

die() {
	printf 'install claude: %s\n' "$*" >&2
	exit 1
}

[ $# -eq 1 ] && [ -n "$1" ] || die 'usage: install.sh DEST'
dest=${1%/}
here=$(cd "$(dirname "$0")" && pwd)

# A scalar of agent.yaml, at any depth; quotes removed.
fact() {
	sed -n "s/^ *$1: *\"\{0,1\}\([^\"]*\)\"\{0,1\} *\$/\1/p" "$here/agent.yaml" | head -n 1
}
version=$(fact version) package=$(fact package) integrity=$(fact integrity)
[ -n "$version" ] && [ -n "$package" ] && [ -n "$integrity" ] ||
	die "$here/agent.yaml: version, package or integrity is missing"

# ---- is it there already? ----
if [ "$(cat "$dest/VERSION" 2>/dev/null)" = "$version" ] &&
	(cd "$dest" && sha512sum --status -c SHA512SUMS) 2>/dev/null; then
	printf 'claude %s is installed in %s\n' "$version" "$dest"
	exit 0
fi

# ---- can it be installed here? ----
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
	die "the package is for Linux on x86_64, this is $(uname -s) on $(uname -m)"
command -v npm >/dev/null 2>&1 && command -v node >/dev/null 2>&1 ||
	die 'npm and node are needed to fetch it (Debian: apt-get install nodejs npm); neither is needed to run it'

parent=$(dirname "$dest")
mkdir -p "$parent" || die "cannot make $parent"
work=$(mktemp -d "$parent/.claude-install.XXXXXX") || die "cannot write to $parent"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# ---- fetch ----
printf 'fetching %s %s (about 180 MB)\n' "$package" "$version"
if ! (cd "$work" && npm pack --ignore-scripts --loglevel error "$package@$version") >"$work/name" 2>"$work/npm.log"; then
	# npm's own words name servers; its code is what helps: E404, ENOTFOUND, EAI_AGAIN, ETIMEDOUT.
	code=$(sed -n 's/^npm \(ERR!\|error\) code \([A-Z0-9_]*\).*/\2/p' "$work/npm.log" | head -n 1)
	die "npm could not fetch $package@$version (${code:-no code given}); is its registry reachable and up to date?"
fi
tarball=$work/$(tail -n 1 "$work/name")
[ -f "$tarball" ] || die 'npm reported success but left no package'

# ---- verify ----
got=$(node -e '
const hash = require("crypto").createHash("sha512");
require("fs").createReadStream(process.argv[1]).on("data", (d) => hash.update(d))
	.on("end", () => console.log("sha512-" + hash.digest("base64")));' "$tarball")
[ "$got" = "$integrity" ] ||
	die "the package is not the pinned one: its digest is $got, agent.yaml says $integrity"

# ---- unpack, beside DEST so that the last step is a rename ----
mkdir -p "$work/new/bin"
tar -xzf "$tarball" -C "$work" --no-same-owner package/claude package/LICENSE.md ||
	die 'the package cannot be unpacked (disk full?)'
mv "$work/package/claude" "$work/new/bin/claude"
mv "$work/package/LICENSE.md" "$work/new/LICENSE.md"
chmod 755 "$work/new" "$work/new/bin" "$work/new/bin/claude"
printf '%s\n' "$version" >"$work/new/VERSION"
(cd "$work/new" && sha512sum bin/claude LICENSE.md VERSION >SHA512SUMS)
chmod 644 "$work/new/LICENSE.md" "$work/new/VERSION" "$work/new/SHA512SUMS"
if [ -e "$dest" ]; then
	mv -T "$dest" "$work/old" || die "cannot replace $dest"
fi
mv -T "$work/new" "$dest" || die "cannot make $dest"
printf 'installed claude %s in %s\n' "$version" "$dest"
