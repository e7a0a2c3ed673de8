#!/usr/bin/env bash
# Programs that try to get out, in real jails: each attempt of the catalogue must be stopped.  The
# same attempts in jails that lack the layer in question must go through, or the first half says
# nothing.  Something of the host is there to be found by whoever gets out.
. tests/integration/lib.sh

attacks='files process kernel network resources neighbour'
bait=$$ # several tests may run on one host, and each is to find what it has planted
mkdir -p "$T/etc/policy" "$T/tools"
for program in $attacks inodes; do cp "$TESTS/escape/$program" "$T/tools/"; done
cp "$T/tools/files" "$T/tools/setuid"
chmod 4755 "$T/tools/setuid"
mknod -m 666 "$T/tools/node" c 1 3
: >"$T/tools/bait"
for private in true false; do
	cat >"$T/etc/policy/private-$private.yaml" <<-Y
		extends: default
		filesystem: { private: $private, mounts: [ { source: $T/tools, target: /tools } ] }
		limits: { tmp: 4M, shm: 4M, disk: 4M, inodes: 200, nofile: 4096 }
	Y
done
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
jail() { abctl jail --policy "private-${private:-true}" "$@" 2>"$T/err"; }
modules() { cut -d' ' -f1 /proc/modules 2>/dev/null | sort; }

# hold COMMAND...: what can be found, while descriptor 7 is open
hold() {
	mkfifo "$T/release"
	"$@" <"$T/release" >"$T/held" 2>&1 &
	holder=$!
	exec 7>"$T/release"
	ok 'there is something to find' wait_for 60 grep -q '^held' "$T/held"
}
release() {
	exec 7>&-
	wait "$holder"
	rm "$T/release"
}

# ---- each attempt in a jail ----
hold "$TESTS/escape/neighbour" --bait $bait hold
modules >"$T/modules"
for program in $attacks; do
	for user in agent root; do
		jail --user $user -- "/tools/$program" --bait $bait </dev/null >"$T/tap"
		status=$?
		tried=$(grep -c '^ok' "$T/tap")
		is "$program as $user: $tried attempts, and none went through ($(grep -A1 '^not ok' "$T/tap" | tr '\n' ';'))" "$status" 0
		is "$program as $user tried all of its table" "$tried" "$("$TESTS/escape/$program" --ids | wc -l)"
	done
done
is 'no module was loaded by any of it' "$(modules)" "$(cat "$T/modules")"

# ---- the same without the layers in question ----
controls=0
for program in $attacks; do
	"$TESTS/escape/$program" --settings >"$T/settings"
	is "$program: each row has a control or a reason ($(grep neither "$T/settings"))" "$(grep -c neither "$T/settings")" 0
	while read -r set; do
		timeout 120 "$TESTS/fakes/lax" "$set" "$T/tools" "$program" --bait $bait --lax "$set" </dev/null >"$T/tap" 2>"$T/err"
		status=$?
		went=$(grep -c '^ok' "$T/tap")
		grep '^# \(older\|not in\)' "$T/tap"
		controls=$((controls + went))
		ok "$program without $set: $went attempts go through ($(grep '^not ok' "$T/tap" | tr '\n' ';'))" test "$status" = 0
	done <"$T/settings"
done
release
uncontrolled() { for program in $attacks; do "$TESTS/escape/$program" --uncontrolled; done; }
uncontrolled | sed 's/^/# not tried without its layers: /'
echo "# $controls attempts have gone through where a layer was left out"
is 'rows that are not tried without their layers' "$(uncontrolled | wc -l)" 43

# ---- two jails at once ----
# One locks and watches all that it can open of a sample of every mount, and of /proc and /dev; does
# another notice, or is it noticed?  The policy that shares its files shows what that is worth.
for private in false true; do
	hold jail -- /tools/inodes hold
	jail -- /tools/inodes try </dev/null >"$T/tried"
	jail -- sh -c 'cat /tools/bait; /usr/bin/env; ls / /usr /dev /home' </dev/null >/dev/null
	release
	echo "# private: $private: $(grep '^held' "$T/held"); $(grep '^tried' "$T/tried"); $(tail -1 "$T/tried")"
	met=$(sed -n 's/^\(record-\)\?locked //p' "$T/tried" | sort -u)
	saw=$(sed -n 's/^saw //p' "$T/held" | sort -u)
	ok 'hundreds of files were tried' test "$(sed -n 's/^tried: \([0-9]*\) .*/\1/p' "$T/tried")" -gt 200
	ok 'and locked, and watched' grep -q '^held: .*, [1-9][0-9][0-9]* locks, .* [1-9][0-9][0-9] watches' "$T/held"
	if [ $private = true ]; then
		is 'no lock of a jail is met by another' "$met" ''
		is 'nothing that a jail opens, reads or runs is noticed by another' "$saw" ''
	else
		is 'private: false: locks on /dev/null meet' "$(grep -cFx /dev/null <<<"$met")" 1
		for path in / /usr /usr/bin/env /etc /dev /dev/zero /home /tools /tools/bait; do
			is "private: false: locks on $path meet" "$(grep -cFx "$path" <<<"$met")" 1
			is "private: false: a watch on $path tells of others" "$(grep -cFx "$path" <<<"$saw")" 1
		done
	fi
done
is 'a jail without a network still trusts the usual certificates' \
	"$(private=true jail -- sh -c 'ls /etc/ssl/certs | wc -l')" "$(private=false jail -- sh -c 'ls /etc/ssl/certs | wc -l')"

# ---- the catalogue ----
for program in $attacks; do "$TESTS/escape/$program" --ids; done | sort -u >"$T/ids"
is 'each row of the programs is in the catalogue' "$(while read -r id; do grep -q "^| $id |" docs/ISOLATION.md || echo "$id"; done <"$T/ids")" ''
ok 'no process of a jail is left' wait_for 5 no_jail_processes
finish
