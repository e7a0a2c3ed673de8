# shellcheck shell=bash
# A receiver of webhooks in a test, and the configuration that names it: sourced after runs.sh.

R=$T/receiver
PORT=''
RECEIVER=''
mkdir -p "$R" "$T/agents" "$T/libexec"
cp "$BIN"/agentbox-* "$T/libexec/"
# The key of receiver.py.
HOOK_KEY=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# receiver [CERT KEY]: it listens
receiver() {
	python3 tests/integration/receiver.py "$PORT" "$R" "$@" 2>>"$T/receiver.err" &
	RECEIVER=$!
	wait_for 20 bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT" # which sh need not know
}
receiver_stop() {
	[ -z "$RECEIVER" ] || kill -9 "$RECEIVER" 2>/dev/null
	wait "$RECEIVER" 2>/dev/null
	RECEIVER=''
}
trap 'receiver_stop; _at_exit' EXIT
receiver_mode() { printf '%s' "$1" >"$R/mode"; }
# got EXPRESSION: of the requests so far (e), the last (l)
got() { json "$1" <"$R/got"; }
forget() { : >"$R/got"; }
told() { wait_for 20 sh -c "test \$(wc -l <$R/got) -ge $1"; }
hooks() { abctl webhook ls --json | json "$1"; }
pending() { [ "$(hooks 'l.webhooks.reduce((n,h)=>n+h.pending,0)')" = "$1" ]; }
# hook NAME LINE...: root's only one
hook() {
	local name=$1
	shift
	{
		echo 'webhooks:'
		printf '  %s\n' "- name: $name" "  url: 'http://127.0.0.1:$PORT/hook'" '  secret: HOOK_KEY' '  addresses: [127.0.0.1]'
		[ $# = 0 ] || printf '    %s\n' "$@"
	} >"$T/etc/agentboxd.yaml"
}
up_daemon() {
	HOOK_KEY=$HOOK_KEY start_daemon --libexec "$T/libexec" --config "$T/etc/agentboxd.yaml" --agents "$T/agents" "$@"
}
forget
