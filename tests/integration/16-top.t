#!/usr/bin/env bash
# abctl top: one look as a table and as JSON, and live at a terminal with keys.
. tests/integration/lib.sh

start_daemon || exit 1
ok 'a run' abctl run hello -s ann/one -p hi
abctl jail -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 100' >/dev/null 2>&1 &
busy=$!
jails() { [ "$(abctl ps --json | grep -o '"jail":' | wc -l)" = "$1" ]; }
ok 'a jail' wait_for 10 jails 1
number=$(abctl ps --json | grep -o '"jail":[0-9]*')
abctl jail -- sleep 100 >/dev/null 2>&1 &
idle=$!
worked() { abctl top --once --json | grep -qE '"cpuMs":[1-9][0-9]'; }
ok 'two jails' wait_for 10 jails 2
ok 'one of which works' wait_for 10 worked
look=$(abctl top --once)
like 'a head' "$look" '^0 running, 0 queued, 0 users, 2 jails, .*load [0-9]'
like 'a table' "$look" '^RUN +STATUS +HARNESS +USER +AGE +CPU +CPU% +MEMORY +PIDS +IO +EGRESS'
json=$(abctl top --json --sort cpu)
is 'JSON has both' "$(grep -o '"cpuMs"' <<<"${json#*\"runs\":[\{}" | wc -l)" 2
first() { abctl top --json --sort "$1" | sed 's/.*"runs":\[{/{/' | grep -o '"jail":[0-9]*' | head -n 1; }
is 'the busiest first' "$(first cpu)" "$number"
is 'or the oldest' "$(first age)" "$number"
abctl top --sort size 2>"$T/err"
is 'what is no key is usage' $? 100
like 'and said' "$(cat "$T/err")" '--sort: age, cpu'
abctl top --interval 1 2>"$T/err"
is 'so is no interval' $? 100

command -v script >/dev/null || skip_all 'no script(1)'
mkfifo "$T/keys"
TERM=xterm script -qec "stty cols 200 rows 30; $BIN/abctl --socket $T/sock top --interval 50; echo code=\$?; stty -a" /dev/null \
	<"$T/keys" >"$T/screen" 2>&1 &
terminal=$!
exec 3>"$T/keys"
ok 'live' wait_for 10 grep -q 'by cpu' "$T/screen"
percent() { tr '\r' '\n' <"$T/screen" | grep -qE 'command +- +- +[0-9.]+ m?s +[0-9.]+ m?s +[0-9]+ '; }
ok 'percent of a processor since the look before' wait_for 10 percent
printf m >&3
ok 'a key sorts' wait_for 10 grep -q 'by memory' "$T/screen"
old=$(child_pid agentbox-supervisor)
kill -KILL "$old"
ok 'a supervisor that ends' wait_for 20 other_child agentbox-supervisor "$old"
printf a >&3
ok 'does not end it' wait_for 20 grep -q 'by age' "$T/screen"
printf q >&3
ok 'q does' wait_for 10 grep -q 'code=0' "$T/screen"
exec 3>&-
wait "$terminal"
like 'and the terminal is as it was' "$(tail -n 12 "$T/screen")" ' icanon .* echo '
ok 'as is the screen' grep -q $'\x1b\[?1049l' "$T/screen"
kill "$busy" "$idle" 2>/dev/null
wait "$busy" "$idle" 2>/dev/null
finish
