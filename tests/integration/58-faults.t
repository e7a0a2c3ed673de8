#!/usr/bin/env bash
# Every system call that agentboxd and its children make from a request for a jail until it is gone,
# failing once: no leak, a clear word, no uid block reused early, and the next jail works.  FAULTS=all
# (make faults) takes each occurrence with each error; here each place in the code is tried once.
# In a mount namespace of the test's own: what others mount meanwhile is not counted.
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private -- bash "$0" inside
fi
. tests/integration/lib.sh

# A traced task stops twice a call: on a busy machine it would wait for its turn each time.  Where the
# scheduler groups by session, the group's share is what counts.
renice -n -15 -p $$ >/dev/null
[ ! -w /proc/self/autogroup ] || echo -15 >/proc/self/autogroup
mkdir -p "$T/etc/harnesses" "$T/etc/policy"
echo 'ports: [3000]' >"$T/etc/policy/web.yaml"
cat >"$T/etc/harnesses/said.md" <<'MD'
---
name: said
description: says that it lives and leaves a file
backend: exec
command: [sh, -c, "mkdir -p out && echo x >out/file && echo alive"]
artifacts: [out/*]
---
MD
printf 'runs:\n  pool: %d\ndefault_policy: web\n' "${FAULTS_POOL:-0}" >"$T/etc/agentboxd.yaml"
# One whose files are in an image: made, mounted, deleted by children of agentboxd.
cat >"$T/etc/harnesses/held.md" <<'MD'
---
name: held
description: says that it lives, with its files in an image
backend: exec
policy: held
command: [sh, -c, "echo alive >file && cat file"]
---
MD
printf 'limits: { disk: 16M, inodes: 200 }\nlayers: { limit.disk: require }\n' >"$T/etc/policy/held.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
cli="$BIN/abctl --socket $T/sock"
# A port of a living jail on which nobody listens: what is said of it has been there and back.
cat >"$T/port" <<S
$cli exec u/p -- sleep 100 >$T/port.out 2>&1 &
held=\$!
for i in \$(seq 300); do
	$cli session show u/p | grep -q ^jail && break
	kill -0 \$held 2>/dev/null || break
	sleep 0.1
done
said=\$($cli forward u/p --stdio 3000 2>&1 </dev/null)
kill \$held
(sleep 2; kill \$held) 2>/dev/null & # where the first was lost on its way
again=\$!
wait \$held
kill \$again 2>/dev/null
case \$said in
*'nothing in the jail listens'*) echo alive ;;
*) echo "\$said"; cat $T/port.out; exit 1 ;;
esac
S
abctl run said -s u/p -p x >/dev/null
images=()
if abctl run held -s u/i -p x >/dev/null 2>&1; then
	images=(::few /bin/sh -c "r=0; $cli run held -s u/i -p x || r=1; $cli session rm u/i || r=1; exit \$r")
	abctl session rm u/i >/dev/null
elif [ "${AGENTBOX_MUST_WORK:-0}" = 1 ]; then
	skip_all 'no image by loop device'
else
	echo '# no image by loop device here: its steps are not tried'
fi
# A session on a snapshot and a template, and a snapshot that comes and goes: where all is tried.
snapshots=()
if [ "${FAULTS:-quick}" = all ]; then
	mkdir -p "$T/etc/templates/t"
	echo t >"$T/etc/templates/t/t"
	cat >"$T/etc/harnesses/stand.md" <<'MD'
---
name: stand
description: says that it lives, on a snapshot
backend: exec
command: [sh, -c, "rm -f out/file && cat t && echo alive"]
workspace: { snapshot: base, template: t }
---
MD
	abctl reload >/dev/null
	abctl snapshot create base --from u/p >/dev/null || exit 1
	snapshots=(:: /bin/sh -c "r=0; $cli run stand -s u/x -p x || r=1; $cli session rm u/x || r=1; exit \$r" ::
		/bin/sh -c "r=0; $cli snapshot create two --from u/p || r=1; $cli snapshot ls || r=1; $cli snapshot rm two && echo alive || r=1; exit \$r")
fi
"$TESTS/faults/inject" "$DAEMON" "$(daemon_cgroup)" "$T/state" "${FAULTS:-quick}" \
	"$BIN/abctl" --socket "$T/sock" jail -- /bin/echo alive :: \
	/bin/sh -c "r=0; $cli run said -s u/f -p x || r=1; $cli session rm u/f || r=1; exit \$r" :: \
	/bin/sh "$T/port" "${images[@]}" "${snapshots[@]}"
