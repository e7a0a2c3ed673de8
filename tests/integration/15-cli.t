#!/usr/bin/env bash
# abctl by itself: help, usage, completion, what works without a daemon; then lists and a terminal.
. tests/integration/lib.sh

abctl >"$T/out" 2>"$T/err"
is 'no verb is usage' $? 100
like 'and shows the verbs' "$(cat "$T/out")" '^  jail +run one command'
abctl rnu 2>"$T/err"
is 'an unknown verb is usage' $? 100
is 'with the one that may be meant' "$(cat "$T/err")" "abctl: usage: unknown verb 'rnu' (did you mean 'run'?)"
abctl run hello --promt x 2>"$T/err"
is 'an unknown option is usage' $? 100
like 'with the one that may be meant' "$(tail -n 1 "$T/err")" "^abctl: usage: .*did you mean '--prompt'"
verbs=$(abctl help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for verb in run jail exec ps runs show logs cancel artifacts sessions session harness agent policy doctor stats \
	metrics version reload completion help; do
	ok "$verb is listed" grep -qx "$verb" <<<"$verbs"
	is "abctl $verb --help is abctl help $verb" "$(abctl "$verb" --help)" "$(abctl help "$verb")"
	ok "$verb is in abctl(1)" grep -qE "^\.It Cm $verb( |\$)" docs/man/abctl.1
done
manual() { awk -v verb="$1" '/^\.Bl/ { depth++ } /^\.El/ { depth-- } /^\.It Cm / && depth == 1 { on = $3 == verb } on' docs/man/abctl.1; }
undocumented() { # what `abctl help` has, and the manual not
	local verb letter option
	for verb in $verbs; do
		manual "$verb" >"$T/manual"
		[ -s "$T/manual" ] || echo "$verb"
		abctl help "$verb" | sed -n 's/^  -\(.\), --\([a-z-]*\).*/\1 \2/p; s/^      --\([a-z-]*\).*/- \1/p' |
			while read -r letter option; do
				grep -qE "Fl ($letter( |\$)|(Fl |-)$option( |\$))" "$T/manual" || echo "$verb --$option"
			done
	done
}
is 'every option of every verb is in abctl(1)' "$(undocumented)" ''
abctl ps 2>"$T/err"
is 'no daemon: the system' $? 111
like 'and how to start one' "$(tail -n 1 "$T/err")" '^abctl: system: no daemon answers.*agentboxd --state'

# completion: the words bash would offer
complete_words() {
	bash -c '. <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _abctl
		printf "%s\n" "${COMPREPLY[@]}"' _ "$BIN/abctl" "$@"
}
is 'completes a verb' "$(complete_words abctl sess | tr '\n' ' ')" 'sessions session '
is 'completes an option' "$(complete_words abctl run --pr | tr '\n' ' ')" '--prompt --priority '
is 'completes a second word' "$(complete_words abctl --json policy e)" explain
is 'and what all verbs have' "$(complete_words abctl ps --k)" --key-file
# What fish would offer, and with which words about it.
abctl completion fish >"$T/abctl.fish"
abctl completion zsh >"$T/abctl.zsh"
fish_words() {
	HOME=$T fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$T/abctl.fish" "$1"
}
# What stands in a line of zsh after each TAB (\t), as a terminal has it.
zsh_words() {
	HOME=$T timeout 60 zsh -f -c '
		zmodload zsh/zpty
		zpty shell zsh -f -i
		say() { zpty -w shell "$1" }
		say "cd $HOME; autoload -Uz compinit; compinit -u -D; source $HOME/abctl.zsh; setopt no_beep"
		say "line() { print -r -- \$BUFFER >line; BUFFER= }; zle -N line; bindkey \"^X\" line; print -r -- re\"\"ady"
		zpty -r -m shell seen "*ready*"
		zpty -w -n shell "$1"$(print "\C-x")
		while [[ ! -s $HOME/line ]] { zpty -r -t shell seen; sleep 0.05 }
		zpty -d shell' _ "$1" </dev/null
	cat "$T/line"
	rm "$T/line"
}
if command -v fish >/dev/null; then
	is 'fish: verbs, with what they do' "$(fish_words 'abctl reloa')" "$(printf 'reload\tread policies and configuration again, use new binaries')"
	is 'an option of a verb' "$(fish_words 'abctl --socket x run --det')" "$(printf -- "--detach\tprint the run's id and return at once")"
	is 'second words' "$(fish_words 'abctl snapshot ' | cut -f1 | xargs)" 'create ls rm show'
	is 'and no third' "$(cd "$T" && touch 'some file' && fish_words 'abctl policy show so')" 'some file'
else
	ok 'needs fish' false
fi
if command -v zsh >/dev/null; then
	is 'zsh: a verb' "$(zsh_words $'abctl reloa\t')" 'abctl reload '
	is 'an option of a verb' "$(zsh_words $'abctl --socket x run --det\t')" 'abctl --socket x run --detach '
	is 'a second word, and a file' "$(echo x >"$T/plain.yaml" && zsh_words $'abctl policy li\tpla\t')" 'abctl policy lint plain.yaml '
	is 'no function of it is wrong' "$(HOME=$T zsh -f -c 'autoload -Uz compinit; compinit -u -D; source $0; print ${+_comps[abctl]}' "$T/abctl.zsh" 2>&1)" 1
else
	ok 'needs zsh' false
fi

# files, without a daemon
printf -- '---\nname: x\nbackend: exec\ncomand: [true]\n---\n' >"$T/bad.md"
ok 'harness lint refuses' not abctl harness lint "$T/bad.md"
printf -- '---\nbackend: exec\ncommand: [x]\nverify: { required: "\\e]0;t\\a\\u009b\\n" }\n---\n' >"$T/steers.md"
is 'what it says steers no terminal' "$(abctl harness lint "$T/steers.md" 2>&1)" \
	"$T/steers.md:4: 'required': '^[]0;t^G<U+009B> ' is neither true nor false"
is 'with the place as JSON' "$(printf -- '---\nbackend: exec\ncomand: [x]\n---\n' >"$T/key.md"
	abctl --json harness lint "$T/key.md" | json 'l.ok+" "+l.messages[0].level+" "+l.messages[0].line')" 'false error 3'
is 'and exits as without' "$(abctl --json harness lint "$T/key.md" >"$T/out"; echo $?)" 1
is 'a good one as JSON' "$(abctl --json harness lint harnesses/hello.md)" '{"ok":true,"messages":[]}'
like 'policy explain' "$(abctl policy explain default --syscall ptrace)" 'EPERM'
like 'as JSON' "$(abctl policy explain default --syscall ptrace --json | json 'l.answer')" 'EPERM'
like 'a whole policy as JSON' "$(abctl policy explain default --json | json 'l.yaml')" '^ *memory: 4G'
usage() {
	local what=$1 text=$2
	shift 2
	abctl "$@" >"$T/out" 2>"$T/err"
	is "$what is usage" $? 100
	like 'and is said' "$(tail -n 1 "$T/err")" "^abctl: usage: .*$text"
	ok 'and nothing else' not test -s "$T/out"
}
usage 'a policy that is not there' "no policy 'none'" policy explain none
usage 'also as JSON' "no policy 'none'" policy explain none --json
usage 'a policy file that is not there' 'none.yaml: No such file' policy explain "$T/none.yaml"
usage 'an unknown system call' "no system call 'mout'" policy explain default --syscall mout
usage 'a number of none' '99999' policy explain default --syscall 99999
like 'one that only the kernel knows is refused' "$(abctl policy explain default --syscall 1000)" 'ENOSYS'
usage 'a place that is no host' 'HOST\[:PORT\]' policy explain default --host nowhere:99999
usage 'a slip in a name of a call' "did you mean 'mount'" policy explain default syscall muont
usage 'in the word that says what is asked' "did you mean 'syscall'" policy explain default sycall mount
usage 'a question without its word' "'path' needs PATH" policy explain default path
usage 'in the name of a policy' "did you mean 'default'" policy explain defualt
usage 'an argument that is no number' "argument 'x' of socket" policy explain default syscall socket x
usage 'a path that is none' "not an absolute, normalised path" policy explain default path ../etc
usage 'a verb for a path that is none' "'exec' is neither" policy explain default path /usr exec
usage 'more words than a path takes' "'write' is one word too many" policy explain default path /usr read write
usage 'a host that is none' "'a b' is neither a host name nor an address" policy explain default host 'a b'
usage 'nor half an address' "'1.2.3' is neither" policy explain default --host 1.2.3:80
usage 'more words than a host takes' "'b' is one word too many" policy explain default host a b
usage 'a limit given twice' "--limit 'memory' is given twice: 'memory=1G' and 'memory=2G'" jail --limit memory=1G --limit pids=9 --limit memory=2G -- true
usage 'a variable given twice' "--env 'A' is given twice" jail -e A=1 -e AB=2 -e A=1 -- true
usage 'a second word that is mistyped' "unknown 'harness lnit' .did you mean 'lint'" harness lnit x
usage 'with all that there are' "did you mean 'test'.*: abctl webhook .ls" webhook list
usage 'or another' "unknown 'session wipe': abctl session .show" session wipe u/g
usage 'a name that is empty' 'the first argument is empty: abctl show RUN' show ''
usage 'an id that is empty' 'the permission is empty' approve run_01jd0000000000000000000000 ''
usage 'a parameter given twice' "--param 'k' is given twice" run hello -s u/g -p x --param k=1 --param k=2
usage 'a limit that is no pair' "--limit takes K=V, not 'memory'" jail --limit memory -- true
may() { abctl policy explain default "$@" 2>&1 | tr '\n' ';'; }
like 'may I mount: the errno' "$(may syscall mount)" '^mount \([0-9]+\): EPERM \(Operation not permitted\);.*decided by the table'
like 'by number' "$(may syscall 999)" '^999: ENOSYS'
like 'without arguments it depends' "$(may syscall socket)" ': it depends: .*by argument: \[0='
like 'with them it is decided, by a rule' "$(may syscall socket 2 1 6)" ': allow: .*rule 2 of 6 holds: \[0=0x2\|0xa, 1&0xf=0x1, 2=0x0\|0x6\] allow'
like 'or by none' "$(may syscall socket 16 3 6)" ': EAFNOSUPPORT .*none of its 6 rules holds'
like 'the high half counts as little as for the kernel' "$(may syscall socket 0x100000010 3 6)" ': EAFNOSUPPORT '
like 'what was not given is said' "$(may syscall clone 0x10000000)" ': EPERM '
like 'and what counts as 0' "$(may syscall socket 2)" 'not given count as 0'
like 'a host of the policy' "$(may host anthropic.agentbox)" '^anthropic.agentbox: allowed on port 80;.*default.yaml:[0-9]+: egress.inject'
like 'on another port' "$(may host anthropic.agentbox:443)" 'denied: .*port 80 alone'
like 'a slip in its name' "$(may host antropic.agentbox:80)" "denied: .*did you mean 'anthropic.agentbox'"
like 'any other name' "$(may host example.com)" 'denied: .*REFUSED'
like 'an address' "$(may host 1.2.3.4:22)" 'denied: .*reset at once'
like 'its own lo' "$(may host localhost:3000)" 'allowed;.*own lo'
like 'a path to write' "$(may path /usr/bin/x write)" '^/usr/bin/x: write: denied: EROFS'
like 'to read' "$(may path /usr/bin/x read)" ': read: allowed'
like 'one that is not there' "$(may path /root/x read)" ': read: denied: ENOENT'
like 'a directory on the way' "$(may path /home read)" ': read: allowed'
like 'the workspace' "$(may path /workspace/x write)" ': write: allowed'
like 'a mount of the policy' "$(printf 'filesystem: { mounts: [ { source: /srv/data, target: /data } ] }\n' >"$T/mount.yaml"
	abctl policy explain "$T/mount.yaml" path /data/x write | tr '\n' ';')" 'denied: EROFS .*;  read-only, /srv/data of the host;  decided by .*mount.yaml:1: filesystem.mounts'
usage 'a harness file that is not there' 'none.md: No such file' harness lint "$T/none.md"
usage 'also as JSON' 'none.md: No such file' harness lint "$T/none.md" --json
usage 'a policy file that is not there' 'none.yaml: No such file' policy lint "$T/none.yaml"
usage 'a directory' 'Is a directory' policy lint "$T"
like 'with what is wrong in the others' "$(abctl harness lint --json "$T/none.md" "$T/key.md" 2>/dev/null)" '"line": ?3'
is 'also that it is nothing' "$(abctl harness lint --json "$T/none.md" harnesses/hello.md 2>/dev/null)" '{"ok":false,"messages":[]}'
is 'a file without end' "$(abctl harness lint /dev/zero)" '/dev/zero: larger than 1024 KiB'
abctl harness lint "$T/none.md" "$T/key.md" >"$T/out" 2>"$T/err"
is 'one of two that is not there' $? 100
like 'and the fault of the other' "$(cat "$T/out")" 'key\.md:3: '
lint() { # KIND LINE...: exit code and what is said of a file of these lines
	local kind=$1 file=$T/linted.${2##*.}
	shift
	printf '%s\n' "${@:2}" >"$file"
	abctl "$kind" lint "$file" 2>&1
	echo "exit $?"
}
harness() { lint harness .md --- 'backend: exec' 'command: [x]' "$@" ---; }
like 'a harness wider than the policy it names' "$(harness 'policy: strict' 'limits: { memory: 100G }' | tr '\n' ' ')" 'policy strict: limit memory: .*exit 1 $'
like 'one that names none is told' "$(harness 'narrow: { limits: { memory: 100G } }' | tr '\n' ' ')" '^note: .*under policy default it would be refused: limit memory.*exit 0 $'
like 'one whose policy is not here' "$(harness 'policy: elsewhere' | tr '\n' ' ')" "^note: .*not compared with its policy: no policy 'elsewhere'.*exit 0 $"
is 'one within its policy' "$(harness 'policy: strict' 'limits: { memory: 64M }')" 'exit 0'
image() { lint policy .yaml "filesystem: { root: image, image: $1 }" "${@:2}" | tr '\n' ' '; }
mkdir -p "$T/img/usr" "$T/hollow"
: >"$T/file"
ln -s / "$T/hostroot"
is 'an image' "$(image "$T/img")" 'exit 0 '
like 'one to install packages in lacks parts' "$(image "$T/img" 'inner_root: packages')" 'img has no /etc: .*exit 1 $'
mkdir "$T/img/etc" "$T/img/var"
is 'and has them' "$(image "$T/img" 'inner_root: packages')" 'exit 0 '
like 'a directory that is no image' "$(image "$T/hollow")" 'hollow has no /usr: it is no root file system exit 1 $'
like 'a file' "$(image "$T/file")" 'file is no directory exit 1 $'
like "the host's own root" "$(image /)" "linted.yaml:1: filesystem.image: / is the host's own root, not an image exit 1 $"
like 'under another name' "$(image "$T/hostroot")" "is the host's own root exit 1 $"
chmod 777 "$T/img"
like "one that is not root's alone" "$(image "$T/img")" "is not root's alone; remedy: .*exit 1 $"
like 'one that is not here yet' "$(image "$T/later")" '^note: .*later: No such file.*exit 0 $'
rule() { lint policy .yaml "egress: { allow: [{ addresses: [\"$1\"], protocol: raw, ports: [5432] }] }" | tr '\n' ' '; }
is 'a private network' "$(rule 10.0.0.0/8)" 'exit 0 '
like 'one that is wider than what it opens' "$(rule 0.0.0.0/0)" "^note: .*'0.0.0.0/0' is wider than what it opens: .* 0.0.0.0/8 .*exit 0 $"
like 'one with a metadata service in its midst' "$(rule 169.254.0.0/16)" '^note: .*as 169.254.169.0/24 .metadata services.*exit 0 $'
printf 'limits: { memroy: 1G }\n' >"$T/fault.yaml"
is 'a policy with a fault is not usage' "$(abctl policy explain "$T/fault.yaml" >"$T/out" 2>&1; echo $?)" 1
ok 'the key tables of the man pages are fresh' tools/man-keys.sh "$BIN/agentbox-policyc" --check
ok 'the example policy is a policy' abctl policy lint packaging/examples/policy-team.yaml

# shellcheck disable=SC2119 # it needs no arguments here
start_daemon || { echo "not ok $((count + 1)) - start"; echo "1..$((count + 1))"; exit 1; }
like 'version of both' "$(abctl version | tr '\n' ' ')" '^abctl [0-9.]+ agentboxd [0-9.]+, since [0-9-]+T[0-9:.]+Z agentbox-supervisor [0-9.]+ $'
abctl run hello -s 'ann/a goal' -p 'good morning' >"$T/out" 2>"$T/err"
is 'a run' $? 0
like 'as plain text' "$(cat "$T/out")" '^Hello! You said: good morning$'
like 'with a summary' "$(cat "$T/out")" '^succeeded, '
like 'and its artifact' "$(cat "$T/out")" '^  out/hello\.txt  [0-9]+ B$'
ok 'without a single escape' not grep -q "$(printf '\033')" "$T/out"
run=$(abctl runs --json | json 'l.runs[0].runId')
is 'one list for the session' "$(abctl runs -s 'ann/a goal' | wc -l)" 2
is 'none for another' "$(abctl runs -s ann/other | wc -l)" 1
is 'an artifact into a file' "$(abctl artifacts "$run" get out/hello.txt -o "$T/hello" && cat "$T/hello")" 'Hello! You said: good morning'
ok 'no partial file is left' not test -e "$T/hello.part"
abctl artifacts "$run" get no/such -o "$T/none" 2>"$T/err"
is 'one that is not there' $? 100
ok 'leaves no file' not test -e "$T/none"
is 'a session by its names' "$(abctl exec 'ann/a goal' -- cat out/hello.txt 2>/dev/null)" 'Hello! You said: good morning'
is 'stdin from a file of zeroes' "$(head -c 5000000 /dev/zero >"$T/z"; abctl jail -- wc -c <"$T/z" 2>/dev/null)" 5000000
abctl jail -- yes 2>/dev/null | head -n 1 >"$T/out"
is 'a closed stdout ends the command' "${PIPESTATUS[0]}" 141
"$BIN/abctl" --socket "$T/sock" jail -- sh -c 'trap "exit 42" TERM; echo ready; while :; do sleep 0.1; done' >"$T/out" 2>/dev/null &
pid=$!
wait_for 10 grep -q ready "$T/out"
kill -TERM $pid
wait $pid
is 'a signal is the command'\''s' $? 42
if command -v script >/dev/null; then
	TERM=xterm LC_ALL=C.UTF-8 script -qec "$BIN/abctl --socket $T/sock run hello -s ann/tty -p hi" /dev/null \
		</dev/null >"$T/tty" 2>&1
	like 'colours on a terminal' "$(cat -v "$T/tty")" '\[32m'
	TERM=xterm NO_COLOR=1 script -qec "$BIN/abctl --socket $T/sock run hello -s ann/tty -p hi" /dev/null \
		</dev/null >"$T/tty" 2>&1
	ok 'none with NO_COLOR' not grep -qF "$(printf '\033[32m')" "$T/tty"
fi
evil=$(printf '\033]0;owned\007')
abctl run hello -s ann/evil -p "$evil" >"$T/out" 2>&1
ok 'an escape of the agent does not reach the terminal' not grep -qF "$(printf '\033')" "$T/out"
like 'but is shown' "$(cat "$T/out")" '\^\[\]0;owned\^G'
# a daemon that dies with the request in its hands: the next one gets it, too
python3 - "$T/dying" >"$T/keys" <<'PY' &
import json, re, socket, sys
l = socket.socket(socket.AF_UNIX)
l.bind(sys.argv[1])
l.listen(8)
for n in range(3):
    c, _ = l.accept()
    got = b""
    while b"\r\n\r\n" not in got or len(got.split(b"\r\n\r\n", 1)[1]) < int(re.search(rb"Content-Length: (\d+)", got)[1]):
        got += c.recv(65536)
    print(json.loads(got.split(b"\r\n\r\n", 1)[1])["idempotencyKey"], flush=True)
    if n == 2:
        body = b'{"runId":"run_01jd0000000000000000000000","sessionId":"ses_01jd0000000000000000000000","status":"queued"}'
        c.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    c.close()
PY
wait_for 10 test -S "$T/dying"
is 'a run that is asked for is asked for again' "$(timeout 20 "$BIN/abctl" --socket "$T/dying" run hello -s u/g -p x --detach 2>&1 | grep -o 'run_01jd0*')" run_01jd0000000000000000000000
is 'with the same key' "$(wc -l <"$T/keys") $(sort -u "$T/keys" | wc -l)" '3 1'
finish
