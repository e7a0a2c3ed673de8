#!/usr/bin/env bash
# images.sh life NUMBER|after [MOUNT-OPTION] - as power.sh, for sessions whose files are moved from directories
# into an image and from image to image.
#
#	life	runs that write files, sync them and say so (images.py), until the power goes
#	after	what the files of each session are then, and what is on the disk besides
set -eu
. tests/vm/inside/daemon.sh

state_disk "${3:-}"
# Another number of files is another image, so that each run in turn has the session's files copied.
printf 'extends: default\nlimits: { disk: 64M, inodes: 2000 }\n' >/etc/agentbox/policy/some.yaml
printf 'extends: default\nlimits: { disk: 64M, inodes: 3000 }\n' >/etc/agentbox/policy/more.yaml
printf 'extends: default\n' >/etc/agentbox/policy/none.yaml
for policy in none some more; do
	# shellcheck disable=SC2016 # for the shell in the jail
	harness $policy 'read n; yes $n | head -c 1000000 >f$n && sync f$n . && echo kept $n; rm -f f$((n - 12))' "policy: $policy"
done
harness look 'sha256sum f*' 'policy: some'
start
[ "$1" = after ] || exec python3 tests/vm/inside/images.py $SOCKET life "$2" "$DAEMON"
status=0
python3 tests/vm/inside/images.py $SOCKET after "$VM_OUT/after.json" || status=$?
stop || status=$?
{
	losetup -a | grep $STATE && echo 'a loop device is left'
	cd $STATE/state/sessions
	find . -mindepth 2 -maxdepth 2 ! -name disk.img
	for image in [0-9a-f]*/disk.img; do e2fsck -fn "$image" >/dev/null 2>&1 || echo "$image is not clean"; done
} >"$VM_OUT/left"
cd /
umount $STATE
exit $status
