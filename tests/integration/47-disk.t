#!/usr/bin/env bash
# limits.disk and limits.inodes of a session: held by the file system, whatever the host has room for,
# kept from run to run, for sessions that are older than their limit too, and nothing stays behind.
# Here by an image for each session: the state is on a file system that counts no projects.
. tests/integration/lib.sh
WANT=image
MANY=200
. tests/integration/disk.sh

# what cannot be taken over is refused, also where the policy only warns, and stays as it is
harness plain none "'i=0; while [ \$i -lt 600 ]; do touch p\$i; i=\$((i+1)); done; ls | wc -l'"
harness count none "'ls | wc -l'"
start_daemon --config "$T/etc/agentboxd.yaml"
run plain over
is 'more files than a limit' "$(result finalText)" 600
run true over
like 'that comes later' "$(result error)" 'layer limit.disk: .*\(remedy: .*limits.inodes'
is 'has no run without it' "$(result status)" failed
run count over
is 'and they are all there' "$(result finalText)" 600
stop_daemon

# a host with neither: loop devices that are none, in a mount namespace of the daemon's own
DAEMON_ENV=(unshare --mount --propagation private sh -c 'mount --bind /dev/null /dev/loop-control && exec "$@"' sh)
policy lost 'filesystem: { volatile: true }
limits: { disk: 8M }'
harness lost lost "'cat seeded; ls | wc -l; dd if=/dev/zero of=f bs=1M count=20 2>/dev/null; wc -c <f'" 'workspace: { seed: { "seeded": "sown" } }'
start_daemon --config "$T/etc/agentboxd.yaml"
is 'a host with neither says so' "$(abctl doctor --json | json 'l.layers.find(x=>x.layer==="limit.disk").have')" no
run must n
like 'what is required is refused' "$(cat "$T/out" "$T/err")" 'requires limit.disk'
run fill n
is 'what is not runs without' "$(started 'missing.includes("limit.disk")')$(started disk)$(result status)" truenonesucceeded
run clean c
like 'files in an image are not hidden by a host without devices' "$(result error)" 'disk.img|loop'
for i in 1 2; do
	run lost v
	is "a session that may be lost is in memory ($i)" "$(started disk) $(result 'finalText.split("\n").join(" ")')" 'tmpfs sown1 8384512' # a page has the seed
done
stop_daemon
finish
