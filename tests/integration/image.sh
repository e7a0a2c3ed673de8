# shellcheck shell=bash
# image.sh - a Debian image directory made of what this host has installed: no network, seconds.
#
#	. tests/integration/image.sh
#	debian_image DIR PACKAGE...	# these, what they depend on, and all that is required

# Installed packages that the named ones need, themselves included.
_closure() {
	dpkg-query -W -f '${Package}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n' |
		perl -F'\t' -lane '
			BEGIN { @want = splice @ARGV }
			my ($name, $priority, $provides, $depends) = @F;
			push @want, $name if $priority eq "required";
			$real{$_ =~ s/[ (:].*//r} //= $name for grep { $_ } split /, */, $provides;
			$real{$name} = $name;
			$needs{$name} = [map { [map { s/[ (:].*//r } split / *\| */] } split /, */, $depends];
			END {
				while (defined(my $p = shift @want)) {
					my $have = $real{$p};
					next if !$have || $seen{$have}++;
					push @want, (grep { $real{$_} } @$_)[0] // () for @{ $needs{$have} };
				}
				print for sort keys %seen;
			}' "$@"
}

debian_image() {
	local dir=$1 info=/var/lib/dpkg/info
	shift
	mkdir -p "$dir"/{usr/{bin,sbin,lib,lib64},etc,opt,root,tmp,var/{cache/apt/archives/partial,lib/dpkg/{info,updates,triggers},lib/apt/lists/partial,log/apt,tmp}}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$dir"
	_closure "$@" >"$dir.packages"
	local p list
	while read -r p; do
		for list in "$info/$p.list" "$info/$p:amd64.list"; do
			[ ! -f "$list" ] || cat "$list"
		done
		find "$info" \( -name "$p.*" -o -name "$p:*" \) -exec cp -a {} "$dir/var/lib/dpkg/info" \;
	done <"$dir.packages" | sed -e 's,^/\(bin\|sbin\|lib\|lib64\)/,/usr/\1/,' \
		-e '\,^/usr/share/\(doc\|man\|locale\|info\)/,d' >"$dir.files"
	(cd / && sed 's,^/,,' "$dir.files" | sort -u | while IFS= read -r f; do
		if [ -L "$f" ] || [ -e "$f" ]; then printf '%s\n' "$f"; fi
	done | tar -cf - --no-recursion -T -) | tar -xf - -C "$dir"
	perl -00 -ne 'BEGIN { local $/ = "\n"; open my $f, "<", shift; %want = map { chomp; ($_ => 1) } <$f> }
		print if /^Package: (.*)/ && $want{$1}' "$dir.packages" /var/lib/dpkg/status >"$dir/var/lib/dpkg/status"
	cp /usr/share/base-passwd/passwd.master "$dir/etc/passwd"
	cp /usr/share/base-passwd/group.master "$dir/etc/group"
	echo '_apt:x:42:65534::/nonexistent:/usr/sbin/nologin' >>"$dir/etc/passwd"
	(umask 077 && echo 'root:*:19000:0:99999:7:::' >"$dir/etc/shadow")
	ldconfig -r "$dir"
	chmod -R go-w "$dir"
	rm "$dir.packages" "$dir.files"
}
