#!/bin/sh
# The second program of repo.h.  Arguments: the base, the run.
#
# Nothing of the configuration, the refs but HEAD, the index, the hooks, the attributes or the
# excludes that the workspace's .git has is looked at: there are two repositories of our own, and
# of the workspace's the objects, as an alternate.  The objects of the base are brought over by a
# pack, whose reader computes their names anew, so that they are those that the base's name stands
# for.
#
# Says lines "KEY VALUE"; behind "patch BYTES" and "bundle BYTES" so many bytes; last "end".
#
# shellcheck disable=SC2086,SC2046 # words that are one or none: sizes, $work, $format
set -u
base=$1 run=$2 work=/workspace
fail() { printf '%s\n' "$*" >&2; exit 1; }
command -v git >/dev/null 2>&1 || fail 'there is no git in this jail'
for d in .git .git/objects; do
	[ -d $work/$d ] && [ ! -L $work/$d ] ||
		fail "the workspace's $d is gone, or is no directory any more"
done
odd=$(find $work/.git/objects ! -type f ! -type d | head -n 1)
[ -z "$odd" ] || fail "$odd is neither file nor directory"
odd=$(find $work -path $work/.git -prune -o \( -name .gitignore -o -name .gitattributes \) ! -type f -print | head -n 1)
[ -z "$odd" ] || fail "$odd is no regular file"
case ${#base} in 64) format=--object-format=sha256 ;; *) format='' ;; esac
set -- core.hooksPath=/dev/null core.fsmonitor=false core.commitGraph=false core.multiPackIndex=false \
	pack.useBitmaps=false pack.threads=1 core.safecrlf=false advice.addEmbeddedRepo=false \
	submodule.recurse=false diff.ignoreSubmodules=all gc.auto=0 core.untrackedCache=false
n=0
for kv; do
	export "GIT_CONFIG_KEY_$n=${kv%%=*}" "GIT_CONFIG_VALUE_$n=${kv#*=}"
	n=$((n + 1))
done
export GIT_CONFIG_COUNT=$n
where_head_is() {
	head='' line=''
	[ -f $work/.git/HEAD ] && [ ! -L $work/.git/HEAD ] && line=$(head -c 512 $work/.git/HEAD)
	case $line in
	'ref: refs/'*)
		name=${line#ref: }
		case $name in *..* | *[[:space:]]*) return ;; esac
		if [ -f "$work/.git/$name" ]; then
			head=$(head -c 128 "$work/.git/$name")
		elif [ -f $work/.git/packed-refs ]; then
			head=$(grep -F -- " $name" $work/.git/packed-refs |
				while read -r id is; do [ "$is" = "$name" ] && echo "$id"; done | head -n 1)
		fi
		;;
	*) head=$line ;;
	esac
	case $head in *[!0-9a-f]*) head='' ;; esac
	[ ${#head} = ${#base} ] && git --git-dir=$a cat-file -e "$head^{commit}" 2>/dev/null || head=''
}
gitlinks() { sed -n 's/^:[0-7]* 160000 [0-9a-f]* [0-9a-f]* [AT]\t/0 '"$none"'\t/p'; }
collect() {
	rm -rf "$1"/.agentbox-changes.*
	t=$(mktemp -d "$1/.agentbox-changes.XXXXXX") || return 1
	a=$t/a b=$t/b
	git init -q --bare --template= $format $a && git init -q --bare --template= $format $b || return 1
	printf '%s\n' $b/objects $work/.git/objects >$a/objects/info/alternates || return 1
	git --git-dir=$a rev-list --objects --no-walk --no-object-names $base -- >$t/names || {
		echo "the objects of the base $base are gone from the workspace's .git, or are damaged" >&2
		return 2
	}
	git --git-dir=$a pack-objects -q --stdout <$t/names >$t/pack &&
		git --git-dir=$b index-pack --stdin <$t/pack >/dev/null || return 1
	git --git-dir=$b cat-file -e "$base^{commit}" || return 2
	rm -f $t/pack $t/names
	echo $base >$b/shallow
	export GIT_DIR=$b GIT_WORK_TREE=$work GIT_INDEX_FILE=$t/index
	none=$(printf %0${#base}d 0)
	git read-tree $base || return 1
	git ls-files -s | sed -n 's/^160000 [0-9a-f]* 0\t//p' |
		git update-index --skip-worktree --stdin || return 1
	part=0
	git -C $work add -A --ignore-errors -- . 2>$t/said || part=1
	grep -qE '^(error|warning: (could not|unable))' $t/said && part=1
	git diff-index --cached -r $base -- >$t/raw || return 1
	nested=$(gitlinks <$t/raw | wc -l)
	gitlinks <$t/raw | git update-index --index-info || return 1
	tree=$(git write-tree) || return 1
	git diff-tree -r -p --binary --full-index --no-ext-diff --no-textconv --no-color --no-renames \
		$base $tree -- >$t/patch || return 1
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
	where_head_is
	lost=0
	[ -n "$head" ] || { head=$base lost=1; }
	was=$(git --git-dir=$a rev-parse -q --verify "$head^{tree}") || { head=$base lost=1 was=''; }
	tip=$head
	if [ "$was" != $tree ] || { [ $head != $base ] &&
		[ -z "$(git --git-dir=$a rev-list -n 1 $head ^$base --)" ]; }; then
		tip=$(git --git-dir=$a commit-tree -p $head -m "What run $run left in its workspace" $tree) || return 1
	fi
	if [ $tip != $base ]; then
		git --git-dir=$a update-ref refs/agentbox/$run $tip &&
			git --git-dir=$a bundle create -q $t/bundle refs/agentbox/$run ^$base || return 1
	fi
}
t=''
for place in /home/agent /tmp; do
	collect $place && done=0 || done=$?
	[ $done = 1 ] || break
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
	rm -rf "$t"
done
if [ $done = 0 ]; then
	printf 'base %s\nhead %s\ntip %s\nnested %d\npartial %d\nheadLost %d\n' \
		$base $head $tip $nested $part $lost
	printf 'patch %d\n' $(wc -c <$t/patch) && cat $t/patch &&
		if [ -f $t/bundle ]; then printf 'bundle %d\n' $(wc -c <$t/bundle) && cat $t/bundle; fi &&
		echo end || done=1
fi
rm -rf "$t"
exit $done
