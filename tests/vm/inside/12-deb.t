#!/usr/bin/env bash
# The Debian package under systemd: installed, it serves; upgraded under a run, stopped and hung, removed, purged.
. tests/integration/lib.sh
. tests/integration/deb.sh

[ -d /run/systemd/system ] || skip_all 'systemd is not PID 1'
version=$(sed -n 's/^#define AGENTBOX_VERSION "\(.*\)"/\1/p' base/version.h)
agentbox=${BIN%/bin}/deb/agentbox_${version}_$(dpkg --print-architecture).deb
[ -e "$agentbox" ] || skip_all 'needs `make deb`'
export DEBIAN_FRONTEND=noninteractive
abctl() { /usr/bin/abctl "$@"; }
package() { dpkg --force-unsafe-io --force-confold "$@" >"$T/dpkg" 2>&1; }
prop() { systemctl show -P "$1" "${2:-agentboxd.service}"; }
# Without node, which takes seconds here.
status() { abctl show "$1" | sed -n 's/^ *status: *//p' | head -n 1; }
has_status() { [ "$(status "$1")" = "$2" ]; }
units() { echo "$(prop ActiveState agentboxd.socket) $(prop ActiveState)"; }
waiter() { # USER: a run that waits for a file, at work; sets id
	id=$(abctl run waiter -s "$1/g" -p x --detach)
	wait_for 60 sh -c "abctl logs $id --json | grep -q agent.message"
}
repack "$agentbox" "$version+2" "$T/two.deb"

# ---- installed ----
ok 'installs' package -i "$agentbox"
is 'and has nothing to say' "$(grep '^agentbox:' "$T/dpkg")" '' || { cat "$T/dpkg"; finish; }
is 'it serves' "$(units) $(prop SubState) $(prop Type)" 'active active running notify'
is 'and will at the next boot' "$(systemctl is-enabled agentboxd.socket agentboxd.service | xargs)" 'enabled enabled'
is 'under a watchdog' "$(prop WatchdogUSec)" 1min
ok 'a run' abctl run hello -s u/g -p hi
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo on; until [ -e go ]; do sleep 0.1; done; echo survived"]\n---\n' \
	>/etc/agentbox/harnesses/waiter.md
systemctl reload agentboxd.service

# ---- upgraded under a run ----
ok 'a run that waits' waiter up
main=$(prop MainPID)
ok 'an upgrade' package -i "$T/two.deb"
is 'of which nothing is said' "$(grep '^agentbox:' "$T/dpkg")" ''
is 'the service is the same process' "$(prop MainPID) $(prop ActiveState) $(prop NRestarts)" "$main active 0"
ok 'with the new program' test "/proc/$main/exe" -ef /usr/sbin/agentboxd
is 'the run goes on' "$(status "$id")" running
touch "$T/go"
abctl session cp "$T/go" up/g:go
ok 'to its end' wait_for 60 has_status "$id" succeeded

# ---- hung ----
mkdir -p /run/systemd/system/agentboxd.service.d
printf '[Service]\nWatchdogSec=8\n' >/run/systemd/system/agentboxd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart agentboxd.service
main=$(prop MainPID)
kill -STOP "$main"
again() { [ "$(prop MainPID)" != "$main" ] && [ "$(units)" = 'active active' ]; }
ok 'a daemon that hangs is ended and started again' wait_for 90 again
is 'once' "$(prop NRestarts)" 1
rm -r /run/systemd/system/agentboxd.service.d
systemctl daemon-reload

# ---- stopped by the administrator ----
systemctl stop agentboxd.socket agentboxd.service
ok 'an upgrade of a service that was stopped' package -i "$T/two.deb"
is 'leaves it stopped' "$(units)" 'inactive inactive'
ok 'its socket' systemctl start agentboxd.socket
is 'starts it for the first client' "$(status "$id") $(units)" 'succeeded active active'

# ---- removed ----
waiter removed
ok 'a removal with a run alive' package -r agentbox
is 'leaves no unit' "$(units) $(prop LoadState)" 'inactive inactive masked'
is 'and no process' "$(pgrep -f agentboxd; ps -eo uid=,args= | awk '$1 >= 536805377 && $1 < 1073741824')" ''
ok 'but the state' test -d /var/lib/agentbox/sessions
echo 'limits: { memroy: 1G }' >/etc/agentbox/policy/bad.yaml
ok 'installed again, with a fault in a policy' package -i "$agentbox"
like 'it does not start, and that is said' "$(cat "$T/dpkg")" '^agentbox: the daemon did not start: journalctl'
rm /etc/agentbox/policy/bad.yaml
systemctl reset-failed agentboxd.service agentboxd.socket
ok 'once that is mended it starts' systemctl start agentboxd.socket agentboxd.service
is 'with its history' "$(status "$id")" interrupted

# ---- purged ----
waiter purged
ok 'a purge with a run alive' package -P agentbox
is 'leaves nothing' "$(left_of_package)" ''
is 'of the units either' "$(prop LoadState) $(prop LoadState agentboxd.socket)" 'not-found not-found'
is 'and no process' "$(pgrep -f agentboxd; ps -eo uid=,args= | awk '$1 >= 536805377 && $1 < 1073741824')" ''
is 'nothing failed' "$(systemctl --failed --no-legend --plain | grep agentbox)" ''
finish
