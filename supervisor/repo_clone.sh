#!/bin/sh
# The first program of repo.h.  Arguments: the run, where from, the URL that is remembered, the
# bundle instead, the ref.
#
# Both run in a jail, as its agent, with the environment of repo.c.  What they work on may be hostile
# in every byte: then they may fail, or be ended for taking too long, but what they say is so.
#
# A checkout that was cut short is known by the run's name in it: it is that run's to begin again,
# and nobody else's to remove, but for what was fetched and stands alone.
set -u
run=$1 from=$2 url=$3 bundle=$4 ref=$5
fail() { printf '%s\n' "$*" >&2; exit 1; }
command -v git >/dev/null 2>&1 ||
	fail 'there is no git in this jail; remedy: install it where the policy has its files from'
cd /workspace || exit 1
top=${bundle%%/*}
empty() {
	for f in * .[!.]* ..?*; do
		[ -e "$f" ] || [ -L "$f" ] || continue
		[ "$f" = "$top" ] || rm -rf -- "$f"
	done
}
mine() { [ ! -L "$1" ] && [ -f "$1/agentbox-clone" ] &&
	[ "$(head -c 64 "$1/agentbox-clone")" = "$run" ]; }
if mine .git || mine .agentbox-clone/.git; then
	empty
fi
for f in * .[!.]* ..?*; do
	[ -e "$f" ] || [ -L "$f" ] || continue
	[ "$f" = "$top" ] && continue
	[ "$f" = .agentbox-clone ] && [ -f "$f/.git/agentbox-clone" ] && continue
	fail "the session's workspace is not empty: $f is there; remedy: a new session"
done
[ -z "$bundle" ] || [ -f "$bundle" ] || fail "there is no bundle $bundle in the workspace"
rm -rf .agentbox-clone
mkdir -p .agentbox-clone/.git && printf %s "$run" >.agentbox-clone/.git/agentbox-clone || exit 1
trap '[ $? = 0 ] || empty' EXIT
trap 'exit 1' TERM INT HUP
set -- core.hooksPath=/dev/null core.fsmonitor=false transfer.fsckObjects=true \
	fetch.fsck.zeroPaddedFilemode=warn fetch.fsck.badTimezone=warn fetch.fsck.missingSpaceBeforeDate=warn \
	submodule.recurse=false fetch.recurseSubmodules=false gc.auto=0 maintenance.auto=false \
	http.lowSpeedLimit=1 http.lowSpeedTime=60 advice.detachedHead=false
n=0
for kv; do
	export "GIT_CONFIG_KEY_$n=${kv%%=*}" "GIT_CONFIG_VALUE_$n=${kv#*=}"
	n=$((n + 1))
done
export GIT_CONFIG_COUNT=$n
new=.agentbox-clone/new
[ -n "$from" ] || from=/workspace/$bundle
git clone -q --no-checkout --no-recurse-submodules --template= --origin origin -- "$from" $new || exit 1
[ -z "$url" ] || git -C $new remote set-url origin "$url" || exit 1
commit() { git -C $new rev-parse -q --verify --end-of-options "$1^{commit}"; }
branch='' base=''
if [ -z "$ref" ]; then
	base=$(commit HEAD) || fail 'the repository has no commit where its HEAD is; remedy: name one with #REF'
	branch=$(git -C $new symbolic-ref -q --short HEAD)
elif base=$(commit "refs/remotes/origin/$ref"); then
	branch=$ref
elif base=$(commit "refs/tags/$ref"); then
	:
else
	case $ref in
	*[!0-9a-f]*) ;;
	*) base=$(commit "$ref") ;;
	esac
	if [ -z "$base" ] && [ -n "$url" ]; then
		git -C $new fetch -q --no-tags origin -- "$ref" && base=$(commit FETCH_HEAD)
	fi
	[ -n "$base" ] || fail "the repository has no branch, tag or commit '$ref'"
fi
printf %s "$run" >$new/.git/agentbox-clone && mv $new/.git .git && rm -rf .agentbox-clone || exit 1
if [ -n "$branch" ]; then
	git checkout -q -f -B "$branch" "$base" -- || exit 1
	[ -z "$url" ] || git branch -q --set-upstream-to="origin/$branch" "$branch" 2>/dev/null
else
	git checkout -q -f --detach "$base" -- || exit 1
fi
if [ -n "$bundle" ]; then
	git remote remove origin
	rm -rf -- "$top"
fi
printf 'base %s\nref %s\n' "$base" "$branch"
