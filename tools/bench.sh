#!/bin/sh
# make bench: name<TAB>value<TAB>unit, one line a measure.  BENCH=name runs one.
set -eu
want=${1:-all}
found=0
for program in "$BENCHES"/* bench/*.sh; do
	[ -x "$program" ] && [ -f "$program" ] || continue
	case $program in *.d) continue ;; esac
	name=$(basename "$program" .sh)
	[ "$want" = all ] || [ "$want" = "$name" ] || continue
	found=1
	"$program"
done
if [ "$found" = 0 ]; then
	there=$(find "$BENCHES" bench/*.sh -type f -perm /111 -exec basename {} .sh \; | sort | tr '\n' ' ')
	echo "no bench named '$want'; there are: $there" >&2
	exit 100
fi
