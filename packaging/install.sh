#!/bin/sh
# install.sh DESTDIR PREFIX BIN - what `make install` does: the programs from BIN, harnesses, manual
# pages, service files, examples, shell completion; and on a live system (no DESTDIR) the users and
# directories.  tests/fixtures/install.manifest lists the files.
set -eu
umask 022 # the unprivileged programs read what is put here, whatever root's umask is

destdir=$1
prefix=$2
bin=$3
here=$(cd "$(dirname "$0")" && pwd)
tree=$here/..

put() { # MODE SOURCE TARGET: a text of packaging/, with @PREFIX@ filled in
	mkdir -p "$destdir$(dirname "$3")"
	sed "s|@PREFIX@|$prefix|g" "$here/$2" >"$destdir$3"
	chmod "$1" "$destdir$3"
}

copy() { # MODE DIRECTORY FILE...
	mode=$1 to=$destdir$2
	shift 2
	mkdir -p "$to"
	install -m "$mode" "$@" "$to/"
}

copy 755 "$prefix/bin" "$bin/abctl"
copy 755 "$prefix/sbin" "$bin/agentboxd"
copy 755 "$prefix/lib/agentbox" "$bin/agentbox-supervisor" "$bin/agentbox-egress" "$bin/agentbox-policyc" \
	"$bin/agentbox-authority" "$bin/agentbox-init" "$bin/agentbox-worker" "$bin/agentbox-canary"

share=$prefix/share/agentbox
copy 644 "$share/harnesses" "$tree"/harnesses/*.md
copy 644 "$share/harnesses/agents" "$tree"/harnesses/agents/npm.sh
for agent in "$tree"/harnesses/agents/*/; do
	name=$(basename "$agent")
	copy 644 "$share/harnesses/agents/$name" "$agent"*.yaml
	copy 755 "$share/harnesses/agents/$name" "$agent"*.sh
done
copy 644 "$share/policy/builtin" "$tree"/policy/builtin/*.yaml
for section in 1 5 8; do
	copy 644 "$prefix/share/man/man$section" "$tree"/docs/man/*.$section
done

# Units of a package lie below /usr/lib; those of a local build where systemd looks for them, too.
case $prefix in
/usr) lib=/usr/lib ;;
*) lib=/usr/local/lib ;;
esac

put 644 systemd/agentboxd.service "$lib/systemd/system/agentboxd.service"
put 644 systemd/agentboxd.socket "$lib/systemd/system/agentboxd.socket"
put 644 systemd/agentbox.sysusers.conf "$lib/sysusers.d/agentbox.conf"
put 644 systemd/agentbox.tmpfiles.conf "$lib/tmpfiles.d/agentbox.conf"
put 644 examples/agentboxd.yaml "$prefix/share/doc/agentbox/examples/agentboxd.yaml"
put 644 examples/policy-team.yaml "$prefix/share/doc/agentbox/examples/policy-team.yaml"
put 755 openrc/agentboxd "$prefix/share/doc/agentbox/examples/openrc/agentboxd"
put 755 init/run-agentboxd.sh "$prefix/share/doc/agentbox/examples/run-agentboxd.sh"

completion=$prefix/share/bash-completion/completions/abctl
mkdir -p "$destdir$(dirname "$completion")"
"$destdir$prefix/bin/abctl" completion bash >"$destdir$completion"
chmod 644 "$destdir$completion"

[ -z "$destdir" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "not root: users and directories are not made" >&2
	exit 0
fi

user() { # NAME ID: a system user (no range of subordinate ids), without a home, a shell or a password
	getent group "$1" >/dev/null || groupadd -g "$2" "$1"
	getent passwd "$1" >/dev/null ||
		useradd -r -K "SYS_UID_MAX=$2" -u "$2" -g "$2" -d /nonexistent -M -s /usr/sbin/nologin "$1"
}
getent group agentbox >/dev/null || groupadd -r agentbox
# The ids of base/ids.h: files of an uninstalled tree keep their owners.
user agentbox-supervisor 536805377
user agentbox-egress 536805378
user agentbox-policyc 536805379

install -d -m 755 /etc/agentbox /etc/agentbox/policy /etc/agentbox/harnesses /run/agentbox
install -d -m 700 /etc/agentbox/secrets
install -d -m 700 /var/lib/agentbox
if command -v systemctl >/dev/null && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	echo "start it with: systemctl enable --now agentboxd.socket agentboxd.service"
else
	echo "start it with: $prefix/sbin/agentboxd"
fi
