#!/bin/sh
# deb.sh BIN OUT - what `make deb` does: Debian packages in OUT of the programs in BIN, which are
# there already; nothing is compiled.
# DEB_VERSION: another version than that of the programs; DEB_MAINTAINER: 'NAME <ADDRESS>' of who gives
# the packages to others; DEB_COMPRESS: see dpkg-deb -Z.
set -eu
umask 022

bin=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
for tool in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
	command -v "$tool" >/dev/null || {
		echo "make deb needs $tool (Debian package dpkg-dev)" >&2
		exit 1
	}
done
if grep -q __asan_init "$bin/agentboxd"; then
	echo "make deb: the programs in $bin are of a build for tests (MODE); a package is made of MODE=release" >&2
	exit 1
fi
version=${DEB_VERSION:-$(sed -n 's/^#define AGENTBOX_VERSION "\(.*\)"/\1/p' "$here/../base/version.h")}
maintainer=${DEB_MAINTAINER:-$(sed -n 's/^Maintainer: //p' "$here/deb/control")}
arch=$(dpkg-architecture -qDEB_HOST_ARCH)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
all=$work/agentbox

LIBDIR=$libdir ZSHDIR=/usr/share/zsh/vendor-completions "$here/install.sh" "$all" /usr "$bin"

# move PACKAGE PATH...: out of the tree of all
move() {
	package=$1
	shift
	for path; do
		mkdir -p "$work/$package$(dirname "$path")"
		mv "$all$path" "$work/$package$path"
	done
}
move libagentbox0 "$libdir/libagentbox.so.0"
move libagentbox-dev "$libdir/libagentbox.so" "$libdir/libagentbox.a" "$libdir/pkgconfig/libagentbox.pc" \
	/usr/include/agentbox.h /usr/share/man/man3/libagentbox.3
find "$all" -type d -empty -delete

# The file of settings as the administrator finds it: every key said, none set.
install -d -m 755 "$all/etc/agentbox"
sed 's/^[^#]/# &/' "$all/usr/share/doc/agentbox/examples/agentboxd.yaml" >"$all/etc/agentbox/agentboxd.yaml"

# What the linker has put in for debuggers stays in the build tree.
bare='--remove-section=.comment --remove-section=.note'
# shellcheck disable=SC2086 # flags are words
strip --strip-unneeded $bare "$all"/usr/bin/* "$all"/usr/sbin/* "$all"/usr/lib/agentbox/* \
	"$work/libagentbox0$libdir/libagentbox.so.0"
# shellcheck disable=SC2086
strip --strip-debug $bare "$work/libagentbox-dev$libdir/libagentbox.a"
find "$work" -path '*/share/man/*' -type f -exec gzip -9n {} +

paragraph() { awk -v RS= -v p="$1" '$0 ~ "(^|\n)Package: " p "(\n|$)"' "$here/deb/control"; }

# The fields of PACKAGE in deb/control, over those of the source, with Description last.
fields() { # PACKAGE
	{
		sed -n '1,/^$/{/^\(Section\|Priority\):/p}' "$here/deb/control"
		echo "Maintainer: $maintainer"
		paragraph "$1"
	} | awk -F: '/^[A-Z]/ { key = $1; if (!(key in text)) order[++n] = key; text[key] = $0; next }
		{ text[key] = text[key] "\n" $0 }
		END {
			for (i = 1; i <= n; i++)
				if (order[i] != "Package" && order[i] != "Description")
					print text[order[i]]
			print text["Description"]
		}'
}

# needs PACKAGE FILE...: the packages of the libraries that its programs are linked with
needs() {
	mkdir -p "$work/shlibs/debian"
	cp "$here/deb/control" "$work/shlibs/debian/control"
	package=$1
	shift
	if ! (cd "$work/shlibs" && dpkg-shlibdeps -O -S"$work/$package" "$@") >"$work/shlibs/found" 2>"$work/shlibs/said"; then
		cat "$work/shlibs/said" >&2
		return 1
	fi
	sed -n 's/^shlibs:Depends=//p' "$work/shlibs/found"
}

documents() { # PACKAGE
	doc=$work/$1/usr/share/doc/$1
	mkdir -p "$doc"
	install -m 644 "$here/deb/copyright" "$doc/copyright"
	printf 'agentbox (%s) unstable; urgency=medium\n\n  * What has changed is in %s.\n\n -- %s  %s\n' \
		"$version" '/usr/share/doc/agentbox/CHANGELOG.md.gz' "$maintainer" \
		"$(date -R -u -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y "$here/../CHANGELOG.md")}")" |
		gzip -9n >"$doc/changelog.gz"
	overrides=$work/$1/usr/share/lintian/overrides
	install -d -m 755 "$overrides"
	for file in "$here/deb/lintian.all" "$here/deb/lintian.$1"; do
		[ ! -e "$file" ] || sed "s/@PACKAGE@/$1/" "$file" >>"$overrides/$1"
	done
}

pack() { # PACKAGE SHLIBS
	documents "$1"
	install -d -m 755 "$work/$1/DEBIAN"
	{
		printf 'Package: %s\nSource: agentbox\nVersion: %s\nInstalled-Size: %s\n' "$1" "$version" "$(du -ks "$work/$1" | cut -f1)"
		fields "$1" | sed "s/^Architecture: any/Architecture: $arch/; s/\${version}/$version/; s/\${shlibs:Depends}/$2/"
	} >"$work/$1/DEBIAN/control"
	(cd "$work/$1" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$work/$1/DEBIAN/md5sums"
	dpkg-deb --root-owner-group -Z"${DEB_COMPRESS:-xz}" --build "$work/$1" "$out/$1_${version}_$arch.deb" >/dev/null
	echo "$out/$1_${version}_$arch.deb"
}

install -d -m 755 "$all/DEBIAN"
echo /etc/agentbox/agentboxd.yaml >"$all/DEBIAN/conffiles"
for script in postinst prerm postrm; do
	sed -e "/^@SYSTEM@/{r $here/system.sh" -e 'd;}' -e "/^@DAEMON@/{r $here/deb/daemon.sh" -e 'd;}' \
		"$here/deb/$script" | sed '/^[[:space:]]*# shellcheck/d' >"$all/DEBIAN/$script"
	chmod 755 "$all/DEBIAN/$script"
done
gzip -9n <"$here/../CHANGELOG.md" >"$all/usr/share/doc/agentbox/CHANGELOG.md.gz"

install -d -m 755 "$work/libagentbox0/DEBIAN"
printf 'libagentbox 0 libagentbox0 (>= %s)\n' "$version" >"$work/libagentbox0/DEBIAN/shlibs"
echo activate-noawait ldconfig >"$work/libagentbox0/DEBIAN/triggers"

shlibs=$(needs agentbox "$all/usr/bin/abctl" "$all/usr/sbin/agentboxd" "$all"/usr/lib/agentbox/*)
pack agentbox "$shlibs"
shlibs=$(needs libagentbox0 "$work/libagentbox0$libdir/libagentbox.so.0")
pack libagentbox0 "$shlibs"
pack libagentbox-dev ''
