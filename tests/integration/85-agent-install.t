#!/usr/bin/env bash
# abctl agent install: fetched in a jail that reaches one registry, checked outside, unpacked without a network; nothing of a
# hostile package gets out, nothing of a failed install stays, and a run keeps the version it began with.
. tests/integration/network.sh
. tests/integration/lib.sh
. tests/integration/image.sh

for tool in npm node; do command -v $tool >/dev/null || skip_all "needs $tool"; done
A=$T/agents
install() { abctl agent install claude --agents "$A" --file "$T/yaml/$1.yaml" "${@:2}" >"$T/out" 2>"$T/err"; }
# refused PACKAGE WORDS [OPTIONS]: and everything is as before
refused() {
	local before
	before=$(find "$A" ! -name .lock -printf '%P %i\n' | sort)
	install "$1" "${@:3}" && { ok "$1 is refused" false; return; }
	like "$1: $2" "$(grep -v 'notice: this jail' "$T/err")" "$2"
	is 'nothing of it is left, what was there is' "$(find "$A" ! -name .lock -printf '%P %i\n' | sort)" "$before"
}
listing() { (cd "$A" && find . -mindepth 1 ! -name .lock -printf '%M %U %P\n' | sort -k 3); }

npm=$(sed -n 's/^  allow: \[\(.*\)\]$/\1/p' policy/builtin/install.yaml) # the host of npm's registry
ok 'an internet' internet "$npm" other.example || finish
mkdir -p "$T/yaml" "$T/etc/policy" "$T/etc/harnesses"
ok 'with a registry' python3 tests/integration/registry.py "$NET/srv" "$T/yaml" "$npm" || finish
printf -- '---\nbackend: claude\n---\n' >"$T/etc/harnesses/go.md"
printf 'extends: install\negress: { allow: [other.example] }\n' >"$T/etc/policy/other.yaml"
: >"$T/etc/agentboxd.yaml"
debian_image "$T/image" >/dev/null 2>&1 # of what every system has: a shell, no npm
printf 'extends: install\nfilesystem: { root: image, image: "%s" }\n' "$T/image" >"$T/etc/policy/bare.yaml"
unset npm_config_registry NPM_CONFIG_REGISTRY
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" --agents "$A" || finish

refused wrong 'not the pinned package: its digest is sha512-.*, agent.yaml says sha512-'
ok 'a package' install one
like 'is installed' "$(cat "$T/out")" "^claude 1.0.0 installed in $A/claude "
is 'what is taken of it, all of it root'"'"'s, nothing of it special' "$(listing)" "drwxr-xr-x 0 claude
-rw-r--r-- 0 claude/INSTALLED
-rw-r--r-- 0 claude/LICENSE
-rw-r--r-- 0 claude/VERSION
drwxr-xr-x 0 claude/bin
-rwxr-xr-x 0 claude/bin/claude
drwxr-xr-x 0 claude/data
drwxr-xr-x 0 claude/data/deep
-rw-r--r-- 0 claude/data/deep/text"
record() { json "l.$1" <"$A/claude/INSTALLED"; }
is 'the record' "$(record agent) $(record version) $(record package) $(record files)" 'claude 1.0.0 agent-one 4'
is 'has the digest' "$(record integrity)" "$(sed -n 's/^  integrity: //p' "$T/yaml/one.yaml")"
like 'when, and by what' "$(record installedAt) $(record by)" '^20[0-9-]*T[0-9:.]*Z npm [0-9.]+ node v[0-9.]+$'
is 'where agents are is known' "$(abctl version --json | json l.daemon.agentboxd.agents)" "$A"
is 'and which version is there' "$(abctl agent show claude --json | json l.installed)" 1.0.0

was=$(find "$A" -printf '%P %i %T@\n' | sort)
fetched=$(asked "$npm")
abctl agent install claude --file "$T/yaml/one.yaml" --json >"$T/out" 2>"$T/err"
is 'again: nothing to do' "$(json 'l.changed+" "+l.path+" "+l.record.version' <"$T/out")" "false $A/claude 1.0.0"
is 'nobody was asked' "$(asked "$npm")" "$fetched"
is 'nothing was touched' "$(find "$A" -printf '%P %i %T@\n' | sort)" "$was"
echo more >>"$A/claude/data/deep/text"
ok 'a file that somebody changed' install one
like 'makes it install anew' "$(cat "$T/out")" ' installed in '
is 'what was there is gone' "$(cat "$A/claude/data/deep/text")$(ls -A "$A" | tr '\n' ' ')" 'one.lock claude '

# ---- hostile packages, whose digests are right; more archives in tests/unit/abctl_untar.c ----
refused traversal "named 'package/lib/../../../evil'"
refused symlink "a link: 'package/lib/out'"
refused twice 'making bin/claude: File exists'
refused huge 'more than 2147483648 bytes'
refused endless 'goes on after its end'
refused missing 'has no cli, which agent.yaml takes of it'
refused nogzip 'agent-nogzip@1.0.0: gzip says that it is broken'
is 'nothing came out' "$(ls /tmp/agentbox-evil "$T/evil" "$A/evil" 2>/dev/null)" ''

# ---- what else goes wrong ----
refused nowhere 'has no agent-nowhere@1.0.0 \(E404\)'
refused two 'npm could not fetch agent-two@2.0.0 from its registry \([A-Z_]+\); may policy .offline. reach it' --policy offline
refused two 'egress denied: other.example' --registry https://other.example
refused two "policy 'none'" --policy none
refused two "npm and node fetch it, and the root that policy 'bare' shows has none" --policy bare
like 'no such agent' "$(abctl agent install nix 2>&1)" "usage: there is no agent 'nix'"
like 'a file about another' "$(abctl agent install pi --file "$T/yaml/two.yaml" 2>&1)" "about agent 'claude', not 'pi'"
like 'who is not root' "$(setpriv --reuid 65534 --clear-groups "$(realpath "$BIN")/abctl" --socket "$T/sock" agent install claude 2>&1)" 'usage: agents are installed by root'
like 'no daemon' "$("$BIN/abctl" --socket "$T/none" agent install claude 2>&1)" "system: .*$T/none"
chmod 775 "$A"
refused two "$A is not root's alone"
chmod 755 "$A"
exec 8>"$A/.lock" && flock 8
install two 8>&- &
two=$!
ok 'one at a time' wait_for 60 grep -q 'another abctl is changing the agents .*: waiting for it' "$T/err"
exec 8>&-
ok 'then the other' wait $two
mkdir "$T/small" && mount -t tmpfs -o size=4m,mode=755 none "$T/small"
abctl agent install claude --agents "$T/small" --file "$T/yaml/big.yaml" >"$T/out" 2>"$T/err"
like 'a disk that is full' "$(cat "$T/err")" 'No space left on device|File too large'
is 'is empty again' "$(ls -A "$T/small")" .lock
umount "$T/small"
mkdir -p "$A/.install-stale/new"
abctl agent install claude --file "$T/yaml/big.yaml" >"$T/out" 2>"$T/err" &
ok 'one is under way' wait_for 60 sh -c "ls -d $A/.install-??????"
is 'what a killed one left is gone' "$(ls -d "$A/.install-stale" 2>/dev/null)" ''
pkill -TERM -P $$ -f "yaml/big.yaml"
wait $!
like 'a signal ends it, or came too late' "$(cat "$T/err" "$T/out")" 'interrupted|installed in'
is 'nothing of it is left' "$(find "$A" -mindepth 1 -maxdepth 1 ! -name claude ! -name .lock ! -name '.old-*')" ''

# ---- a version that is in use ----
ok 'the first version again' install one
abctl run go -s in/use -p 'wait for it' --json >"$T/old" 2>/dev/null &
run=$!
ok 'a run works with it' wait_for 60 abctl exec in/use -- test -e /workspace/up
ok 'the second is installed' install two
like 'and the first kept' "$(cat "$T/out")" 'a replaced version is still used by a jail'
abctl run go -s another/one -p 'at once' --json >"$T/new" 2>/dev/null
is 'a new run has the second' "$(json l.result.finalText <"$T/new")" '2.0.0 two'
is 'in its parts, too' "$(cat "$A/claude/data/$(printf 'long/%.0s' $(seq 30))x")" x
abctl exec in/use -- touch /workspace/go
wait $run
is 'the old run had the first to its end' "$(json l.result.finalText <"$T/old")" '1.0.0 one'
ok 'its jail ends' wait_for 60 no_jail_processes
ok 'the next look' install two
is 'removes it' "$(ls -A "$A" | tr '\n' ' ')" '.lock claude '
ok 'rm' abctl agent rm claude
is 'removes the other' "$(ls -A "$A")" .lock
like 'and a run says how to get it' "$(abctl run go -s u/g -p x 2>&1)" 'remedy: abctl agent install claude'
like 'what is not there' "$(abctl agent rm claude 2>&1)" 'not installed'

# ---- another registry ----
ln -s "$npm" "$NET/srv/other.example"
ok 'by an option' install one --policy other --registry https://other.example
abctl agent rm claude >/dev/null
export HOME=$T/home
mkdir "$HOME"
echo 'registry = "https://other.example/"' >"$HOME/.npmrc"
ok "by npm's own settings" install one --policy other
is 'it was asked for all of it' "$(($(asked other.example) >= 4))" 1
ok 'nothing is left' wait_for 20 no_jail_processes
finish
