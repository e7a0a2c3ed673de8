#!/usr/bin/env bash
# libagentbox as it is installed, and its examples in three languages: a run of hello followed to its end.
. tests/integration/lib.sh

packaging/install.sh "$T/root" /usr "$BIN" || { ok 'it installs' false; finish; }
lib=$T/root/usr/lib
export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib AGENTBOX_SOCKET=$T/sock
flags() { pkg-config --define-variable=prefix="$T/root/usr" --define-variable=libdir="$lib" "$@" libagentbox; }
is 'only its own names are seen' "$(nm -D --defined-only "$lib/libagentbox.so.0" | awk '$2 == "T" { print $3 }' | grep -v '^agentbox_')" ''
is 'also of the archive' "$(nm -g --defined-only "$lib/libagentbox.a" | awk 'NF == 3 { print $3 }' | grep -v '^agentbox_')" ''
is 'the header says all of them' "$(nm -D --defined-only "$lib/libagentbox.so.0" | sed -n 's/.* T \([a-z_]*\)@.*/\1/p' | sort)" \
	"$(grep -oE '\bagentbox_[a-z_]+\(' "$T/root/usr/include/agentbox.h" | tr -d '(' | sort -u)"
is 'and the manual, too' "$(sed -n 's/^\.Fn \(agentbox_[a-z_]*\).*/\1/p' docs/man/libagentbox.3 | sort -u)" \
	"$(grep -oE '\bagentbox_[a-z_]+\(' "$T/root/usr/include/agentbox.h" | tr -d '(' | sort -u)"
# A library with the sanitizers in it wants programs that have them, too.
cc() {
	if sanitized; then command cc -fsanitize=address,undefined "$@"; else command cc "$@"; fi
}
examples=$T/root/usr/share/doc/agentbox/examples/clients
# shellcheck disable=SC2046 # flags are words
ok 'the example in C is built with pkg-config' cc -Wall -Wextra -Werror "$examples/run.c" $(flags --cflags --libs) -o "$T/run"
# shellcheck disable=SC2046
ok 'and with the archive' cc "$examples/run.c" $(flags --cflags) "$lib/libagentbox.a" -lcjson -lssl -lcrypto -o "$T/static"
ok 'the header is C++, too' sh -c "echo '#include <agentbox.h>' | c++ -I'$T/root/usr/include' -Wall -Werror -fsyntax-only -x c++ -"
# shellcheck disable=SC2046
ok 'a test of the rest' cc -Wall -Werror tests/integration/library.c $(flags --cflags --libs) -lpthread -o "$T/library"

mkdir -p "$T/etc/harnesses"
printf -- '---\nbackend: exec\ncommand: [sleep, "1000"]\n---\n' >"$T/etc/harnesses/sleeper.md"
# Speaks, waits, speaks again.
printf -- '---\nbackend: exec\ncommand: [sh, -c, "mkdir -p out; echo one; echo x >out/hello.txt; sleep 3; echo two"]\nartifacts: [out/*]\n---\n' \
	>"$T/etc/harnesses/hello2.md"
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || finish

# check NAME COMMAND...: each event once and in order, the artifact, the result
check() {
	local name=$1
	shift
	timeout 120 "$@" "ex/$name" 'hi there' >"$T/out" 2>"$T/err"
	is "$name: it ends well" "$? $(cat "$T/err")" '0 '
	is "$name: no gap in the events" "$(sed -n 's/.*"seq": *\([0-9]*\).*/\1/p' "$T/out" | xargs)" \
		"$(seq "$(grep -c '"seq"' "$T/out")" | xargs)"
	like "$name: to run.done" "$(grep '"seq"' "$T/out" | tail -n 1)" '"type": ?"run.done"'
	is "$name: the artifact" "$(grep '^Hello' "$T/out")" 'Hello! You said: hi there'
	like "$name: the result" "$(tail -n 1 "$T/out")" '"status": ?"succeeded"'
	AGENTBOX_SOCKET=$T/nobody timeout 60 "$@" ex/none hi >/dev/null 2>"$T/err"
	ok "$name: no daemon is a failure that is told" test $? -ne 0 -a -s "$T/err"
}
check c "$T/run"
check static "$T/static"
check python python3 "$examples/run.py"
check javascript node "$examples/run.mjs"
ok 'refusals, cancelling, a command, threads' "$T/library"

# The supervisor dies while it is followed: the rest comes, nothing twice.
sed 's/"hello"/"hello2"/' "$examples/run.c" >"$T/run2.c"
# shellcheck disable=SC2046
cc "$T/run2.c" $(flags --cflags --libs) -o "$T/run2"
"$T/run2" ex/killed x >"$T/out" 2>"$T/err" &
follower=$!
ok 'a run is followed' wait_for 30 grep -q '"one' "$T/out"
kill -9 "$(child_pid agentbox-supervisor)"
wait "$follower"
is 'its follower ends well though the supervisor was killed' "$? $(cat "$T/err")" '0 '
is 'no gap in the events' "$(sed -n 's/.*"seq": *\([0-9]*\).*/\1/p' "$T/out" | xargs)" \
	"$(seq "$(grep -c '"seq"' "$T/out")" | xargs)"
like 'to run.done' "$(grep '"seq"' "$T/out" | tail -n 1)" '"type":"run.done"'
finish
