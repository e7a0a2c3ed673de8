#!/bin/sh
# A bundle of a directory's repository, for checkout.c: written to stdout.  Arguments: the directory,
# the ref or "", 1 or 0 for what is not committed.
set -u
dir=$1 ref=$2 dirty=$3
say() { printf 'abctl: %s\n' "$*" >&2; }
fail() { say "system: --repo: $*"; exit 1; }
command -v git >/dev/null 2>&1 || fail 'git is not installed here'
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS
export GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1
there() { git -C "$dir" -c core.fsmonitor=false "$@"; }
path() { there rev-parse --path-format=absolute --git-path "$1"; }
objects=$(path objects) || fail "git does not read $dir"
[ "$(there rev-parse --is-shallow-repository)" = false ] ||
	fail "$dir is a shallow clone; remedy: git fetch --unshallow"
base=$(there rev-parse -q --verify --end-of-options "${ref:-HEAD}^{commit}") ||
	fail "$dir has no commit '${ref:-HEAD}'"
branch=''
if [ -z "$ref" ]; then
	branch=$(there symbolic-ref -q --short HEAD)
elif there show-ref --verify -q -- "refs/heads/$ref"; then
	branch=$ref
fi
top=$(there rev-parse --show-toplevel 2>/dev/null)
index=$(path index) exclude=$(path info/exclude)
mine=$(there config --global --path core.excludesFile) || mine=${XDG_CONFIG_HOME:-$HOME/.config}/git/ignore
format=$(there rev-parse --show-object-format)
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
trap 'exit 1' INT TERM HUP
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 \
	GIT_AUTHOR_NAME=agentbox GIT_AUTHOR_EMAIL=agentbox@localhost \
	GIT_COMMITTER_NAME=agentbox GIT_COMMITTER_EMAIL=agentbox@localhost
git init -q --bare --template= --object-format="$format" "$t/git" || exit 1
printf '%s\n' "$objects" >"$t/git/objects/info/alternates" || exit 1
export GIT_DIR="$t/git"
git config core.hooksPath /dev/null && git config gc.auto 0 && git config core.safecrlf false && git config core.excludesFile "$mine" && git config advice.addEmbeddedRepo false || exit 1
if [ -n "$top" ] && [ -z "$ref" ]; then
	export GIT_WORK_TREE="$top" GIT_INDEX_FILE="$t/index"
	mkdir -p "$t/git/info"
	[ ! -f "$exclude" ] || cp -- "$exclude" "$t/git/info/exclude"
	cp -- "$index" "$t/index" 2>/dev/null && git ls-files >/dev/null 2>&1 ||
		{ rm -f "$t/index"; git read-tree "$base" || exit 1; }
	git ls-files -s | sed -n 's/^160000 [0-9a-f]* 0\t//p' | git update-index --skip-worktree --stdin
	if [ "$dirty" = 1 ]; then
		git -C "$top" add -A -- . || fail "what is not committed could not be read"
		tree=$(git write-tree) || exit 1
		[ "$tree" = "$(git rev-parse "$base^{tree}")" ] ||
			base=$(git commit-tree -p "$base" -m 'What was not committed' "$tree") || exit 1
	else
		git -C "$top" update-index -q --refresh >/dev/null 2>&1
		git -C "$top" diff-files --quiet --no-ext-diff --ignore-submodules &&
			git diff-index --cached --quiet --no-ext-diff --ignore-submodules "$base" -- &&
			[ -z "$(git -C "$top" ls-files -o --exclude-standard --directory | head -n 1)" ] ||
			say "notice: what is not committed in $dir is not taken along; --dirty takes it"
	fi
	unset GIT_WORK_TREE GIT_INDEX_FILE
elif [ "$dirty" = 1 ]; then
	fail '--dirty goes with a working directory at its HEAD, without #REF'
fi
if [ -n "$branch" ]; then
	git update-ref -- "refs/heads/$branch" "$base" && git symbolic-ref HEAD "refs/heads/$branch" &&
		git bundle create -q - HEAD "refs/heads/$branch" || exit 1
else
	git update-ref --no-deref HEAD "$base" && git bundle create -q - HEAD || exit 1
fi
