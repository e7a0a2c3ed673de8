#!/usr/bin/env bash
# A run's checkout: brought by a clone in its jail, and what has become of it as a patch and a bundle.
. tests/integration/network.sh
. tests/integration/lib.sh

internet good.example private.example slow.example || { echo 'not ok 1 - an internet'; echo 1..1; exit 1; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
work=$NET/work
g() { git -C "$work" -c user.name=t -c user.email=t@t "$@"; }
git init -q -b main "$work"
printf 'one\ntwo\n' >"$work/file"
mkdir "$work/dir" && echo deep >"$work/dir/deep" && printf '\0\1\2' >"$work/binary"
printf 'ignored\n*.log\n' >"$work/.gitignore"
g add -A && g commit -qm first && g tag v1
echo three >>"$work/file" && g commit -qam second
g checkout -q -b side && echo side >"$work/side" && g add -A && g commit -qm side && g checkout -q main
mkdir -p "$NET/srv/good.example" "$NET/srv/private.example" "$NET/srv/slow.example"
git clone -q --bare "$work" "$NET/srv/good.example/code.git"

git clone -q --bare "$work" "$NET/srv/private.example/code.git"
echo 'Basic dXNlcjpUT0tFTi1PRi1UUlVTVA==' >"$NET/srv/private.example.login"
git clone -q --bare "$work" "$NET/srv/slow.example/code.git"

git clone -q "$work" "$NET/evil" 2>/dev/null
e() { git -C "$NET/evil" -c user.name=t -c user.email=t@t "$@"; }
printf '* filter=lfs diff=lfs merge=lfs text eol=crlf\n' >"$NET/evil/.gitattributes"
printf '[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch%% /workspace/was-run\n' >"$NET/evil/.gitmodules"
ln -s /etc/passwd "$NET/evil/link"
echo -n >"$NET/evil/--upload-pack=x"
echo a >"$NET/evil/Case" && echo b >"$NET/evil/cASE"
e add -A -- . 2>/dev/null && e update-index --add --cacheinfo "160000,$(g rev-parse HEAD),s" && e commit -qm evil
git clone -q --bare "$NET/evil" "$NET/srv/good.example/evil.git"
printf '\tupdate = !touch /workspace/was-run\n' >>"$NET/evil/.gitmodules"
e checkout -q -b update 2>/dev/null && e commit -qam update 2>/dev/null
git clone -q --bare --single-branch -b update "$NET/evil" "$NET/srv/good.example/update.git"
# a tree with .git in it, which no git would make or take
blob=$(printf '[core]\n\tfsmonitor = touch /workspace/was-run\n' | e hash-object -w --stdin)
sub=$(printf '100644 blob %s\tconfig\n' "$blob" | e mktree)
tree=$(printf '040000 tree %s\t.GIT\n' "$sub" | e mktree)
e update-ref refs/heads/dotgit "$(e commit-tree -m dotgit "$tree")"
git clone -q --bare --single-branch -b dotgit "$NET/evil" "$NET/srv/good.example/dotgit.git"

mkdir -p "$T/etc/policy" "$T/etc/harnesses" "$T/etc/secrets"
printf 'dXNlcjpUT0tFTi1PRi1UUlVTVA==' >"$T/etc/secrets/CODE"
chmod 600 "$T/etc/secrets/CODE"
cat >"$T/etc/policy/code.yaml" <<'Y'
egress:
  allow: [good.example, slow.example]
  inject:
    - host: private.agentbox
      upstream: https://private.example
      header: authorization
      prefix: "Basic "
      secret: CODE
      requests: ["GET /**/info/refs", "POST /**/git-upload-pack"]
Y
harness() { # NAME MORE POLICY
	printf -- '---\nbackend: exec\npolicy: %s\n%s\ncommand: [sh, -s]\n---\n' "${3:-code}" "$2" >"$T/etc/harnesses/$1.md"
}
# nothing but a shell
mkdir -p "$T/image"/{etc,var,usr/bin,usr/lib64}
ln -s usr/bin usr/lib64 "$T/image" && ln -s usr/lib64 "$T/image/lib64" 2>/dev/null
cp "$(realpath /bin/sh)" "$T/image/usr/bin/sh"
ldd /bin/sh | grep -o '/[^ ]*' | while read -r f; do cp --parents "$(dirname "$f")/$(basename "$f")" "$T/image" 2>/dev/null || cp "$f" "$T/image/usr/lib64"; done
cat >"$T/etc/policy/bare.yaml" <<Y
egress: { allow: [good.example] }
filesystem: { root: image, image: $T/image }
Y
harness bare '' bare
harness first 'workspace: { snapshot: none }'
harness again 'retry: { maxAttempts: 2, backoffMs: 1 }'
printf -- '---\npipeline: [{ harness: edit, prompt: "{{prompt}}" }, { harness: edit, prompt: "cat step; echo 2 >>step" }]\n---\n' >"$T/etc/harnesses/steps.md"
harness edit ''
harness named 'git: { name: Ann Example, email: ann@example.org }'
harness own 'workspace: { repo: "https://good.example/code.git#side", seed: { seeded: "yes", file: "never" } }
artifacts: ["*"]'
harness hasty 'git: { timeoutMs: 1500 }'
harness kept 'warm: { idleMs: 60000 }'
echo "secrets: { CODE: { file: $T/etc/secrets/CODE } }" >"$T/etc/agentboxd.yaml"
start_daemon --config "$T/etc/agentboxd.yaml" || { echo 'not ok 1 - start'; echo 1..1; exit 1; }

# start HARNESS GOAL PROMPT REPO-JSON QUERY: what is answered, in $T/result
start() { ask "$@" >"$T/result" && run=$(r .runId); }
ask() {
	jq -n --arg h "$1" --arg g "$2" --arg p "$3" --argjson r "${4:-null}" \
		'{session: {userId: "r", goalId: $g}, harness: $h, prompt: $p} + (if $r then {repo: $r} else {} end)' |
		curl -sS --unix-socket "$T/sock" -H 'Content-Type: application/json' --data-binary @- \
			"http://x/v1/runs$5"
}
# post HARNESS GOAL PROMPT REPO-JSON: to the end; the result is in $T/result
post() { start "$1" "$2" "$3" "${4:-null}" '?wait=1'; }
all=()
# Runs that nothing else waits for: at HARNESS NAME PROMPT REPO-JSON, each in a session of that name;
# later `of NAME` has its result.
at() {
	ask "$1" "$2" "$3" "$4" '?wait=1' >"$T/at.$2" &
	all+=($!)
}
of() { cp "$T/at.$1" "$T/result" && run=$(r .runId); }
r() { jq -r "$1" "$T/result"; }
get() { abctl artifacts "$run" get "$1" -o "$2"; }
# The tree that the patch makes of REF, and that the bundle has.
patched() { # REF
	rm -rf "$T/to" && git clone -q "$work" "$T/to" 2>/dev/null && git -C "$T/to" checkout -q "$1" &&
		get changes.patch "$T/patch" && git -C "$T/to" apply --index --whitespace=nowarn "$T/patch" &&
		git -C "$T/to" write-tree
}
bundled() {
	get changes.bundle "$T/bundle" && git -C "$T/to" fetch -q "$T/bundle" "refs/agentbox/$run" &&
		git -C "$T/to" rev-parse 'FETCH_HEAD^{tree}'
}
inside() { abctl exec "r/$1" -- sh -c "$2" 2>/dev/null; }
code() { printf '{"url":"https://good.example/code.git%s"}' "${1:+\",\"ref\":\"$1}"; }

# ---- a checkout and its changes ----

post edit one 'git log --format=%s; tail -n 1 file; echo four >>file; rm dir/deep; echo new >new; printf "\0\3" >binary
	mkfifo pipe; ln -s /etc/passwd link; echo x >a.log; echo "$GIT_AUTHOR_NAME $GIT_COMMITTER_EMAIL"' "$(code)"
is 'a run in a checkout' "$(r .status)" succeeded
is 'it has the files, the history, and who it is' "$(r .finalText | tr '\n' ' ')" 'second first three agentbox agentbox@localhost '
base=$(g rev-parse main)
is 'of the commit that was there' "$(r .repo.base) $(r .repo.changed) $(r .repo.error)" "$base true null"
tree=$(patched main)
is 'the patch applies' "$(git -C "$T/to" status --porcelain | tr '\n' ' ')" 'M  binary D  dir/deep M  file A  link A  new '
is 'the bundle has the same' "$(bundled)" "$tree"
is 'on top of what was there' "$(git -C "$T/to" rev-parse FETCH_HEAD^)" "$base"
like 'what is told of it' "$(abctl logs "$run" --json | jq -rc 'select(.type | startswith("repo.")) | [.type, .source, .base, .ref, .changed, .error]' | tr '\n' ' ')" \
	"^\[\"repo.cloned\",\"https://good.example/code.git\",\"$base\",\"main\",null,null\] \[\"repo.changes\",\"https://good.example/code.git\",\"$base\",null,true,null\] $"
is 'the session knows' "$(abctl session show r/one --json | jq -r .repo.base)" "$base"

asked=$(asked good.example)
post named one 'cat new; echo more >more; git add -A; git commit -qm "by the agent"; git log -1 --format="%an %ae"; echo rest >rest' "$(code)"
is 'the next run goes on with it' "$(r .finalText | tr '\n' ' ')" 'new Ann Example ann@example.org '
is 'and nothing is fetched' "$(asked good.example)" "$asked"
tree=$(patched main)
is 'its patch is from the same base' "$(git -C "$T/to" diff --cached --name-only | tr '\n' ' ')" 'binary dir/deep file link more new rest '
is 'its bundle, too' "$(bundled)" "$tree"
is 'with its commits' "$(git -C "$T/to" log --format='%s by %an' main..FETCH_HEAD | sed "s/$run/RUN/" | tr '\n' ';')" \
	'What run RUN left in its workspace by Ann Example;by the agent by Ann Example;'
post edit one 'exit 3'
is 'a run that fails has its changes, too' "$(r .status) $(r .repo.changed)" 'failed true'
post edit one : '{"url":"https://good.example/other.git"}'
like 'another repository needs another session' "$(r .status) $(r .error)" 'failed .*has a checkout of https://good.example/code.git already; remedy: another session'
post edit gone : "$(code)"
is 'no change' "$(r .repo.changed) $(r .repo.patchBytes) $(r '[.artifacts[].path] | tojson')" 'false 0 ["changes.patch"]'
post edit gone 'echo mine >changes.patch; git commit -q --amend -m other --allow-empty'
is 'a commit alone is a change' "$(r .repo.changed)" true

# ---- what others wait for, all at once ----

at edit none : "$(code nowhere)"
at own side 'cat seeded side file; git branch --show-current' null
at edit tag 'git log --format=%s; git status -sb' "$(code v1)"
at edit commit 'git log --format=%s' "$(code "$(g rev-parse main^)")"
at edit private 'git remote get-url origin; cat .git/config; env; echo more >>file' '{"url":"https://private.example/code.git"}'
at edit evil 'cat >/home/agent/evil <<"X"
#!/bin/sh
echo "$0" >>/home/agent/was-run
echo lies
X
	chmod 755 /home/agent/evil; e=/home/agent/evil
	for k in core.fsmonitor diff.external core.pager core.editor core.sshCommand core.gitProxy core.alternateRefsCommand \
		uploadpack.packObjectsHook filter.x.clean filter.x.smudge filter.x.process diff.x.command diff.x.textconv \
		merge.x.driver credential.helper core.askPass gpg.program; do git config $k $e; git config --global $k $e; done
	git config core.worktree /tmp; git config core.hooksPath /home/agent/hooks; git config filter.x.required true
	git config core.excludesFile /home/agent/excludes; echo "*" >/home/agent/excludes; echo "*" >.git/info/exclude
	mkdir -p /home/agent/hooks ~/.config/git; cp ~/excludes ~/.config/git/ignore
	for h in post-index-change pre-commit reference-transaction; do cp $e /home/agent/hooks/$h; cp $e .git/hooks/$h 2>/dev/null; done
	echo "* filter=x diff=x merge=x" >.gitattributes; cp .gitattributes .git/info/attributes
	echo changed >file; echo hidden >hidden
	mkdir nested && git init -q nested && echo n >nested/n && (cd nested; git config core.fsmonitor $e; git -c core.fsmonitor=false commit -q --allow-empty -m n)
	git replace "$(git rev-parse HEAD)" "$(git rev-parse HEAD^)"
	rm -f .git/index && mkfifo .git/index; : >/home/agent/was-run' "$(code)"
at edit hostile 'ls -A; cat -A link Case | head -n 1; cat .git/config; git status -s; find / -name was-run 2>/dev/null; ls .git/modules; true' \
	'{"url":"https://good.example/evil.git"}'
at edit dotgit : '{"url":"https://good.example/dotgit.git"}'
at edit update : '{"url":"https://good.example/update.git"}'
at bare bare : "$(code)"
at steps steps 'echo 1 >step' "$(code)"
at again again 'echo x >>tries; [ "$(wc -l <tries)" = 2 ]' "$(code)"
at edit ignore 'mkfifo dir/.gitignore' "$(code)"
at edit alternate 'mkdir -p .git/objects/info; mkfifo .git/objects/info/alternates' "$(code)"
at hasty nested 'git init -q sub; rm sub/.git/HEAD; mkfifo sub/.git/HEAD' "$(code)"
at edit without 'rm -rf .git' "$(code)"
at edit link 'mv .git /home/agent/git; ln -s /home/agent/git .git' "$(code)"
at edit tree 'cd .git/objects; for p in pack/*.pack; do mv $p /tmp/p; rm -f pack/*; git unpack-objects -q </tmp/p; done
	t=$(git rev-parse HEAD^{tree}); o=$(git rev-parse HEAD^^{tree})
	cp -f $(echo $o | sed "s,..,&/,") $(echo $t | sed "s,..,&/,")' "$(code)"
at edit head 'echo zzz >.git/HEAD; echo five >>file' "$(code)"
wait "${all[@]}"

# ---- refs, and the harness's own ----

of side
is "a branch of the harness's own; seed files come behind" "$(r .finalText | tr '\n' ' ')" 'yesside one two three side '
is 'artifacts of the same name give way' "$(r '[.artifacts[].path] | map(select(startswith("changes"))) | tojson')" '["changes.patch","changes.bundle"]'
post own side 'echo mine >changes.patch'
is 'and are kept' "$(r '[.artifacts[].path] | map(select(startswith("changes"))) | tojson')" '["changes.patch.workspace","changes.patch","changes.bundle"]'
of tag
is 'a tag' "$(r .finalText | tr '\n' ' ')" 'first ## HEAD (no branch) '
of commit
is 'a commit' "$(r .finalText)" first
of none
like 'none' "$(r .status) $(r .error)" "failed checkout: the repository has no branch, tag or commit 'nowhere'"
is 'leaves nothing' "$(inside none 'ls -A | wc -l')" 0
inside none 'echo mine >mine'
post edit none 'echo ran' "$(code)"
like 'a workspace that is not empty stays as it is' "$(r .error) $(inside none 'cat mine')" 'not empty: mine is there; remedy: a new session mine'

# ---- what is refused at the door ----

refused() { # WHAT HARNESS REPO-JSON WANT
	start "$2" door : "$3" ''
	like "$1" "$(r .status) $(r .detail)" "$4"
}
refused 'a host that the policy does not let out' edit '{"url":"https://closed.example/x.git"}' '422 .*closed.example:443 out; remedy: an entry of egress.allow'
refused 'the same by http' edit '{"url":"http://good.example/x.git"}' '422 .*good.example:80 out'
refused 'a login' edit '{"url":"https://me:TOKEN@good.example/x.git"}' '400 repo.url: a login does not belong into the URL'
refused 'another protocol' edit '{"url":"ext::sh -c id"}' '400 repo.url: .*neither https'
refused 'a file of the host' edit '{"url":"file:///etc"}' '400 repo.url: .*neither https'
refused 'an option for a ref' edit '{"url":"https://good.example/x.git","ref":"--upload-pack=id"}' '400 repo.ref: '
refused 'a path that leads out' edit '{"bundle":"../x"}' '400 repo.bundle: '
refused 'both' edit '{"bundle":"x","url":"https://good.example/x.git"}' '400 repo: takes either url or bundle'
refused 'what nobody knows' edit '{"url":"https://good.example/x.git","depth":1}' '400 .*depth'
refused 'a workspace that starts from something else' first "$(code)" '422 '
refused 'an agent that stays' kept "$(code)" '422 .*warm'

harness closed 'workspace: { repo: "https://closed.example/x.git" }'
closed() { abctl harness ls --json | jq -e '.harnesses[] | select(.name == "closed") | (.usable | not) and (.error | test("closed.example:443 out"))'; }
ok 'a harness that asks for what its policy refuses is listed as that' wait_for 20 closed

# ---- a private repository ----

of private
is 'a private repository' "$(r .status) $(r .repo.changed)" 'succeeded true'
like 'by its own name' "$(r .finalText | head -n 1)" '^https://private.example/code.git$'
secret() { grep -rl -e dXNlcjpUT0tFTi1PRi1UUlVTVA -e TOKEN-OF-TRUMP "$T/state" "$T/log" "$T/result"; }
is 'its login is nowhere' "$(secret)" ''

# ---- a hostile repository ----

of hostile
is 'a hostile repository' "$(r .status) $(r .repo.changed) $(r .repo.error)" 'succeeded false null'
is 'nothing of it was run' "$(r .finalText | grep -e was-run)" ''
is 'a submodule is an empty directory' "$(inside hostile 'ls -A s; cat Case cASE | tr -d "\r" | tr "\n" " "')" 'a b '
of dotgit
like 'a tree with .git in it' "$(r .status) $(r .error)" "failed checkout: .*hasDotgit: contains '.git'; fatal: "
is 'is not taken' "$(inside dotgit 'ls -A')" ''

of update
like 'nor a submodule that is a command' "$(r .status) $(r .error)" 'failed checkout: .*gitmodulesUpdate: disallowed submodule update setting: !touch .*; fatal: '
of bare
like 'a jail without git' "$(r .status) $(r .error)" 'failed checkout: there is no git in this jail; remedy: install it'
of steps
is 'of a pipeline the first step brings it' "$(r .status) $(r .finalText)" 'succeeded 1'
run=$(r '.steps[1].runId')
is 'and the last has all' "$(patched main >/dev/null && tr '\n' ' ' <"$T/to/step")" '1 2 '
of again
is 'of two attempts the last one has it' "$(r .status) $(r .attempts) $(r .repo.changed)" 'succeeded 2 true'

# ---- a hostile workspace ----

of evil
is 'a hostile workspace' "$(r .status) $(r .repo.error) $(r .repo.nestedLeftOut)" 'succeeded null 1'
is 'nothing of it was run' "$(inside evil 'cat /home/agent/was-run')" ''
tree=$(patched main)
is 'its changes are what they are' "$(git -C "$T/to" diff --cached --name-only | tr '\n' ' ')" '.gitattributes file hidden '
is 'in the bundle, too' "$(bundled)" "$tree"

lies() { # NAME WHAT WANT
	of "$1"
	like "$2" "$(r .status) $(r .repo.error)" "^succeeded $3"
}
lies ignore 'a pipe where git would read' 'changes: .*/dir/.gitignore is no regular file'
lies alternate 'a pipe among the objects' 'changes: .*alternates is neither file nor directory'
lies nested 'a pipe in a nested repository' 'changes: it takes too long'
lies without 'no repository any more' "changes: the workspace's .git is gone"
lies link 'a link to another one' "changes: the workspace's .git is gone, or is no directory"
lies tree 'another tree by the name of the base' 'changes: .*'
lies head 'a HEAD that leads nowhere' null
is 'is told' "$(r .repo.headLost) $(r .repo.changed)" 'true true'

# ---- a directory of the client's ----

cat >"$T/evil" <<'X'
#!/bin/sh
echo "$0 $*" >>"${0%/*}/was-run"
X
chmod 755 "$T/evil"
for k in core.fsmonitor core.pager core.sshCommand core.alternateRefsCommand uploadpack.packObjectsHook filter.x.clean \
	filter.x.smudge filter.x.process diff.external diff.x.textconv core.askPass core.gitProxy; do g config "$k" "$T/evil"; done
mkdir "$T/hooks"
for h in post-index-change reference-transaction pre-commit; do cp "$T/evil" "$work/.git/hooks/$h"; done
echo '* filter=x diff=x' >"$work/.git/info/attributes"
cp "$work/.git/index" "$T/index"
echo mine >>"$work/file"
echo untracked >"$work/untracked"
echo secret >"$work/ignored"
rm "$work/binary"
from() { abctl run edit -s "r/$1" -p "$2" --repo "$3" --json "${@:4}" 2>"$T/said" | tail -n 1 | jq .result >"$T/result" && run=$(r .runId); }
from dir 'git log --format=%s; ls; git remote; git branch --show-current; echo five >>file' "$work"
is 'a directory: its HEAD' "$(r .status) $(r .finalText | tr '\n' ' ')" 'succeeded second first binary dir file main '
is 'from a bundle' "$(r .repo.source) $(r .repo.base)" "bundle $base"
like 'what is not committed stays behind, and that is told' "$(cat "$T/said")" "abctl: notice: what is not committed in $work is not taken along; --dirty"
is 'nothing of the bundle is left' "$(inside dir 'ls -A')" "$(printf '%s\n' .git .gitignore binary dir file)"
from dirty 'git log --format=%s; ls; tail -n 1 file; echo five >>file' "$work" --dirty
is 'the same with what is not' "$(r .finalText | tr '\n' ' ')" 'What was not committed second first dir file untracked mine '
get changes.patch "$T/patch"
ok 'its patch goes on top of that' git -C "$work" -c filter.x.clean=cat -c filter.x.smudge=cat -c filter.x.process= -c core.fsmonitor=false apply --check "$T/patch"
from dirty 'tail -n 1 file' "$work"
like 'a second time nothing is brought' "$(cat "$T/said")$(r .finalText)" 'the session goes on with the checkout it has.*five|the session goes on with the checkout it has'
from tagged 'git log --format=%s; git branch --show-current' "$work#v1"
is 'a tag of it' "$(r .finalText)" first
is 'nothing of it was run' "$(cat "$T/was-run" "$work/.git/hooks/was-run" 2>/dev/null)" ''
ok 'and nothing of it was changed' cmp "$work/.git/index" "$T/index"
git -C "$work" status >/dev/null 2>&1
ok 'which a git that reads it does' test -s "$T/was-run"
git clone -q --depth 1 "file://$NET/srv/good.example/code.git" "$T/shallow" 2>/dev/null
cannot() { # WHAT CODE WANT ARGS...
	abctl run edit -s r/cannot -p x --repo "${@:4}" >"$T/out" 2>&1
	like "$1" "$? $(cat "$T/out")" "^$2 .*$3"
}
cannot 'a shallow clone' 111 'is a shallow clone; remedy: git fetch --unshallow' "$T/shallow"
cannot 'no repository' 111 'not a git repository' "$T/hooks"
like 'which is said as any end of abctl' "$(tail -n 1 "$T/out")" "^abctl: system: --repo: git does not read $T/hooks"
cannot 'no directory' 100 'is no directory and no URL' "$T/nowhere"
cannot 'no such ref' 111 "has no commit 'nowhere'" "$work#nowhere"
cannot 'what is not committed of a ref' 111 'dirty goes with a working directory' "$work#v1" --dirty
cannot 'what is not committed of a URL' 100 'dirty goes with a directory' https://good.example/code.git --dirty

# ---- death ----

: >"$NET/srv/slow.example.waits"
start edit slow 'cat side && echo done >>side' '{"url":"https://slow.example/code.git","ref":"side"}' ''
waits() { [ "$(asked slow.example)" -ge 1 ]; }
ok 'a clone that waits' wait_for 20 waits
supervisor() { pgrep -P "$DAEMON" -f agentbox-supervisor | head -n 1; }
old=$(supervisor)
kill -KILL "$old"
again() { [ -n "$(supervisor)" ] && [ "$(supervisor)" != "$old" ] && abctl version; }
ok 'another supervisor comes' wait_for 20 again
rm "$NET/srv/slow.example.waits"
# its result is there a commit after its status
done_is() { [ "$(abctl show "$run" --json | jq -r .result.status)" = "$1" ]; }
ok 'and begins it again' wait_for 30 done_is succeeded
is 'with its changes' "$(abctl show "$run" --json | jq -r .result.repo.changed)" true

harness hasty 'git: { timeoutMs: 60000 }'
start hasty stuck 'git init -q sub; rm sub/.git/HEAD; mkfifo sub/.git/HEAD; echo said' "$(code)" ''
collecting() { abctl logs "$run" --json | grep -q '"said'; }
ok 'an agent that is done' wait_for 20 collecting
stuck() { pgrep -f 'agentbox-repo [0-9a-f]{40} run_' >/dev/null; }
ok 'its changes take long' wait_for 20 stuck
old=$(supervisor)
kill -KILL "$old"
ok 'another supervisor comes' wait_for 20 again
ok 'the run is what it was' wait_for 30 done_is succeeded
is 'and says what is not known' "$(abctl show "$run" --json | jq -r '.result.finalText + ": " + .result.repo.error')" \
	'said: the supervisor ended while they were looked for'
ok 'nothing is left running' wait_for 20 not stuck
start hasty dead 'git init -q sub; rm sub/.git/HEAD; mkfifo sub/.git/HEAD; echo said' "$(code)" ''
ok 'the same once more' wait_for 20 stuck
asked=$(asked slow.example) had=$run
: >"$NET/srv/slow.example.waits"
start edit cut : '{"url":"https://slow.example/code.git"}' ''
cut=$run run=$had
more() { [ "$(asked slow.example)" -gt "$asked" ]; }
ok 'beside a clone that waits' wait_for 20 more
stop_daemon KILL
rm "$NET/srv/slow.example.waits"
ok 'and all of it dies' wait_for 20 not stuck
start_daemon --config "$T/etc/agentboxd.yaml" || exit 1
is 'a clone that was cut short with all else' "$(abctl show "$cut" --json | jq -r .status) $(abctl exec r/cut -- ls -A 2>/dev/null)" 'interrupted .agentbox-clone'
ask edit cut 'echo more >>file' "$(code)" '?wait=1' >"$T/at.cut"
is 'is begun anew by the next' "$(jq -r '.status + " " + (.repo.changed | tostring)' "$T/at.cut")" 'succeeded true'
is 'the run is what it was, too' "$(abctl show "$run" --json | jq -r '.status + " " + .result.finalText + ": " + .result.repo.error')" \
	'succeeded said: the supervisor ended while they were looked for'
# The last one that was cut short had cleared away what the one before it left, and may have begun anew.
like 'the session goes on' "$(inside stuck 'cat sub/.git/config | wc -l; ls -A /home/agent | grep -c agentbox-changes' | tr '\n' ' ')" '^5 [01] $'
finish
