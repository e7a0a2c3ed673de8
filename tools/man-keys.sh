#!/bin/sh
# man-keys.sh POLICYC [--check]: the key tables of the man pages, from the tables
# in C.  They stand between ".\" keys: KIND" and ".\" keys: end"; --check changes
# nothing and exits 1 when one is stale.
set -eu

policyc=$1
check=${2:-}
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
stale=0

# One sentence a line and none too long, as mdoc(7) wants text; macro lines stay.
layout() {
	sed '/^[^.]/s/\.  */.\n/g' | while IFS= read -r line; do
		case $line in
		'') ;;
		.*) printf '%s\n' "$line" ;;
		*) printf '%s\n' "$line" | fold -s -w 78 | sed "s/ *$//; s/^[.']/\\\\\\&&/" ;;
		esac
	done
}

render() { # FILE: with the tables filled in
	while IFS= read -r line; do
		case $line in
		'.\" keys: end') inside=0 ;;
		'.\" keys: '*)
			printf '%s\n' "$line"
			"$policyc" keys "${line#'.\" keys: '}" --mdoc | layout
			inside=1
			;;
		esac
		[ "${inside:-0}" = 1 ] || printf '%s\n' "$line"
	done <"$1"
}

for page in docs/man/*.5; do
	render "$page" >"$tmp"
	cmp -s "$tmp" "$page" && continue
	if [ "$check" = --check ]; then
		echo "$page: its table of keys is stale; run tools/man-keys.sh $policyc"
		stale=1
	else
		cat "$tmp" >"$page"
	fi
done
exit $stale
