#!/bin/sh
# install.sh DESTDIR PREFIX BIN - what `make install` does: the programs from BIN, harnesses, manual
# pages, service files, examples, completion for three shells; and on a live system (no DESTDIR) the users and
# directories.  tests/fixtures/install.manifest lists the files.
set -eu
umask 022 # the unprivileged programs read what is put here, whatever root's umask is

destdir=$1
prefix=$2
bin=$3
libdir=${LIBDIR:-$prefix/lib}
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
copy 755 "$prefix/lib/agentbox" "$bin/agentbox-supervisor" "$bin/agentbox-egress" "$bin/agentbox-listener" \
	"$bin/agentbox-policyc" "$bin/agentbox-authority" "$bin/agentbox-init" "$bin/agentbox-worker" "$bin/agentbox-acp" "$bin/agentbox-canary"

share=$prefix/share/agentbox
copy 644 "$share/harnesses" "$tree"/harnesses/*.md
copy 644 "$share/harnesses/agents" "$tree"/harnesses/agents/starts.sh
for agent in "$tree"/harnesses/agents/*/; do
	name=$(basename "$agent")
	copy 644 "$share/harnesses/agents/$name" "$agent"*.yaml
	[ ! -e "$agent/smoke.sh" ] || copy 755 "$share/harnesses/agents/$name" "$agent"*.sh
done
copy 644 "$share/policy/builtin" "$tree"/policy/builtin/*.yaml
for section in 1 3 5 8; do
	copy 644 "$prefix/share/man/man$section" "$tree"/docs/man/*.$section
done

# The library of clients; its version is that of the programs.
library=$bin/../lib/libagentbox
copy 644 "$prefix/include" "$tree/client/agentbox.h"
copy 644 "$libdir" "$library.so.0" "$library.a"
ln -sfn libagentbox.so.0 "$destdir$libdir/libagentbox.so"
mkdir -p "$destdir$libdir/pkgconfig"
version=$(sed -n 's/^#define AGENTBOX_VERSION "\(.*\)"/\1/p' "$tree/base/version.h")
sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$libdir|; s|@VERSION@|$version|" "$here/libagentbox.pc" \
	>"$destdir$libdir/pkgconfig/libagentbox.pc"
chmod 644 "$destdir$libdir/pkgconfig/libagentbox.pc"

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
copy 644 "$prefix/share/doc/agentbox/examples/clients" "$here"/examples/clients/*
put 755 openrc/agentboxd "$prefix/share/doc/agentbox/examples/openrc/agentboxd"
put 755 runit/run "$prefix/share/doc/agentbox/examples/runit/agentboxd/run"
put 755 runit/log/run "$prefix/share/doc/agentbox/examples/runit/agentboxd/log/run"
put 755 init/run-agentboxd.sh "$prefix/share/doc/agentbox/examples/run-agentboxd.sh"

completion() { # SHELL TARGET
	mkdir -p "$destdir$(dirname "$2")"
	"$destdir$prefix/bin/abctl" completion "$1" >"$destdir$2"
	chmod 644 "$destdir$2"
}
completion bash "$prefix/share/bash-completion/completions/abctl"
completion zsh "${ZSHDIR:-$prefix/share/zsh/site-functions}/_abctl"
completion fish "$prefix/share/fish/vendor_completions.d/abctl.fish"

[ -z "$destdir" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "not root: users and directories are not made" >&2
	exit 0
fi

# shellcheck source=packaging/system.sh
. "$here/system.sh"
if command -v systemctl >/dev/null && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	echo "start it with: systemctl enable --now agentboxd.socket agentboxd.service"
else
	echo "start it with: $prefix/sbin/agentboxd"
fi
