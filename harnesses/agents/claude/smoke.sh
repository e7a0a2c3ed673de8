#!/bin/sh
# smoke.sh DEST - does the Claude Code in DEST start, and know what the driver says to it?
#
# Needs no key and no network.  Exits 0, or 1 with the reason on stderr.
set -eu

die() {
	printf 'smoke claude: %s\n' "$*" >&2
	exit 1
}

[ $# -eq 1 ] || die 'usage: smoke.sh DEST'
claude=$1/bin/claude
[ -x "$claude" ] || die "$claude is missing: abctl agent install claude"
want=$(cat "$1/VERSION") || die "$1/VERSION is missing: abctl agent install claude"

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
run() {
	HOME=$home CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 timeout 60 "$claude" "$@" </dev/null
}

got=$(run --version) || die "$claude --version failed"
case $got in
"$want "*) ;;
*) die "it says version '$got', installed was $want" ;;
esac

# The flags of drivers/claude_command.c that --help lists (--max-turns works and is not listed).
help=$(run --help) || die "$claude --help failed"
for flag in --print --input-format --output-format --verbose --model --resume --tools --allowedTools \
	--disallowedTools --dangerously-skip-permissions --permission-prompt-tool --settings --mcp-config --strict-mcp-config; do
	case $help in
	*"$flag"*) ;;
	*) die "this version does not know $flag, which the driver uses" ;;
	esac
done
printf 'claude %s starts and knows the flags of its driver\n' "$want"
