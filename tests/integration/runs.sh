# shellcheck shell=bash
# Runs that live while what serves them is replaced, and what their clients and logs must hold at the
# end: sourced after lib.sh by the tests of supervisors and of agentboxd that are killed or renewed.

mkdir -p "$T/etc/harnesses"
: >"$T/etc/agentboxd.yaml"
harness() { # NAME LINE...
	local name=$1
	shift
	printf '%s\n' '---' "$@" '---' >"$T/etc/harnesses/$name.md"
}
script() { # NAME SCRIPT LINE...
	local name=$1 text=$2
	shift 2
	harness "$name" 'backend: exec' "command: [sh, -c, '$text']" "$@"
}
# its prompt is a script
script chatty 'cat >/tmp/s; . /tmp/s' 'artifacts: [out/**]'
script short 'echo on; while :; do sleep 1; done' 'limits: { timeoutMs: 12000 }'
script ends 'echo on; sleep 1; echo off; mkdir out; echo x >out/x' 'artifacts: [out/**]'
LINES=400
chatty() { # PACE: says both streams' lines, each out line in two halves
	cat <<-S
		i=0
		while [ \$i -lt $LINES ]; do
			printf 'out %d ' \$i
			echo "err \$i" >&2
			sleep $1
			printf 'and its end %d\n' \$i
			i=\$((i + 1))
		done
		mkdir -p out && echo kept >out/file
	S
}
want_text=$(for i in $(seq 0 $((LINES - 1))); do echo "out $i and its end $i"; done)
want_errors=$(seq -s, -f 'err %g' 0 $((LINES - 1)))

super() { child_pid agentbox-supervisor; }
# run HARNESS NAME PROMPT: its events go to $T/NAME.out, what abctl says to $T/NAME.err
run() { timeout 120 "$BIN/abctl" --socket "$T/sock" run "$1" -s "u/$2" -p "$3" --json >"$T/$2.out" 2>"$T/$2.err"; }
# begin HARNESS NAME: without a client; $id is the run, which has said something
begin() {
	abctl run "$1" -s "u/$2" -p x --detach --json >"$T/$2.run"
	id=$(json 'l.runId||l.run' <"$T/$2.run")
	wait_for 20 sh -c "$BIN/abctl --socket $T/sock logs $id --json | grep -q agent.message"
}
ended() { abctl show "${1:-$id}" --json | grep -q '"exit"'; }
status() { abctl show "${1:-$id}" --json | json 'l.status||l.result.status'; }
# of run NAME, by what its client got
text() { json 'e.filter(x=>x.type==="agent.message").map(x=>x.text).join("")' <"$T/$1.out"; }
errors() { json 'e.filter(x=>x.type==="agent.raw"&&x.stream==="stderr").map(x=>x.line).join()' <"$T/$1.out"; }
gaps() { json 'e.filter(x=>x.type==="output.gap").length' <"$T/$1.out"; }
seq_ok() { json 'e.every((x,i)=>x.seq===i+1)&&e.filter(x=>x.type==="run.done").length===1&&l.type==="run.done"' <"$T/$1.out"; }
# renew DIR FILE...: in DIR, another inode with the program as it was built
built=$(realpath "$BIN")
renew() {
	local dir=$1 f
	shift
	for f in "$@"; do cp "$built/$f" "$dir/$f.new" && mv "$dir/$f.new" "$dir/$f"; done
}
