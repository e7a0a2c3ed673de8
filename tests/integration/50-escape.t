#!/usr/bin/env bash
# Programs that try to get out, in real jails: each attempt of the catalogue must be stopped.  The
# same attempts in jails that lack the layer in question must go through, or the first half says
# nothing.  Something of the host is there to be found by whoever gets out.
. tests/integration/lib.sh

attacks='files process kernel network resources neighbour'
mkdir -p "$T/etc/policy" "$T/tools"
for program in $attacks; do cp "$TESTS/escape/$program" "$T/tools/"; done
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
hold "$TESTS/escape/neighbour" hold
modules >"$T/modules"
for program in $attacks; do
	for user in agent root; do
		jail --user $user -- "/tools/$program" </dev/null >"$T/tap"
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
		timeout 120 "$TESTS/fakes/lax" "$set" "$T/tools" "$program" --lax "$set" </dev/null >"$T/tap" 2>"$T/err"
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
# What one does with files that both see: is it noticed by the other, do locks meet?  Where each has
# inodes of its own only the device nodes are left; the other policy shows what that is worth.
for private in false true; do
	hold jail -- /tools/neighbour hold
	jail -- /tools/neighbour </dev/null >"$T/tap"
	is "private: $private: a jail finds nothing of its neighbour ($(grep -A1 '^not ok' "$T/tap" | tr '\n' ';'))" $? 0
	locks=$(jail -- /tools/neighbour locks </dev/null | sed 's/^lock //' | tr '\n' ' ')
	jail -- sh -c 'cat /tools/bait; /usr/bin/env' </dev/null >/dev/null
	release
	saw=$(sed -n 's/^saw //p' "$T/held" | tr '\n' ' ')
	if [ $private = true ]; then
		is 'its locks are its own' "$locks" '/usr/bin/env: free /etc/passwd: free /dev/null: held /tools/bait: free '
		is 'what it reads and runs is not noticed' "$saw" '/usr/bin: no /tools: no '
	else
		is 'locks on what both see meet' "$locks" '/usr/bin/env: held /etc/passwd: held /dev/null: held /tools/bait: held '
		is 'what it reads and runs is noticed' "$saw" '/usr/bin: yes /tools: yes '
	fi
done
is 'a jail without a network still trusts the usual certificates' \
	"$(private=true jail -- sh -c 'ls /etc/ssl/certs | wc -l')" "$(private=false jail -- sh -c 'ls /etc/ssl/certs | wc -l')"

# ---- the catalogue ----
for program in $attacks; do "$TESTS/escape/$program" --ids; done | sort -u >"$T/ids"
is 'each row of the programs is in the catalogue' "$(while read -r id; do grep -q "^| $id |" docs/ISOLATION.md || echo "$id"; done <"$T/ids")" ''
ok 'no process of a jail is left' wait_for 5 no_jail_processes
finish
