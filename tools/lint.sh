#!/bin/sh
# make lint: GRAPH ORDER FLAGS (see tools/lint-tree).  Every finding is printed;
# exit 1 when there is one.
set -u
graph=$1 order=$2 flags=$3
failed=0
step() {
	printf '== %s\n' "$1"
	shift
	"$@" || { failed=1; printf '   ^ failed\n'; }
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
sources=$(git ls-files -co --exclude-standard 'base/*.c' 'proto/*.c' 'policy/*.c' 'drivers/*.c' \
	'jail/*.c' 'egress/*.c' 'supervisor/*.c' 'abctl/*.c')

step 'tree: folder graph, containment, banned calls, sizes' tools/lint-tree "$graph" "$order"

format() {
	git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format --dry-run -Werror 2>&1 |
		sed -n 's/ error: .*//p' | cut -d: -f1 | sort -u | sed 's/$/ is not as clang-format lays it out/' >build/format.txt
	cat build/format.txt
	[ ! -s build/format.txt ]
}
mkdir -p build
need clang-format && step 'format' format

warnings() {
	# shellcheck disable=SC2086 # flags and file names are lists
	printf '%s\n' $sources | xargs -P2 -n4 "$1" $flags -O2 -Werror -fsyntax-only
}
step 'gcc warnings' warnings gcc
need clang && step 'clang warnings' warnings clang

analyze() {
	# shellcheck disable=SC2086
	printf '%s\n' $sources | xargs -P2 -n1 gcc $flags -O1 -fanalyzer -Werror -c -o /dev/null
}
step 'gcc -fanalyzer' analyze

tidy() {
	# shellcheck disable=SC2086
	printf '%s\n' $sources | xargs -P2 -n4 sh -c 'f=$0; flags="'"$flags"'"
		clang-tidy --quiet "$f" "$@" -- $flags 2>/dev/null' >build/tidy.txt
	grep -E 'warning:|error:' build/tidy.txt
	! grep -qE 'warning:|error:' build/tidy.txt
}
need clang-tidy && step 'clang-tidy' tidy

need cppcheck && step 'cppcheck' cppcheck -q -j2 -I. --std=c11 --enable=warning,portability \
	--inline-suppr --error-exitcode=1 --suppressions-list=tools/cppcheck.txt \
	base proto policy drivers jail egress supervisor abctl

scripts() {
	git ls-files -co --exclude-standard '*.sh' 'tests/integration/*.t' .ci/run |
		xargs grep -lE '^#!.*(sh|bash)$' | xargs shellcheck -x
}
need shellcheck && step 'shellcheck' scripts
need mandoc && step 'mandoc' mandoc -Tlint -Wwarning docs/man/*.[158]

words() {
	# the project speaks of itself alone
	! git grep -nIE '(^|[^[:alnum:]_.-])/work/|\.\./shared|registry\.npmjs|deb\.debian\.org' -- . \
		':!tools/lint.sh'
}
step 'words' words
exit $failed
