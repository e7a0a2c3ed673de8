#!/usr/bin/env bash
# abctl pack: harnesses from a directory, archives, npm and git; what they want is refused until root grants it, also when a file of
# theirs changes later; archives that try more than files are refused (more of them in
# tests/unit/abctl_untar.c), and nothing of them stays.
. tests/integration/network.sh
. tests/integration/lib.sh

for tool in npm node git curl; do command -v $tool >/dev/null || skip_all "needs $tool"; done
H=$T/etc/harnesses
P=$H/packs
pack() { abctl pack "$@" --harnesses "$H" >"$T/out" 2>"$T/err"; }
listing() { [ ! -d "$P" ] || find "$P" -mindepth 1 ! -name .lock -printf '%P %i\n' | sort; }
# refused WORDS ARGUMENTS...: and everything is as before
refused() {
	local words=$1 before
	shift
	before=$(listing)
	pack "$@" && { ok "$* is refused" false; return; }
	like "$*: $words" "$(cat "$T/err")" "$words"
	is 'nothing of it is left, what was there is' "$(listing)" "$before"
}
says() { abctl run "$1" -s "$1/x" -p x --json 2>"$T/err" | tail -n 1 | json l.result.finalText; }

npm=$(sed -n 's/^  allow: \[\(.*\)\]$/\1/p' policy/builtin/install.yaml)
ok 'an internet' internet "$npm" packs.example || finish
mkdir -p "$T/etc/policy" "$H" "$T/src/harnesses" "$T/archives"
ok 'archives' python3 tests/integration/pack_archives.py "$T/archives" "$NET/srv" "$npm" || finish
printf 'extends: install\negress: { allow: [packs.example] }\n' >"$T/etc/policy/packs.yaml"
printf 'extends: offline\n' >"$T/etc/policy/other.yaml"
: >"$T/etc/agentboxd.yaml"
unset npm_config_registry NPM_CONFIG_REGISTRY
export HOME=$T/home
mkdir "$HOME"
ok 'the daemon' start_daemon --config "$T/etc/agentboxd.yaml" || finish

# ---- a directory, and what it wants ----
harness() { printf -- "---\nbackend: exec\n%bcommand: [sh, -c, 'echo %s']\n---\n" "$2" "$3" >"$T/src/harnesses/$1.md"; }
harness plain 'secrets: []\n' plain
harness greedy 'policy: other\n' greedy
echo '{"name":"mine","version":"1.0","description":"a pack"}' >"$T/src/agentbox-pack.json"
mkdir "$T/src/.git" && echo secret >"$T/src/.git/config"
refused "usage: pack 'mine' is not installed as it is: .*--grant 'policy:other,secrets:\*'" add "$T/src"
like 'and says where' "$(cat "$T/err")" 'policy:other \(harnesses/greedy.md:3\)'
refused 'nothing in the pack asks for that' add "$T/src" --grant 'secrets:OTHER'
ok 'granted, it is installed' pack add "$T/src" --grant 'policy:other' --grant 'secrets:*'
like 'and shown' "$(cat "$T/out")" '^mine 1.0 installed in .*/packs/mine'
is 'its harness runs without a restart' "$(says mine.plain)" plain
is 'the other, too' "$(says mine.greedy)" greedy
is 'whose it is' "$(abctl harness show mine.plain --json | json l.pack)" mine
is 'only root changes it; no .git' "$(find "$P/mine" \( ! -user 0 -o -perm /022 -o -name .git \) | wc -l)" 0
pack show mine --json
is 'the lock' "$(json 'l.source+" "+l.version+" "+l.grants.join()' <"$T/out")" "$T/src 1.0 policy:other,secrets:*"
refused "pack 'mine' is installed" add "$T/src" --grant 'secrets:*,policy:other'
like 'ls' "$(abctl pack ls --harnesses "$H")" '^mine +1.0 '
ok 'verify' pack verify
not abctl pack verify --harnesses "$T/typo" 2>"$T/err"
like 'which finds nothing right where there is nothing' "$(cat "$T/err")" "--harnesses: $T/typo: No such file or directory"

# ---- files that change on the disk ----
sed -i 's/secrets: \[\]/secrets: []\nenv: [HOME]/' "$P/mine/harnesses/plain.md"
touch "$H"
like 'what it was not granted is refused at load' "$(abctl run mine.plain -s u/a -p x 2>&1)" \
	"packs/mine/harnesses/plain.md:4: its pack is not granted 'env:HOME'"
pack verify mine
is 'verify fails' "$?$(cat "$T/out")" '1mine: its files are not those that were installed'
mv "$P/mine/INSTALLED" "$T/record"
touch "$H"
like 'without its record none is used' "$(abctl run mine.greedy -s u/b -p x 2>&1)" 'packs/mine/INSTALLED'
mv "$T/record" "$P/mine/INSTALLED"

# ---- update ----
harness plain 'secrets: [TOKEN]\n' wants
refused "--grant 'secrets:TOKEN'" update mine
harness plain 'secrets: []\nwebhooks: [tell]\n' wants
refused "--grant 'webhooks:tell'" update mine
harness plain 'secrets: []\n' newer
rm "$T/src/harnesses/greedy.md"
ok 'an update that wants no more' pack update mine
like 'says what changes' "$(cat "$T/out")" 'mine.plain \(changed\)'
like 'and what goes' "$(cat "$T/out")" 'mine.greedy \(removed\)'
is 'is in use' "$(says mine.plain)" newer
pack show mine --json
is 'grants that nothing wants any more are gone' "$(json 'l.grants.length' <"$T/out")" 0
ok 'again' pack update
like 'is nothing' "$(cat "$T/out")" 'mine 1.0 is as it was'
printf -- "---\nname: mine.plain\nbackend: exec\ncommand: [echo, of root]\n---\n" >"$H/own.md"
is "root's own wins" "$(says mine.plain)" 'of root'
ln -s /etc/shadow "$T/src/harnesses/out.md"
refused 'is a link' update mine
rm "$T/src/harnesses/out.md" "$H/own.md"
mkdir -p "$P/.install-stale/new"

# ---- rm ----
ok 'rm' pack rm mine
like 'its harnesses are gone' "$(abctl run mine.plain -s u/c -p x 2>&1)" "no harness 'mine.plain'"
refused 'not installed' rm mine

# ---- manifests and harnesses ----
bad() { echo "$1" >"$T/src/agentbox-pack.json" && refused "$2" add "$T/src"; }
bad '{"name":"../up"}' "'name' must be a name"
bad '{"name":"a","harnesses":"../../etc"}' "'harnesses' must be a relative path"
bad '{"name":"a","harnesses":"/etc"}' "'harnesses' must be a relative path"
bad '{"name":"a","postinstall":"sh"}' "unknown key 'postinstall'"
bad '{' 'agentbox-pack.json'
bad '{"name":"a","name":"b"}' "'name' is there twice"
bad '{"na\u0000me":"a"}' 'a NUL character'
bad $'{"version":"\xff"}' "'version' must be one line of text"
rm "$T/src/agentbox-pack.json"
printf -- '---\nbackend: exec\nnonsense: 1\ncommand: [x]\n---\n' >"$T/src/harnesses/bad.md"
refused "packs/src/harnesses/bad.md:3: .*'nonsense'" add "$T/src"
printf -- '---\nname: plain\nbackend: exec\nsecrets: []\ncommand: [x]\n---\n' >"$T/src/harnesses/bad.md"
refused "packs/src/harnesses/plain.md: another file of the pack is called 'src.plain'" add "$T/src"
printf -- '---\nbackend: exec\nsecrets: []\nworkspace: { repo: "https://h.example/a,b.git" }\ncommand: [x]\n---\n' >"$T/src/harnesses/bad.md"
refused "--grant 'repo:https://h.example/a,b.git'" add "$T/src"
printf '{"version":"1\302\233","description":"\342\200\256"}' >"$T/src/agentbox-pack.json"
ok 'what it says to grant is taken' pack add "$T/src" --grant 'repo:https://h.example/a,b.git'
like 'a version does not steer a terminal' "$(cat "$T/out")" '^src 1<U\+009B> installed'
pack rm src
rm "$T/src/agentbox-pack.json"
mkdir "$T/src/INSTALLED"
refused 'INSTALLED is where its record will be' add "$T/src"
rmdir "$T/src/INSTALLED"
printf -- '---\npipeline: [{ harness: hello, prompt: x }]\n---\n' >"$T/src/harnesses/bad.md"
refused 'a pack has no pipelines' add "$T/src"

# ---- archives ----
ok 'an archive' pack add "$T/archives/good.tgz"
is 'its harness' "$(says good.say)" 'of an archive'
ok 'one without a directory above' pack add "$T/archives/flat.tgz"
mkdir "$T/of-dot" && tar -xzf "$T/archives/flat.tgz" -C "$T/of-dot" && tar -czf "$T/archives/of-dot.tgz" -C "$T/of-dot" .
ok 'one of .' pack add "$T/archives/of-dot.tgz" --name of-dot
is 'its harness' "$(says of-dot.say)" 'of an archive'
ok 'one that brings a record of its own' pack add "$T/archives/record.tgz"
is 'has ours' "$(json 'l.grants.length+l.pack' <"$P/record/INSTALLED")$(stat -c %u "$P/record/INSTALLED")" 0record0
ok 'a long name' pack add "$T/archives/long.tgz"
while read -r name words; do refused "$words" add "$T/archives/$name.tgz"; done <<'END'
symlink a link
dots an empty part, '.' or '..'
twice File exists
case letters' case
gnu an entry of kind 0x4c
deep too deep
huge more than 16777216 bytes
nul in no way that is known
END
is 'nothing came out' "$(ls /tmp/agentbox-evil 2>/dev/null)" ''

# ---- from elsewhere ----
ok 'npm' pack add npm:agent-pack@3.1.4 --name fromnpm
is 'its harness' "$(says fromnpm.say)" 'of an archive'
like 'its version and digest' "$(cat "$P/fromnpm/INSTALLED")" '"version":"3.1.4".*"integrity":"sha512-'
refused 'does policy .install. allow packs.example' add https://packs.example/good.tgz
ok 'a URL' pack add https://packs.example/good.tgz --name url --policy packs
refused 'status 22' add https://packs.example/none.tgz --policy packs
git init -q -b main "$T/repo" && cp -r "$T/src/harnesses" "$T/repo/" && rm "$T/repo/harnesses/bad.md"
in_repo() { git -C "$T/repo" -c user.name=x -c user.email=x@y "$@"; }
in_repo add -A && in_repo commit -qm one && git clone -q --bare "$T/repo" "$NET/srv/packs.example/tools.git"
git -C "$NET/srv/packs.example/tools.git" config uploadpack.allowAnySHA1InWant true
ok 'git' pack add https://packs.example/tools.git --policy packs
is 'its commit' "$(json l.commit <"$P/tools/INSTALLED")" "$(in_repo rev-parse HEAD)"
is 'its harness' "$(says tools.plain)" newer
sed -i s/newer/newest/ "$T/repo/harnesses/plain.md"
in_repo commit -qam two && in_repo push -q "$NET/srv/packs.example/tools.git" main
ok 'its update' pack update tools --policy packs
is 'is in use' "$(says tools.plain)" newest
ok 'a branch' pack add "https://packs.example/tools.git#main" --name branch --policy packs
mv "$NET/srv/packs.example/tools.git" "$T/away.git"
refused 'git could not fetch' update tools --policy packs
echo '{"name":"zz"}' >"$T/src/agentbox-pack.json"
harness bad 'secrets: []\n' old
ok 'one more' pack add "$T/src"
harness bad 'secrets: []\n' new
rm -r "$P/branch" "$P/fromnpm"
pack update --policy packs
is 'of all, one that cannot be updated' $? 111
like 'does not keep the others from it' "$(cat "$T/out")" 'zz.bad \(changed\)'
for s in git@packs.example:x.git ssh://x/y.git http://packs.example/x.tgz https://a:b@packs.example/x.git npm:../x npm:a/b https://packs.example/x; do
	refused usage: add "$s"
done
like 'who is not root' "$(setpriv --reuid 65534 --clear-groups "$(realpath "$BIN")/abctl" --socket "$T/sock" pack add "$T/src" 2>&1)" "usage: packs are root's"
ok 'nothing is left' wait_for 20 no_jail_processes
is 'nor of the making' "$(find "$P" -maxdepth 1 -name '.*' ! -name .lock)" ''
finish
