# shellcheck shell=sh
# starts.sh - does an agent that was installed start?  Sourced by smoke.sh of agents.
#
#	. "$(dirname "$0")/../starts.sh"
#	starts DEST PROGRAM [ARGUMENT...]	exits 0, or 1 with the reason on stderr

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

# starts DEST PROGRAM [ARGUMENT...]: does it start, and is it the version that was installed?
starts() {
	[ -x "$2" ] || die "$2 is missing: abctl agent install $agent"
	[ "$(cat "$1/VERSION" 2>/dev/null)" = "$version" ] || die "$1 has another version: abctl agent install $agent"
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
