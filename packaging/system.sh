# shellcheck shell=sh
# What a system has for the daemon: users and directories.  Sourced by install.sh, and part of the
# Debian package's postinst.
user() { # NAME ID: a system user (no range of subordinate ids), without a home, a shell or a password
	getent group "$1" >/dev/null || groupadd -g "$2" "$1"
	getent passwd "$1" >/dev/null ||
		useradd -r -K "SYS_UID_MAX=$2" -u "$2" -g "$2" -d /nonexistent -M -s /usr/sbin/nologin "$1"
}
getent group agentbox >/dev/null || groupadd -r agentbox
# The ids of base/ids.h: files of an uninstalled tree keep their owners.
user agentbox-supervisor 536805377
user agentbox-egress 536805378
user agentbox-listener 536805384
user agentbox-policyc 536805379

install -d -m 755 /etc/agentbox /etc/agentbox/policy /etc/agentbox/harnesses /run/agentbox
install -d -m 700 /etc/agentbox/secrets
install -d -m 700 /var/lib/agentbox
