#!/usr/bin/env bash
# Policies and harnesses: strict refuses by name, narrowing only narrows, hot
# reload, egress refusals as events.
. tests/integration/lib.sh

mkdir -p "$T/etc/policy" "$T/etc/harnesses"
cat >"$T/etc/policy/tight.yaml" <<'Y'
extends: default
description: a tighter one
limits: { memory: 512M, pids: 64, nofile: 256, tmp: 1M }
Y
cat >"$T/etc/policy/binds.yaml" <<Y
extends: default
filesystem:
  bindable:
    - { source: $T/data, writable: true }
    - { source: /usr/share/doc }
Y
mkdir "$T/data"
echo from-host >"$T/data/file"
chmod 755 "$T/data"
h() { cat >"$T/etc/harnesses/$1.md"; }
h strict <<'Y'
---
backend: exec
policy: strict
command: [echo, hi]
---
Y
h nothing <<'Y'
---
backend: exec
command: [/no/such/program]
---
Y
h wide <<'Y'
---
backend: exec
policy: tight
command: [echo, hi]
limits: { memory: 8G }
---
Y
h edit <<'Y'
---
backend: exec
command: [echo, version one]
---
Y
h net <<'Y'
---
backend: exec
command: [sh, -c, 'curl -sS -m 30 https://registry.example/x; curl -sS -m 30 http://1.2.3.4/; curl -sS -m 30 https://1.2.3.4/; curl -sS -m 30 http://9.9.9.9:8080/; curl -sS -m 30 http://anthropic.agentbox/v1/models; true']
---
Y
h late <<'Y'
---
backend: exec
command: [sh, -c, 'mkdir out; echo partial >out/p.txt; sleep 100']
artifacts: [out/*]
limits: { timeoutMs: 1000 }
---
Y
h data <<'Y'
---
backend: exec
command: [/etc/passwd]
---
Y
cat >"$T/etc/policy/pids.yaml" <<'Y'
extends: default
layers: { limit.pids: require }
Y
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }

abctl run nothing -s u/nothing -p x --json >"$T/out" 2>"$T/err"
is 'a program that is not there fails the run' $? 1
is 'with a code as a shell would' "$(json 'l.result.exit.reason+" "+l.result.exit.code' <"$T/out")" 'not started 127'

abctl run data -s u/data -p x --json >"$T/out" 2>"$T/err"
is 'a file that is no program' "$(json 'l.result.exit.reason+" "+l.result.exit.code' <"$T/out")" 'not started 126'
like 'is told of' "$(json 'l.result.error' <"$T/out")" "'/etc/passwd' could not be started: .*Permission denied"

doctor=$(abctl doctor --json)
missing=$(node -e 'const d=JSON.parse(process.argv[1]);console.log(d.layers.filter(l=>l.have==="no").map(l=>l.layer).join(" "))' "$doctor")
echo "# layers that this host lacks: $missing"
abctl doctor >"$T/doctor"
is 'doctor: the default policy can be met' $? 0
like 'doctor names each layer' "$(cat "$T/doctor")" 'seccomp'
abctl run strict -s u/s -p x --json >"$T/out" 2>"$T/err"
status=$?
if [ -n "$missing" ]; then
	is 'strict is refused where a layer lacks: the system' $status 111
	like 'and its last line says so, with the remedy' "$(tail -n 1 "$T/err")" \
		"^abctl: system: policy 'strict' requires ${missing%% *} .*; remedy: ."
	ok 'before there is a run' test ! -s "$T/out"
	is 'nor is one kept' "$(abctl runs -s u/s --json | json 'l.runs.length')" 0
	curl -sS --unix-socket "$T/sock" http://x/v1/runs -o "$T/out" -w '%{http_code}' \
		-d '{"session":{"userId":"u","goalId":"s"},"harness":"strict","prompt":"x"}' >"$T/code"
	is 'over HTTP it is 422' "$(cat "$T/code")" 422
	is 'and policy_unmet' "$(json 'l.type' <"$T/out")" urn:agentbox:error:policy_unmet
	like 'that names policy, layer and remedy' "$(json 'l.detail' <"$T/out")" "'strict' requires ${missing%% *} .*; remedy: ."
	like 'and the list of harnesses says so' "$(abctl harness ls --json | json 'l.harnesses.find(x=>x.name=="strict").error')" "requires ${missing%% *}"
	is 'doctor says so, too' "$(abctl doctor --policy strict >"$T/out"; echo $?)" 1
	like 'by name, with the remedy' "$(cat "$T/out" "$T/err")" "${missing%% *}.*remedy|remedy.*${missing%% *}"
	abctl jail --policy strict -- true >"$T/out" 2>&1
	ok 'for a jail too' test $? -ge 100
else
	is 'strict runs where every layer is there' "$(json 'l.result.status' <"$T/out")" succeeded
fi
abctl jail --policy pids -- true >"$T/out" 2>&1
jailed=$?
abctl doctor --policy pids >"$T/out" 2>&1
is 'where a layer is required, doctor and the jail agree about what stands in for it' $? $((jailed ? 1 : 0))
abctl run wide -s u/w -p x --json >"$T/out" 2>"$T/err"
ok 'a harness cannot widen its policy' test $? -ne 0
like 'the refusal names the limit' "$(cat "$T/out" "$T/err")" memory
is 'rlimits of the policy are in force' "$(abctl jail --policy tight -- sh -c 'ulimit -n' 2>/dev/null)" 256
is 'a narrower one from the command line too' "$(abctl jail --policy tight --limit nofile=100 -- sh -c 'ulimit -n' 2>/dev/null)" 100
abctl jail --policy tight --limit nofile=1000 -- true 2>"$T/err"
is 'a wider one is refused: what was asked is at fault' $? 100
abctl jail --limit memory=512MB -- true 2>"$T/err"
is 'a size that is none' $? 100
like 'is told what one is' "$(cat "$T/err")" "usage: limits.memory: '512MB' is not a size: bytes, or with K, M, G or T"
abctl jail --limit memory=1M -- true 2>"$T/err"
like 'one that is too small, what the least is' "$(cat "$T/err")" 'limits.memory: 1M is too small, the least is 32M'
post() { curl -sS --unix-socket "$T/sock" http://x/v1/jails -H 'Connection: Upgrade' -H 'Upgrade: agentbox-stdio' -d "$1"; }
is 'a limit twice in a body' "$(post '{"argv":["true"],"limits":{"memory":"1G","memory":"2G"}}' | json 'l.status+" "+l.detail')" '400 limits.memory: given twice'
is 'a variable twice' "$(post '{"argv":["true"],"env":{"A":"1","A":"2"}}' | json 'l.status+" "+l.detail')" '400 env.A: given twice'
ok 'the size of /tmp is bounded' not sh -c "$BIN/abctl --socket $T/sock jail --policy tight -- dd if=/dev/zero of=/tmp/f bs=64k count=100 2>/dev/null"
forks=$(abctl jail --policy tight -- sh -c 'i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done 2>&1; jobs | wc -l' 2>&1)
like 'the number of processes is bounded (pids or RLIMIT_NPROC)' "$forks" 'annot fork|temporarily unavailable'

is 'a bind shows the file' "$(abctl jail --policy binds --bind "$T/data:/mnt/data" -- cat /mnt/data/file 2>/dev/null)" from-host
ok 'read-only unless asked' not abctl jail --policy binds --bind "$T/data:/mnt/data" -- sh -c 'echo x >/mnt/data/new'
abctl jail --policy binds --bind "/etc:/mnt/etc" -- true 2>"$T/err"
is 'what root does not list cannot be bound: what was asked is at fault' $? 100
like 'and is said' "$(cat "$T/err")" 'bindable|/etc'
ln -s /etc "$T/data/link"
ok 'not even through a link' not abctl jail --policy binds --bind "$T/data/link:/mnt/etc" -- true
ok 'nor in default' not abctl jail --bind "$T/data:/mnt/data" -- true

like 'policy ls' "$(abctl policy ls)" 'strict'
like 'policy show' "$(abctl policy show tight --json)" '536870912|512'
printf 'limits: { memroy: 1G }\n' >"$T/bad.yaml"
abctl policy lint "$T/bad.yaml" >"$T/out" 2>&1
ok 'policy lint fails' test $? -eq 1
like 'with line and suggestion' "$(cat "$T/out")" "bad.yaml:1: .*memroy.*memory"
printf -- '---\nbackend: exec\ncomand: [x]\n---\n' >"$T/bad.md"
ok 'harness lint fails' not abctl harness lint "$T/bad.md"
like 'with line and suggestion' "$(abctl harness lint "$T/bad.md" 2>&1)" "bad.md:3: .*comand.*command"
like 'policy explain a call' "$(abctl policy explain default --syscall mount)" 'EPERM'
like 'policy explain a host' "$(abctl policy explain default --host example.com:443)" 'refused|denied|not'
like 'of agentbox, which inject makes' "$(abctl policy explain default --host mine.agentbox)" 'egress.inject: .*host: mine.agentbox'
printf '%s\n' 'extends: default' 'egress: { allow: [{ addresses: [0.0.0.0/0], protocol: raw, ports: [5432] }] }' >"$T/wide.yaml"
like 'a special address below a wide network' "$(abctl policy explain "$T/wide.yaml" --host 10.0.0.5:5432)" 'wider than the special range .*named by itself'
like 'and a public one' "$(abctl policy explain "$T/wide.yaml" --host 8.8.8.8:5432)" 'allowed'

# hot reload
first() { abctl run edit -s u/e -p x --json | json 'l.result.finalText'; }
like 'version one' "$(first)" one
sed -i 's/version one/version two/' "$T/etc/harnesses/edit.md"
ok 'an edit is picked up' wait_for 5 sh -c "$BIN/abctl --socket $T/sock run edit -s u/e -p x --json | grep -q 'version two'"
printf -- '---\nbackend: exec\ncommand: [echo, three\n' >"$T/etc/harnesses/edit.md"
sleep 1
like 'a broken save keeps the old version' "$(first)" two
like 'and says so' "$(abctl harness ls --json; cat "$T/log")" 'edit\.md:[0-9]+'
printf -- '---\nbackend: exec\ncommand: [echo, new]\n---\n' >"$T/etc/harnesses/added.md"
ok 'a new file is picked up' wait_for 5 sh -c "$BIN/abctl --socket $T/sock run added -s u/n -p x --json"
cat >"$T/etc/policy/tight.yaml" <<'Y'
extends: default
limits: { nofile: 128 }
Y
ok 'reload of policies' abctl reload
is 'takes the new one' "$(abctl jail --policy tight -- sh -c 'ulimit -n' 2>/dev/null)" 128
echo 'limits: [' >"$T/etc/policy/tight.yaml"
ok 'a broken one is refused' not abctl reload
is 'and the old one stays' "$(abctl jail --policy tight -- sh -c 'ulimit -n' 2>/dev/null)" 128
chmod 666 "$T/etc/policy/tight.yaml"
ok 'a policy that others can write is refused' not abctl reload

# artifacts of a run that did not end well
abctl run late -s u/l -p x --json >"$T/out"
is 'a timeout' "$(json 'l.result.status' <"$T/out")" timeout
is 'still yields its artifacts' "$(json 'l.result.artifacts.map(a=>a.path).join()' <"$T/out")" out/p.txt

# A name that was answered is no leave to connect: the policy is asked again by each request.
named() { printf 'extends: offline\negress: { inject: [ %s ] }\n' "$1" >"$T/etc/policy/named.yaml"; }
named '{ host: a.agentbox, upstream: "http://127.0.0.1:9", allow_loopback: true }, { host: b.agentbox, upstream: "http://127.0.0.1:9", allow_loopback: true }'
echo 'extends: default' >"$T/etc/policy/tight.yaml"
chmod 644 "$T/etc/policy/tight.yaml"
ok 'reload with a policy of two names' abctl reload
asks() { # HOST [ADDRESS]: the code that a jail gets from the host, of its own address or of that one
	abctl jail --policy named -- curl -sS -m 30 -o /dev/null -w '%{http_code} %{remote_ip}' ${2:+--resolve "$1:80:$2"} "http://$1/" 2>/dev/null
}
reply=$(asks a.agentbox)
is 'a name of the policy goes out, where nobody listens' "${reply% *}" 502
named '{ host: b.agentbox, upstream: "http://127.0.0.1:9", allow_loopback: true }'
ok 'reload without that name' abctl reload
is 'it is answered no more' "$(asks a.agentbox)" '000 '
is 'and where its address is known still, the request is refused' "$(asks a.agentbox "${reply#* }")" "403 ${reply#* }"
is 'while the other goes out by that address' "$(asks b.agentbox "${reply#* }")" "502 ${reply#* }"

# What is asked for while root's files are read again is made under the policy of that name then.
h named <<'Y'
---
backend: exec
policy: tight
command: [sh, -c, 'ulimit -n']
---
Y
reader() { pgrep -P "$DAEMON" | grep -vxF "$served"; } # the child that reads the files
read_by_now() { ! pgrep -P "$DAEMON" -r R,S,D | grep -qvxF "$served"; }
meanwhile() { # COMMAND...: asked for under the policies of before, made under those of after
	local served
	served=$(pgrep -P "$DAEMON")
	kill -HUP "$DAEMON"
	for _ in $(seq 200); do reader >/dev/null && break; done
	kill -STOP "$DAEMON"
	ok 'the files are read' wait_for 20 read_by_now
	"$@" >"$T/out" 2>"$T/err" &
	local asking=$!
	sleep 0.5
	kill -CONT "$DAEMON"
	wait $asking
}
ok 'a harness more' wait_for 10 sh -c "$BIN/abctl --socket $T/sock harness ls 2>&1 | grep -q named"
printf 'extends: default\nlimits: { nofile: 77 }\n' >"$T/etc/policy/tight.yaml"
echo 'extends: default' >"$T/etc/policy/another.yaml" # so that it has another number
chmod 644 "$T/etc/policy/another.yaml"
meanwhile abctl run named -s u/named -p x
like 'a run' "$(cat "$T/out")" '^77$'
printf 'extends: default\nlimits: { nofile: 78 }\n' >"$T/etc/policy/tight.yaml"
rm "$T/etc/policy/another.yaml"
meanwhile abctl jail --policy tight -- sh -c 'ulimit -n'
is 'a jail, and its command' "$(cat "$T/out")" 78
rm "$T/etc/policy/tight.yaml"
meanwhile abctl jail --policy tight -- true
like 'a policy that is gone' "$(cat "$T/err")" "no policy 'tight' \(there are: "

# egress: fails at once, with an event that names the host
start=$(date +%s%N)
abctl run net -s u/net -p x --json >"$T/out"
ms=$((($(date +%s%N) - start) / 1000000))
ok "five refused attempts fail fast (${ms} ms)" test $ms -lt 15000
denied=$(json 'e.filter(x=>x.type==="egress.denied").map(x=>x.host+":"+x.port).join(" ")' <"$T/out")
like 'a name' "$denied" 'registry\.example'
like 'an address on 80' "$denied" '1\.2\.3\.4:80( |$)'
like 'an address on 443' "$denied" '1\.2\.3\.4:443'
like 'an address on another port' "$denied" '9\.9\.9\.9:8080'
like 'a name whose secret is not configured says so' "$(cat "$T/out")" 'ANTHROPIC_API_KEY'
finish
