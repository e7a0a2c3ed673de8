# shellcheck shell=bash
# image.sh - the guest's kernel, root disk and initramfs, made of Debian packages and kept in $CACHE.
#
# Two stages, each in a folder named after what went into it: $BASE (Debian as a tree, from the archive;
# a minute) and $IMAGE (our files on top, as an ext4 image; two seconds).  Nothing is mounted.

VM_RELEASE=bookworm

# mirror SUITE: the archive that this machine's own apt uses for it
mirror() {
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(SITE) $(RELEASE)' 2>/dev/null | awk -v r="$1" '$2 == r { print $1; exit }'
}

packages() { sed 's/#.*//' "$HERE/packages" | xargs | tr ' ' ,; }

key() { printf '%s\n' "$@" | sha256sum | cut -c1-12; }

# build_base DIR: DIR/root and DIR/vmlinuz
build_base() {
	local t=$1 root=$1/root signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]' package version
	printf "deb $signed %s main\n" "$MIRROR $VM_RELEASE" "$MIRROR $VM_RELEASE-updates" \
		"$SECURITY $VM_RELEASE-security" >"$t/sources.list"
	mmdebstrap --quiet --mode=root --variant=essential --include="$(packages)" \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' $VM_RELEASE "$root" "$t/sources.list"
	# The kernel is only unpacked: its postinst would build an initramfs for a machine we have not.
	mkdir -p "$t"/{lists,cache/archives}/partial
	printf '%s;\n' "Dir::Etc::SourceList \"$t/sources.list\"" 'Dir::Etc::SourceParts "/nonexistent"' \
		"Dir::State::Lists \"$t/lists\"" "Dir::Cache \"$t/cache\"" 'APT::Sandbox::User "root"' >"$t/apt.conf"
	export APT_CONFIG=$t/apt.conf
	apt-get -qq update
	cd "$t" || return
	package=$(apt-cache show --no-all-versions linux-image-cloud-amd64 | sed -n 's/^Depends: \([^ ,]*\).*/\1/p')
	apt-get -qq download "$package"
	dpkg-deb -x "$package"_*.deb kernel
	mkdir -p "$root/usr/lib/modules"
	version=$(ls kernel/lib/modules)
	mv "kernel/lib/modules/$version" "$root/usr/lib/modules/"
	chroot "$root" depmod "$version"
	mv "kernel/boot/vmlinuz-$version" vmlinuz
	rm -rf --one-file-system kernel cache lists ./*.deb apt.conf
}

# initramfs ROOT FILE: busybox, virtio and a mount
initramfs() {
	local root=$1 i name file
	i=$(mktemp -d "$CACHE/initramfs.XXXXXX")
	mkdir "$i"/{bin,m,dev,sys,r}
	cp "$root/bin/busybox" "$i/bin/"
	for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
		for file in "$root"/usr/lib/modules/*/kernel/drivers/{virtio,block}/"$name.ko"; do
			[ -e "$file" ] || continue # what is built in has no file
			cp "$file" "$i/m/"
			echo "$name.ko" >>"$i/modules"
		done
	done
	install -m 755 "$HERE/guest/initramfs-init" "$i/init"
	(cd "$i" && find . | cpio -o -H newc --quiet) >"$2"
	rm -rf --one-file-system "$i"
}

# build_image BASE DIR: DIR/root.img and DIR/initrd
build_image() {
	local root=$1/root unit
	mkdir "$2"
	cd "$root" || return
	rm -rf etc/systemd/system etc/systemd/system-generators
	mkdir -p usr/lib/rig out etc/systemd/system{-generators,/multi-user.target.wants}
	install -m 755 "$HERE/guest/job" usr/lib/rig/job
	install -m 644 "$HERE/guest/rig.service" etc/systemd/system/rig.service
	ln -s ../rig.service etc/systemd/system/multi-user.target.wants/
	ln -s /usr/lib/systemd/system/multi-user.target etc/systemd/system/default.target
	# Without these the boot takes 5 s and not 18, and a daemon-reload 1.5 s and not 4.
	while read -r unit; do ln -sf /dev/null "etc/systemd/system/$unit"; done <"$HERE/guest/masked-units"
	for unit in usr/lib/systemd/system-generators/*; do
		ln -sf /dev/null "etc/systemd/system-generators/${unit##*/}"
	done
	echo 6a1f0d5c7b9e4c3d8e2f1a0b9c8d7e6f >etc/machine-id
	echo vm >etc/hostname
	: >etc/fstab
	printf '127.0.0.1 localhost vm\n::1 localhost\n' >etc/hosts
	truncate -s 4G "$2/root.img"
	mke2fs -q -F -t ext4 -E lazy_itable_init=1 -d . "$2/root.img"
	initramfs "$root" "$2/initrd"
}

# Sets BASE and IMAGE, and builds what is not there.  Runs with the cache's lock held.
image() {
	MIRROR=${VM_MIRROR:-$(mirror $VM_RELEASE)}
	SECURITY=${VM_SECURITY:-$(mirror $VM_RELEASE-security)}
	[ -n "$MIRROR" ] && [ -n "$SECURITY" ] ||
		die "apt of this machine names no archive of $VM_RELEASE: set VM_MIRROR and VM_SECURITY"
	BASE=$CACHE/base-$(key "$(packages)" "$MIRROR" "$(declare -f build_base)")
	IMAGE=$CACHE/image-$(key "$BASE" "$(declare -f build_image initramfs)" "$(cat "$HERE"/guest/*)")
	local t=$CACHE/tmp
	rm -rf --one-file-system "$t" "$CACHE"/initramfs.*
	if [ ! -d "$BASE" ]; then
		echo "rig: building $BASE (a minute or two)" >&2
		mkdir "$t"
		DOING="to get Debian from $MIRROR and $SECURITY (VM_MIRROR and VM_SECURITY name others)"
		(build_base "$t" 9>&-) >&2
		mv -T "$t" "$BASE"
		DOING=''
	fi
	if [ ! -d "$IMAGE" ]; then
		(build_image "$BASE" "$t" 9>&-) >&2
		mv -T "$t" "$IMAGE"
	fi
	touch "$BASE" "$IMAGE"
	# Those of other versions of this tree may be in use.
	find "$CACHE" -mindepth 1 -maxdepth 1 -type d -mtime +1 -exec rm -rf --one-file-system {} +
}
