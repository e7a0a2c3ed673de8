#!/bin/sh
# make lint: GRAPH ORDER FLAGS (see tools/lint-tree).  Every finding is printed;
# exit 1 when there is one.  Steps that look at files one by one use all processors.
set -u
graph=$1 order=$2 flags=$3
failed=0
jobs=$(nproc)
out=build/lint
mkdir -p "$out"

# step WHAT COMMAND...: its time is printed, and whether it failed
step() {
	what=$1 began=$(date +%s)
	shift
	printf '== %s\n' "$what"
	"$@" || { failed=1; printf '   ^ failed\n'; }
	printf '   (%s s)\n' $(($(date +%s) - began))
}
need() {
	command -v "$1" >/dev/null 2>&1 && return 0
	if [ "${AGENTBOX_MUST_WORK:-0}" = 1 ]; then
		echo "lint needs $1: tools/deps.sh all" >&2
		exit 1
	fi
	echo "== $1 is not installed (tools/deps.sh all): skipped"
	return 1
}
# Files of the tree, also new ones, that are there.
files() {
	git ls-files -co --exclude-standard -- "$@" | while IFS= read -r f; do
		[ -f "$f" ] && printf '%s\n' "$f"
	done
}
files 'base/*.c' 'proto/*.c' 'policy/*.c' 'drivers/*.c' 'jail/*.c' 'egress/*.c' 'supervisor/*.c' \
	'client/*.c' 'abctl/*.c' >"$out/sources"
files 'tests/*.c' 'fuzz/*.c' 'bench/*.c' >"$out/test-sources"
[ -s "$out/sources" ] || {
	echo 'lint: git names no source file' >&2
	exit 1
}

step 'tree: folder graph, containment, banned calls, sizes' tools/lint-tree "$graph" "$order"

names() { files 'docs/THREATS.md' 'docs/ISOLATION.md' 'tests/README.md' | xargs tools/lint-names; }
step 'names: what the documents say of the code is there' names

format() {
	files '*.c' '*.h' | xargs clang-format --dry-run -Werror 2>&1 |
		sed -n 's/ error: .*//p' | cut -d: -f1 | sort -u |
		sed 's/$/ is not as clang-format lays it out/' >"$out/format"
	cat "$out/format"
	[ ! -s "$out/format" ]
}
need clang-format && step 'format' format

warnings() {
	# shellcheck disable=SC2086 # flags are a list
	cat "$out/sources" "$out/test-sources" |
		xargs -P"$jobs" -n4 "$1" $flags -O2 -Werror -fsyntax-only
}
step 'gcc warnings' warnings gcc
need clang && step 'clang warnings' warnings clang

analyze() {
	# shellcheck disable=SC2086
	xargs -P"$jobs" -n1 gcc $flags -O1 -fanalyzer -Werror -c -o /dev/null <"$out/sources"
}
step 'gcc -fanalyzer' analyze

# One process a file: with several, clang-tidy 14 carries what it knows of a va_list from one to the
# next.  What it says on stderr is only how many warnings it suppressed in system headers; a file
# that does not compile is an error on stdout.
tidy() {
	xargs -P"$jobs" -I FILE sh -c "clang-tidy --quiet FILE -- $flags 2>/dev/null" <"$out/sources" >"$out/tidy"
	status=$?
	cat "$out/tidy"
	return "$status"
}
need clang-tidy && step 'clang-tidy' tidy

need cppcheck && step 'cppcheck' cppcheck -q -j"$jobs" -I. --std=c11 --enable=warning,portability \
	--inline-suppr --error-exitcode=1 --suppressions-list=tools/cppcheck.txt \
	base proto policy drivers jail egress supervisor client abctl

scripts() {
	files '*.sh' 'tests/integration/*.t' 'tests/deep/*.t' 'tests/vm/*' 'packaging/*' .ci/run | xargs grep -lE '^#!.*(sh|bash)$|shellcheck shell=' |
		xargs -P"$jobs" -n4 shellcheck -x
}
need shellcheck && step 'shellcheck' scripts
need mandoc && step 'mandoc' mandoc -Tlint -Wwarning docs/man/*.[1358]

words() {
	# the project speaks of itself alone; hosts of registries are data of policies
	! git grep --untracked -nIE '(^|[^[:alnum:]_.-])/work/|\.\./shared|registry\.npmjs|deb\.debian\.org' -- . \
		':!tools/lint.sh' ':!policy/builtin' ':!tests/tools'
}
step 'words' words
exit $failed
