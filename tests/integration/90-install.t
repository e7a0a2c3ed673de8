#!/usr/bin/env bash
# make install: the files and their modes, under a strict umask as well; then the daemon from where it was put.
. tests/integration/lib.sh

want=tests/fixtures/install.manifest
made() { (cd "$1" && find . -mindepth 1 -printf '%m %y %P\n' | LC_ALL=C sort -k 3); }
(
	umask 077
	mkdir "$T/root"
	chmod 755 "$T/root"
	packaging/install.sh "$T/root" /usr "$BIN"
) >"$T/out" 2>&1
is 'it installs' $? 0
ok 'and says nothing' test ! -s "$T/out"
is 'just these files with these modes' "$(made "$T/root" | diff "$want" -)" ''
packaging/install.sh "$T/root" /usr "$BIN"
is 'again over itself: the same' "$(made "$T/root" | diff "$want" -)" ''
packaging/install.sh "$T/opt" /opt/agentbox "$BIN"
ok 'under another prefix' test -x "$T/opt/opt/agentbox/sbin/agentboxd"
ok 'the unit names it' grep -qx 'ExecStart=/opt/agentbox/sbin/agentboxd' "$T/opt/usr/local/lib/systemd/system/agentboxd.service"
is 'no place is left open' "$(grep -rlI '@[A-Z]*@' "$T/root" "$T/opt")" ''

for script in "$T"/root/usr/share/doc/agentbox/examples/openrc/agentboxd \
	"$T"/root/usr/share/doc/agentbox/examples/runit/agentboxd/run "$T"/root/usr/share/doc/agentbox/examples/runit/agentboxd/log/run \
	"$T"/root/usr/share/doc/agentbox/examples/run-agentboxd.sh \
	"$T"/root/usr/share/agentbox/harnesses/agents/*/*.sh; do
	ok "${script##*/} is a shell script" sh -n "$script"
done
if command -v systemd-analyze >/dev/null; then
	# The program is looked for where the unit will run: here.
	units=$T/root/usr/lib/systemd/system
	sed -i "s|=/usr/sbin/agentboxd|=$T/root/usr/sbin/agentboxd|" "$units/agentboxd.service"
	out=$(systemd-analyze verify --man=no "$units/agentboxd.service" "$units/agentboxd.socket" 2>&1)
	is 'systemd understands the units' "$out" ''
else # not in tools/deps.sh: a host with another init must not get it for a test
	count=$((count + 1))
	echo "ok $count - systemd understands the units # SKIP this host has no systemd"
fi
# The sources of the names' ids are base/ids.h and the file for systemd-sysusers.
for name in supervisor egress policyc; do
	id=$(sed -n "s/^user agentbox-$name \([0-9]*\)\$/\1/p" packaging/system.sh)
	ok "agentbox-$name has one id" grep -qE "^u agentbox-$name +$id " packaging/systemd/agentbox.sysusers.conf
done

# A program finds its tree from where it lies, not from the name it was called by.
mkdir "$T/bin"
ln -s "$T/root/usr/sbin/agentboxd" "$T/root/usr/bin/abctl" "$T/bin/"
BIN=$T/bin
start_daemon || finish
ok 'installed, it finds its programs and harnesses' abctl run hello -s u/g -p hi
ok 'and the agent files' abctl harness show hello-claude
is 'a jail' "$(abctl jail -- echo hi 2>/dev/null)" hi
finish
