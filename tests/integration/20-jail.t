#!/usr/bin/env bash
# One command in a fresh jail: codes, signals, bytes, and what it sees.
. tests/integration/lib.sh

start_daemon || { echo "not ok 1 - start"; echo 1..1; exit 1; }
jail() { abctl jail "$@" 2>"$T/err"; }

jail -- sh -c 'exit 7'
is 'exit 7 is passed on' $? 7
jail -- sh -c 'kill -9 $$'
is 'a signal becomes 128+N' $? 137
is 'stdin is passed' "$(echo hello | jail -- cat)" hello
is 'an empty stdin ends' "$(jail -- cat </dev/null)" ''
is '100 MB of stdout arrive whole' "$(jail -- head -c 104857600 /dev/zero | sha256sum)" "$(head -c 104857600 /dev/zero | sha256sum)"
is '20 MB through stdin and back' "$(head -c 20971520 /dev/urandom | tee "$T/in" | jail -- cat | sha256sum)" "$(sha256sum <"$T/in")"
is 'stderr is apart' "$(abctl jail -- sh -c 'echo out; echo err >&2' 2>/dev/null)" out
like 'and arrives' "$(abctl jail -- sh -c 'echo err >&2' 2>&1 >/dev/null)" '^err$'
is 'environment as given' "$(jail --env A=1 --env 'B=two words' -- sh -c 'echo $A-$B')" '1-two words'
is 'working directory' "$(jail -- pwd)" /workspace
is 'another one' "$(jail --cwd /tmp -- pwd)" /tmp
is 'a path without a slash is looked up' "$(jail -- true; echo $?)" 0
jail -- /nonexistent
is 'a command that is not there' $? 127
like 'is said' "$(cat "$T/err")" 'nonexistent'
jail --cwd /nonexistent -- true
is 'a working directory that is not there' $? 126
like 'is blamed, not the command' "$(tail -n 1 "$T/err")" 'true was not started: working directory: No such file'
is 'uid 1000, one group' "$(jail -- sh -c 'id -u; id -G')" "$(printf '1000\n1000')"
like 'missing layers are said on the first line' "$(abctl jail -- true 2>&1 | head -n 1)" 'limit\.|^$'
jail --tty -- true </dev/null
is 'a pty is a terminal' "$(jail --tty -- tty </dev/null | tr -d '\r')" /dev/pts/0
is 'without one it is not' "$(jail -- tty)" 'not a tty'

# what a program in a jail sees
status=$(jail -- cat /proc/self/status)
is 'no capability in any set' "$(grep -c '^Cap.*0000000000000000' <<<"$status")" 5
like 'a filter' "$status" '^Seccomp:.2'
like 'no_new_privs' "$status" '^NoNewPrivs:.1'
map=$(jail -- cat /proc/self/uid_map)
ok 'the uid map starts above 0' test "$(awk '{print $2}' <<<"$map")" -gt 100000
abctl jail -- sh -c 'cat /proc/self/uid_map; sleep 2' >"$T/map1" 2>/dev/null &
abctl jail -- sh -c 'cat /proc/self/uid_map; sleep 2' >"$T/map2" 2>/dev/null &
wait %2 %3
ok 'and differs between two jails' not cmp -s "$T/map1" "$T/map2"
is 'only lo' "$(jail -- sh -c 'ls /proc/sys/net/ipv4/conf | tr "\n" " "; awk "NR>2{print \$1}" /proc/net/dev')" "$(printf 'all default lo lo:')"
is 'no route out' "$(jail -- sh -c 'tail -n +2 /proc/net/route | wc -l')" 0
is 'no process but its own (the shell, ls, grep)' "$(jail -- sh -c 'ls /proc | grep -c "^[0-9]"')" 3
is 'three descriptors' "$(jail -- sh -c 'ls /proc/self/fd | tr "\n" " "')" '0 1 2 3 '
like 'stdout is a pipe' "$(jail -- readlink /proc/self/fd/1)" '^pipe:'
is 'nothing shared with the host in propagation' "$(jail -- grep -cE 'shared:|master:' /proc/self/mountinfo)" 0
is 'no state path in mountinfo' "$(jail -- grep -c "$T" /proc/self/mountinfo)" 0
jail -- touch /x
ok 'the root is read-only' test -n "$(grep -i 'read-only' "$T/err")"
is 'no /etc/shadow' "$(jail -- sh -c 'cat /etc/shadow 2>/dev/null; ls /etc/shadow 2>/dev/null')" ''
is '/sys is empty' "$(jail -- sh -c 'ls /sys | wc -l')" 0
is 'the kernel image is masked' "$(jail -- sh -c 'head -c 1 /proc/kcore 2>/dev/null | wc -c')" 0
is 'sysctls cannot be written' "$(jail -- sh -c 'echo 1 2>/dev/null >/proc/sys/vm/drop_caches; echo $?' 2>/dev/null | tail -n 1)" 2
is 'PID 1 is out of reach' "$(jail -- sh -c 'kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; ls /proc/1 2>/dev/null; echo alive')" alive
is 'host name' "$(jail -- uname -n)" jail
is 'no setuid' "$(jail -- sh -c 'cp /usr/bin/id /tmp/i; chmod u+s /tmp/i; /tmp/i -u')" 1000
is 'cgroup namespace' "$(jail -- cat /proc/self/cgroup | grep '^0:')" '0::/'
is 'as inner root no capability either' "$(jail --user root -- sh -c 'id -u; grep -c "^Cap.*0000000000000000" /proc/self/status')" "$(printf '0\n5')"
is 'a daemon left behind does not live on' "$(jail -- sh -c 'setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo gone')" gone
ok 'no process of a jail is left' wait_for 5 no_jail_processes

# node and python work
is 'node runs' "$(jail -- sh -c 'command -v node >/dev/null && node -e "console.log(6*7)" || echo 42')" 42
is 'python runs' "$(jail -- sh -c 'command -v python3 >/dev/null && python3 -c "print(6*7)" || echo 42')" 42
is 'git works' "$(jail -- sh -c 'git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l')" 1

is 'nor the locks, disks and boot line of the host' "$(jail -- sh -c 'cat /proc/locks /proc/diskstats /proc/cmdline | wc -c')" 0
is 'without a stdin' "$(timeout 20 "$BIN/abctl" --socket "$T/sock" jail -- sh -c 'cat | wc -c' <&- 2>/dev/null)" 0
timeout 20 "$BIN/abctl" --socket "$T/sock" jail -- sh -c 'exit 5' >&- 2>/dev/null
is 'without a stdout' $? 5
not_asked=$(abctl jail -- true 2>&1 | grep -c 'limit\.disk')
is 'a limit that the policy does not set is not said to be missing' "$not_asked" 0

# usage
abctl jail 2>"$T/err"
is 'no command: usage' $? 100
like 'says so on the last line' "$(tail -n 1 "$T/err")" '^abctl: usage: '
abctl jail --policy nosuch -- true 2>"$T/err"
ok 'an unknown policy is refused' test $? -ge 100
like 'by name' "$(cat "$T/err")" 'nosuch'
# docs/ISOLATION.md names a test and the words of a check for each measure and each attempt by network
is 'what is said to show a measure is there' "$(perl -ne '
	next unless /^\| (N?\d+) \|/;
	my $id = $1;
	next unless /\|([^|]*)\|$/;
	for (grep { /\S/ } split /; /, $1) {
		my ($file, $words) = /^ *`?([\w-]+)`?(?:: \*(.*)\*)? *$/ or do { print "$id: $_\n" if $id =~ /N/; next };
		my ($path) = grep { -f } "tests/integration/$file.t", "tests/unit/$file.c", "tests/escape/$file.c";
		if (!$path) { print "$file\n"; next }
		open my $in, "<", $path;
		local $/;
		my $text = <$in>;
		# a row of the attempts has the same id
		$words = "\"$id\"" if $id =~ /N/ && $path =~ /escape/ && !defined $words;
		print "$file: $words\n" if defined $words && index($text, $words) < 0;
	}' docs/ISOLATION.md)" ''
is 'and there are eighty' "$(grep -cE '^\| [0-9]+ \|' docs/ISOLATION.md)" 80
finish
