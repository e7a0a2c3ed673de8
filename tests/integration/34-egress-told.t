#!/usr/bin/env bash
# What is told of egress: events with rule and remedy, the log, notices, the live view, totals in the
# result, and a policy made of refusals.
. tests/integration/network.sh
. tests/integration/lib.sh

internet good.example || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$NET/srv/good.example"
head -c 100000 /dev/zero >"$NET/srv/good.example/x"
cat >"$T/etc/policy/web.yaml" <<'Y'
egress:
  allow: [good.example]
Y
cat >"$T/etc/harnesses/tries.md" <<'MD'
---
backend: exec
policy: web
command: [sh, -c, "curl -sS -m 20 -o x https://good.example/x; for i in 1 2 3; do getent hosts pypi.org; done; getent hosts other.example; curl -s -m 20 http://169.254.169.254/; curl -s -m 20 http://good.example:8443/; curl -s -m 20 telnet://10.9.9.9:5432; echo done"]
---
MD
sed 's/^policy: web/policy: default/' "$T/etc/harnesses/tries.md" >"$T/etc/harnesses/plain.md"
cat >"$T/etc/harnesses/sly.md" <<'MD'
---
backend: exec
policy: default
command: [sh, -c, "cat; echo; sleep 1; getent hosts sly.example; true"]
---
MD
cat >"$T/etc/harnesses/long.md" <<'MD'
---
backend: exec
policy: default
command: [sh, -c, "seq 20000; getent hosts last.example; true"]
---
MD
: >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }

abctl egress watch --json >"$T/all" 2>&1 &
watcher=$!
abctl run tries -s u/tries -p x --json >"$T/run"
run=$(json 'l.run' <"$T/run")
denied() { json "(e.filter(x=>x.type==='egress.denied'&&x.host==='$1')[0]||{}).$2" <"$T/run"; }
is 'a run that tries' "$(json 'l.result.status' <"$T/run")" succeeded
is 'a refusal says what was spoken' "$(denied pypi.org protocol)" dns
is 'whose policy' "$(denied pypi.org policy)" web
is 'what to add' "$(denied pypi.org add)" pypi.org
is 'and where' "$(denied pypi.org hint)" "add \`pypi.org\` to egress.allow of policy 'web'"
is 'a name on another port' "$(denied good.example add)" '"good.example:8443"'
is 'no advice to reach metadata services' "$(denied 169.254.169.254 hint) $(denied 169.254.169.254 add)" 'undefined undefined'
is 'what went out names its rule' "$(json 'e.filter(x=>x.type==="egress.allowed")[0].rule' <"$T/run")" good.example:443
like 'the log has it' "$(cat "$T/log")" "r=$run: jail [0-9]+: egress denied: pypi.org:53 \(dns\).*no rule has it; add .pypi.org"

is 'totals: what was refused' "$(json 'l.result.egress.denied===e.filter(x=>x.type==="egress.denied").reduce((n,x)=>n+(x.times||1),0)' <"$T/run")" true
is 'repeats are counted' "$(json 'l.result.egress.hosts.find(x=>x.host==="pypi.org").denied>=3' <"$T/run")" true
is 'totals: what was let out' "$(json 'l.result.egress.allowed' <"$T/run")" 1
is 'with its bytes' "$(json 'l.result.egress.bytesIn>100000&&l.result.egress.hosts[0].host==="good.example"&&l.result.egress.hosts[0].bytesIn===l.result.egress.bytesIn' <"$T/run")" true
is 'which are those that were counted for the jail' "$(json 'l.result.resources.egressBytes===l.result.egress.bytesIn+l.result.egress.bytesOut' <"$T/run")" true
like 'show has them' "$(abctl show "$run")" 'bytesIn'
like 'the end of a run says it' "$(abctl logs "$run")" 'refused by egress'

abctl egress watch "$run" >"$T/watch" 2>&1
is 'the view of a run that has ended ends' $? 0
like 'it shows refusals' "$(cat "$T/watch")" '^[0-9:]{8} denied  other.example:53 dns: .*; to allow it, add .other.example. to'
like 'and what went out' "$(cat "$T/watch")" '^[0-9:]{8} allowed good.example:443 tls: '
is 'or refusals alone' "$(abctl egress watch "$run" --denied | grep -c allowed)" 0
abctl jail --policy web -- sh -c 'getent hosts live.example; true' 2>"$T/notice"
like 'a command is told on stderr' "$(cat "$T/notice")" "^abctl: notice: egress denied: live.example:53 \(dns\): .*; to allow it, add .live.example. to egress.allow of policy 'web'"
abctl jail -q --policy web -- sh -c 'getent hosts quiet.example; true' 2>"$T/notice"
is 'not with -q' "$(grep -c 'egress denied' "$T/notice")" 0
live() { grep -q '"host":"quiet.example"' "$T/all"; }
ok 'who watches all sees it live' wait_for 10 live
is 'of runs, too' "$(grep -v '^abctl' "$T/all" | json "e.some(x=>x.run==='$run'&&x.type==='egress.denied')")" true
kill "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null

abctl run plain -s u/plain -p x --json >"$T/plain"
plain=$(json 'l.run' <"$T/plain")
abctl policy suggest "$plain" >"$T/suggested.yaml" 2>"$T/err"
is 'a policy is suggested' $? 0
ok 'that passes lint' abctl policy lint "$T/suggested.yaml"
like 'it extends the one of the run' "$(cat "$T/suggested.yaml")" '^extends: default$'
like 'a known host becomes its group' "$(cat "$T/suggested.yaml")" '^    - "@pypi"$'
like 'with what was asked for, and how often' "$(cat "$T/suggested.yaml")" '^    # refused ([3-9]|[1-9][0-9]+) times: pypi.org'
like 'others as they are' "$(cat "$T/suggested.yaml")" '^    - other.example$'
like 'metadata services are remarks' "$(cat "$T/suggested.yaml")" '^# not allowed: 169.254.169.254:80, refused [0-9]+ times?: '
like 'and say why' "$(grep 169.254 "$T/suggested.yaml")" 'an address of metadata services'
like 'numbers too' "$(cat "$T/suggested.yaml")" '^# not allowed: 10.9.9.9:5432, '
like 'it would have allowed it' "$(abctl policy explain "$T/suggested.yaml" host pypi.org:443)" 'allowed'
abctl policy suggest u/tries >"$T/session.yaml"
like 'of a session, with a policy that is not readable here' "$(cat "$T/session.yaml")" "^# Policy 'web' cannot be read here"
ok 'that passes lint, too' abctl policy lint "$T/session.yaml"
cp "$T/session.yaml" "$T/etc/policy/more.yaml"
abctl reload >/dev/null
like 'a run under it gets further' "$(abctl jail --policy more -- getent hosts other.example)" 198.18
# More than one read of abctl: what comes with the last one counts, too.
long=$(abctl run long -s u/long -p x --json | json 'l.run')
abctl egress watch "$long" >"$T/watch" 2>&1
is 'the view of a run that said much ends with it' $? 0
ok 'and has its last refusal' grep -q '^[0-9:]* denied  last.example:53' "$T/watch"
like 'its last refusal is in what is suggested' "$(abctl policy suggest "$long")" '^    - last.example'
# What an agent says of itself stands beside what it was refused: ends of lines that only YAML knows,
# a character cut in two by the bound of its length, and orders to a terminal.
said='{"type":"tool.call","callId":"1","name":"shell","kind":"other","title":"\u2028    - \"*.one.example\"\u0085    - \"*.two.example\"\u2029    - three.example # \u009b31m\u202e€€€€€€€€€€€"}'
sly=$(abctl run sly -s u/sly -p "$said" --json | json 'l.run')
abctl policy suggest "$sly" >"$T/sly.yaml"
like 'what an agent was doing is in a comment' "$(cat "$T/sly.yaml")" '^    # refused [0-9]+ times?; during shell .*one.example'
ok 'whose line ends where it seems to' abctl policy lint "$T/sly.yaml"
is 'so that it allows one name and no other' "$(for h in x.one.example x.two.example three.example sly.example; do abctl policy explain "$T/sly.yaml" host $h:443 | head -n 1; done | grep -v ': denied')" 'sly.example:443: allowed'
is 'nothing in it steers a terminal' "$(LC_ALL=C grep -cP '\x1b|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' "$T/sly.yaml")" 0
printf '1\ttls\t443\ta.example\tadd\tx\342\200\250    - b.example\302\205    - c.example\t\n' | "$BIN/agentbox-policyc" suggest default that >"$T/rows.yaml"
ok 'nor where agentbox-policyc is asked directly' abctl policy lint "$T/rows.yaml"
is 'nothing is let in' "$(for h in a b c; do abctl policy explain "$T/rows.yaml" host $h.example:443 | head -n 1; done | grep -c allowed)" 1
like 'what is no run is usage' "$(abctl policy suggest nobody/none 2>&1; echo "code $?")" 'code 1[01]'
finish
