#!/usr/bin/env bash
# What a jail does to those who look at it from outside, and what is done around it: images that
# lie, directories that move away, names and processes made to confuse whoever ends them.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/tools"
cp "$TESTS/escape/stubborn" "$T/tools/"
printf 'extends: default\nfilesystem: { mounts: [ { source: %s, target: /tools } ] }\n' "$T/tools" >"$T/etc/policy/tools.yaml"
printf -- '---\nbackend: exec\npolicy: tools\ncommand: [sh, -c, "cat >/tmp/s; exec sh /tmp/s"]\nlimits: { timeoutMs: 300000 }\n---\n' >"$T/etc/harnesses/sh.md"

# An image whose directories are links into the host, or no directories at all.
image=$T/image
mkdir -p "$image/usr/bin" "$image/usr/lib" # a static program is all that is needed of it
cp "$TESTS/escape/stubborn" "$image/usr/bin/stubborn"
ln -sfn usr/bin "$image/bin"
image_policy() { printf 'extends: default\nfilesystem: { root: image, image: %s }\n' "$image" >"$T/etc/policy/image.yaml"; }
image_policy
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
inside() { abctl jail --policy image -- /usr/bin/stubborn "$@" 2>"$T/err"; }
is 'a program of an image runs' "$(inside exists /usr/bin/stubborn)" yes

# ---- F14, F15: each place that the jail makes itself ----
echo secret >"$T/host-secret"
for place in dev proc sys tmp workspace home run; do
	rm -rf "${image:?}/$place"
	ln -s "$T" "$image/$place"
done
mkdir -p "$T/self/attr"
echo fake >"$T/self/attr/exec"
touch "$T/null" "$T/resolv.conf"
image_policy
ok 'policies are read again' abctl reload
is 'links in place of its directories are not followed' "$(inside exists /dev/host-secret /proc/host-secret /tmp/host-secret /workspace/host-secret /run/host-secret | tr '\n' ' ')" 'no no no no no '
is '/dev/null is the device' "$(inside device /dev/null)" '1:3'
is '/proc is the kernel'"'"'s' "$(inside filesystem /proc)" 9fa0
is 'and nothing was made in the host' "$(ls -d "$T/pts" "$T/shm" "$T/passwd" 2>/dev/null)" ''
ln -s "$T" "$image/etc"
image_policy
ok 'an image with a link for its /etc' abctl reload
inside exists /etc/host-secret >"$T/out"
like 'is refused, by name' "$(cat "$T/err")" 'layer rootfs: /etc/.*symbolic links'
rm "$image/etc"
for tree in usr bin; do
	mv "$image/$tree" "$T/kept.$tree"
	ln -s "$T" "$image/$tree"
	image_policy
	abctl reload >/dev/null 2>&1
	inside exists /usr/host-secret /bin/host-secret >"$T/out"
	ok "a /$tree that leads into the host: refused, or nothing of it is there" not grep -q yes "$T/out"
	rm "$image/$tree"
	mv "$T/kept.$tree" "$image/$tree"
done

# ---- F17: the host takes a directory out of a workspace while a process is in it ----
abctl run sh -s u/moved -p 'mkdir -p a/b; cd a/b; touch ready; while [ -e ready ]; do sleep 0.05; done; ls ../.. 2>&1 | head -n 3; (cd .. && pwd -P) 2>&1' --json >"$T/moved.json" 2>"$T/err" &
run=$!
ready() { [ -n "$(find "$T/state/sessions" -name ready)" ]; }
ok 'a process is in a directory of its workspace' wait_for 30 ready
at=$(find "$T/state/sessions" -name ready)
mkdir "$T/outside"
mv "$(dirname "$(dirname "$at")")" "$T/outside/a"
rm "$T/outside/a/b/ready"
wait "$run"
said=$(json 'l.result.finalText' <"$T/moved.json" | tr "\n" " ")
ok "what was above it is not to be seen from there ($said)" not grep -qE 'outside|agentbox-test|host-secret|state' <<<"$said"

# ---- P7, P11, P12, P14: processes that make it hard to end them ----
abctl run sh -s u/stubborn -p 'exec /tools/stubborn crowd' --json >"$T/out" 2>"$T/err" &
run=$!
there() { [ "$(jail_processes | wc -l)" -gt 20 ]; }
ok 'a crowd of stubborn processes' wait_for 30 there
jail_processes >"$T/crowd"
like 'with names like lines of /proc' "$(awk '{ print $2 }' "$T/crowd" | xargs ps -o comm= -p)" '\) R 1 1'
like 'some of them stopped' "$(awk '{print $3}' "$T/crowd")" '^T'
start=$(date +%s%N)
id=$(abctl ps --json | json 'l.runs[0].runId')
abctl cancel "$id" >/dev/null 2>&1
wait "$run"
ms=$((($(date +%s%N) - start) / 1000000))
ok "is ended with its run ($ms ms)" wait_for 2 no_jail_processes
is 'as cancelled' "$(json 'l.result.status' <"$T/out")" cancelled
# the same crowd where only the process that was started is ended: a session, a pid namespace and a
# cgroup are what it cannot leave
timeout 60 "$TESTS/fakes/lax" pidns "$T/tools" stubborn crowd-and-go </dev/null >"$T/out" 2>"$T/err"
ok "without a pid namespace the crowd outlives its first process ($(cat "$T/err"))" test "$(sed -n 's/^left: //p' "$T/err")" -gt 20
ok 'no process of a jail is left' wait_for 5 no_jail_processes
finish
