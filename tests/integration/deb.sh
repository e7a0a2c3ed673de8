# shellcheck shell=bash
# deb.sh - other versions of the Debian package, of one that is there.
#
#	. tests/integration/deb.sh
#	repack FROM.deb VERSION TO.deb [LINE]	# LINE: for sh in the tree of the package

repack() {
	local tree=$T/repack
	dpkg-deb -R "$1" "$tree" &&
		sed -i "s/^Version: .*/Version: $2/" "$tree/DEBIAN/control" &&
		(cd "$tree" && eval "${4:-}") &&
		dpkg-deb -Znone --build "$tree" "$3" >/dev/null
	local status=$?
	rm -rf "$tree"
	return $status
}

# The cgroup of a daemon with its state in /var/lib/agentbox.
tree_of_package() { find /sys/fs/cgroup -name 'agentbox-9dd2f713dfc57032'; }

# What a purged package may not leave.
left_of_package() {
	find /etc /usr /var/lib /run -xdev -name '*agentbox*' ! -path '/var/lib/dpkg/*'
	grep -H agentbox /etc/passwd /etc/shadow /etc/group /etc/gshadow /etc/subuid /etc/subgid 2>/dev/null
	tree_of_package
}
