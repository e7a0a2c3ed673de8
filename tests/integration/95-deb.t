#!/usr/bin/env bash
# The Debian packages on a system that is this one with a layer over it: installed, at work, upgraded under a run,
# removed, installed again, purged.  No systemd there; tests/vm/inside/12-deb.t has that.
. tests/integration/lib.sh
. tests/integration/deb.sh

if [ -z "${DEB_INSIDE:-}" ]; then
	command -v dpkg-shlibdeps >/dev/null || skip_all 'needs dpkg-dev'
	if sanitized; then
		ok 'programs for tests become no package' not packaging/deb.sh "$BIN" "$T/debs"
		finish
	fi
	exec 9>/tmp/agentbox-deb.lock
	flock -w 300 9 || skip_all 'another one runs'
	[ -z "$(tree_of_package)" ] || skip_all 'agentboxd is installed here, and runs'
	export DEB_INSIDE=$T
	unshare --mount --propagation private bash "$0" 9>&-
	exit
fi

# ---- packages ----
rmdir "$T"
debs=$DEB_INSIDE T=$DEB_INSIDE/inside
mkdir -m 755 "$T"
DEB_COMPRESS=none packaging/deb.sh "$BIN" "$debs" >"$T/made" 2>"$T/err"
is 'they are made of what was built' "$? $(cat "$T/err")" '0 '
agentbox=$(grep '/agentbox_' "$T/made")
version=$(dpkg-deb -f "$agentbox" Version)
repack "$agentbox" "$version+2" "$debs/two.deb" 'echo "# a default of two" >>etc/agentbox/agentboxd.yaml'
repack "$agentbox" "$version+3" "$debs/bad.deb" 'printf "#!/bin/sh\nexit 3\n" >usr/sbin/agentboxd'
needs=$(dpkg-deb -f "$agentbox" Depends)
for library in libc6 libseccomp2 liburing2 libsqlite3-0 libcurl4 libssl3; do
	like "it needs $library" "$needs" "(^|, )$library(t64)? "
done

# ---- a system to install it on ----
mkdir "$T/disk"
mount -t tmpfs disk "$T/disk" && mkdir "$T/disk/"{upper,work,root} &&
	mount -t overlay -o "lowerdir=/,upperdir=$T/disk/upper,workdir=$T/disk/work" overlay "$T/disk/root" ||
	skip_all 'no overlay over this root'
(
	cd "$T/disk/root" && mkdir -p .old "./$debs" var/lib/agentbox &&
		for dir in dev sys; do mount --rbind "/$dir" "$dir" || exit; done &&
		mount -t proc proc proc && mount -t tmpfs run run && mkdir run/lock && mount -t tmpfs state var/lib/agentbox &&
		mount --bind "$debs" "./$debs" && pivot_root . .old
) || skip_all 'no root directory of its own'
cd / && umount -l /.old
rm -f /var/lib/man-db/auto-update # that takes half a minute
# What an installation by hand has made here; its files below /usr/local are not the package's.
sed -i /agentbox/d /etc/passwd /etc/shadow /etc/group /etc/gshadow
rm -rf /etc/agentbox /etc/systemd/system/*/agentboxd.* /etc/systemd/system/agentboxd.*
before=$(left_of_package)
unset AGENTBOX_SOCKET
export DEBIAN_FRONTEND=noninteractive
abctl() { /usr/bin/abctl "$@"; }
package() { dpkg --force-unsafe-io --force-confold "$@" >"$T/dpkg" 2>&1; }
state() { dpkg-query -W -f '${db:Status-Status}' "${1:-agentbox}"; }
answers() { abctl version --json; }
start() {
	/usr/sbin/agentboxd 2>>"$T/log" &
	DAEMON=$!
	wait_for 30 answers
	CGROUP=$(daemon_cgroup)
	[ -n "$CGROUP" ]
}
status() { abctl show "$1" --json | json 'l.status||l.result.status'; }
has_status() { [ "$(status "$1")" = "$2" ]; }
waiter() { # USER: a run that waits for a file, at work; sets id
	id=$(abctl run waiter -s "$1/g" -p x --detach --json | json 'l.runId||l.run')
	wait_for 30 sh -c "abctl logs $id --json | grep -q agent.message"
}

ok 'installs' package -i "$agentbox" "$(grep libagentbox0 "$T/made")" "$(grep libagentbox-dev "$T/made")"
is 'completely' "$(state) $(state libagentbox0) $(state libagentbox-dev)" 'installed installed installed'
like 'and says how to start it, without systemd' "$(cat "$T/dpkg")" '^agentbox: systemd does not run here.*/usr/sbin/agentboxd'
is 'nothing was started' "$(pgrep -c -f '^/usr/sbin/agentboxd')" 0
is 'the users have their ids' "$(id -u agentbox-supervisor agentbox-egress | xargs)" '536805377 536805378'
is 'secrets are for root' "$(stat -c %a /etc/agentbox/secrets /var/lib/agentbox | xargs)" '700 700'
is 'no setting is set' "$(grep -v '^#' /etc/agentbox/agentboxd.yaml)" ''
is 'its units will start' "$(cd /etc/systemd/system && find . -name 'agentboxd.*' | sort | xargs)" \
	'./multi-user.target.wants/agentboxd.service ./sockets.target.wants/agentboxd.socket'
is 'files are as they were packed' "$(dpkg -V agentbox libagentbox0 libagentbox-dev)" ''
like 'fish completes it' "$(HOME=$T fish -c 'complete -C "abctl reloa"' 2>&1)" '^reload'
is 'zsh looks where it completes' "$(zsh -f -c 'print -l ${^fpath}/_abctl(N)')" /usr/share/zsh/vendor-completions/_abctl
# shellcheck disable=SC2046 # flags are words
ok 'a program is built with the library' cc /usr/share/doc/agentbox/examples/clients/run.c $(pkg-config --cflags --libs libagentbox) -o "$T/client"

# ---- at work ----
ok 'the daemon starts' start || { cat "$T/log"; finish; }
is 'its cgroup is the one that purging knows' "$CGROUP" "$(tree_of_package)"
is 'a run' "$(abctl run hello -s u/g -p hi --json | json l.result.status)" succeeded
printf -- '---\nbackend: exec\ncommand: [sh, -c, "echo on; until [ -e go ]; do sleep 0.1; done; echo survived"]\n---\n' \
	>/etc/agentbox/harnesses/waiter.md
abctl reload >"$T/out" 2>&1
ok 'a run that waits' waiter up
first=$id

# ---- without what the package depends on ----
certificates=/etc/ssl/certs/ca-certificates.crt
mv $certificates "$T/"
pkill -TERM -P "$DAEMON" -f agentbox-egress
said() { grep -c 'agentbox-egress.*install ca-certificates' "$T/log"; }
said_twice() { [ "$(said)" -ge 2 ]; }
ok 'without certificates egress says what is missing' wait_for 30 said_twice
ended=$(grep -c 'egress (pid.*) ended with' "$T/log")
ok 'each time, but when it was told to end' test "$ended" -le $(($(said) + 1))
like 'so the package depends on them' "$needs" '(^|, )ca-certificates(,|$)'
mv "$T/ca-certificates.crt" $certificates

# ---- upgraded under it ----
echo '# mine' >>/etc/agentbox/agentboxd.yaml
old=$(stat -Lc %i "/proc/$DAEMON/exe")
ok 'an upgrade' package -i "$debs/two.deb"
is 'nothing is said of the daemon' "$(grep '^agentbox:' "$T/dpkg")" ''
is 'what was edited stays' "$(tail -n 1 /etc/agentbox/agentboxd.yaml)" '# mine'
is 'the new default lies beside it' "$(tail -n 1 /etc/agentbox/agentboxd.yaml.dpkg-dist)" '# a default of two'
ok 'the daemon is the same process' kill -0 "$DAEMON"
ok 'with the new program' test "/proc/$DAEMON/exe" -ef /usr/sbin/agentboxd
ok 'that is another file' test "$(stat -Lc %i "/proc/$DAEMON/exe")" != "$old"
is 'the run goes on' "$(status "$first")" running
ok 'one that cannot take over is installed' package -i "$debs/bad.deb"
like 'and that is said' "$(cat "$T/dpkg")" '^agentbox: the daemon goes on with its programs of before'
is 'the run still goes on' "$(status "$first")" running
ok 'back to the one before' package -i "$debs/two.deb"
is 'without a word' "$(grep '^agentbox:' "$T/dpkg")" ''
touch "$T/go"
abctl session cp "$T/go" up/g:go
ok 'it ends' wait_for 30 has_status "$first" succeeded
like 'as if nothing had been' "$(abctl show "$first" --json)" survived

# ---- removed ----
waiter removed
children=$(pgrep -P "$DAEMON" | xargs | tr ' ' ,)
ok 'a removal with a run alive' package -r agentbox
ok 'ends the daemon' not kill -0 "$DAEMON"
wait "$DAEMON"
is 'which stopped by itself' $? 0
is 'nothing of it is left' "$(ps -o args= -p "$children"; tree_of_package)" ''
DAEMON=''
ok 'the programs are gone' not test -e /usr/sbin/agentboxd
is 'settings, state and users are kept' "$(tail -n 1 /etc/agentbox/agentboxd.yaml; ls /etc/agentbox/harnesses; id -nu 536805377)" \
	"$(printf '# mine\nwaiter.md\nagentbox-supervisor')"
ok 'installed again' package -i "$debs/two.deb"
ok 'it starts' start
is 'with its history' "$(status "$first") $(status "$id")" 'succeeded interrupted'

# ---- purged ----
waiter purged
kill -9 "$DAEMON"
wait "$DAEMON" 2>/dev/null
DAEMON=''
ok 'a purge after the daemon was killed' package -P agentbox libagentbox-dev libagentbox0
is 'leaves nothing' "$(left_of_package)" "$before"
is 'but the mount point, empty' "$(find /var/lib/agentbox)" /var/lib/agentbox
finish
