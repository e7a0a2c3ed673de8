#!/usr/bin/env bash
# Inner root installs packages in an image: with dpkg, with apt from a directory and over HTTP, in a
# layer of the jail's own; and is no more than that.
. tests/integration/lib.sh
. tests/integration/image.sh

{ command -v dpkg-deb && command -v apt-get; } >/dev/null || skip_all 'needs dpkg, apt and an installed Debian to copy'
debian_image "$T/image" apt passwd
sum() { (cd "$T/image" && find . -printf '%p %m %U %G %s %T@ %l\n' | sort | sha256sum); }
before=$(sum)

# ---- two packages, one needs the other ----
package() { # NAME DEPENDS: with a program, a configuration file, another tree and a user of its own
	local root=$T/pkg-$1
	mkdir -p "$root"/{DEBIAN,usr/bin,etc,var/games/"$1"}
	printf 'Package: %s\nVersion: 1\nArchitecture: all\nDepends: %s\nMaintainer: x <x@y.z>\nDescription: greets\n' "$1" "$2" >"$root/DEBIAN/control"
	printf '#!/bin/sh\necho %s was here\n' "$1" >"$root/usr/bin/$1"
	chmod 4755 "$root/usr/bin/$1"
	echo "# $1" >"$root/etc/$1.conf"
	echo "/etc/$1.conf" >"$root/DEBIAN/conffiles"
	echo data >"$root/var/games/$1/data"
	cat >"$root/DEBIAN/postinst" <<-EOF
		#!/bin/sh
		set -e
		useradd --system $1-user
		mkdir -p /var/lib/$1
		chown $1-user:games /var/lib/$1
		chmod 2750 /var/lib/$1
		ldconfig
	EOF
	chmod 755 "$root/DEBIAN/postinst"
	dpkg-deb --build --root-owner-group "$root" "$T/repo/$1_1_all.deb" >/dev/null
}
mkdir -p "$T/repo" "$T/etc/policy" "$T/tools"
package greeter base-files
package caller greeter
index() { # FILE...: their entries in a list of packages
	local f
	for f; do
		dpkg-deb -f "$f"
		printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$f" "$(stat -c %s "$f")" "$(sha256sum <"$f" | cut -d' ' -f1)"
	done
}
(cd "$T/repo" && index greeter_1_all.deb caller_1_all.deb >Packages)
chmod -R a+rX "$T/repo"
servers=()
serve() { # DIR PORTFILE: its files over HTTP, those at its top under any path
	node -e '
		const [dir, to] = process.argv.slice(1), fs = require("fs");
		const s = require("http").createServer((q, a) => {
			const f = [dir + q.url, dir + q.url.replace(/^.*\//, "/")].find(fs.existsSync);
			if (!f) { a.statusCode = 404; return a.end(); }
			a.end(fs.readFileSync(f));
		}).listen(0, "127.0.0.1", () => fs.writeFileSync(to, String(s.address().port)));
		setTimeout(() => process.exit(), 600000);' "$1" "$2" &
	servers+=($!)
	wait_for 30 test -s "$2"
}
serve "$T/repo" "$T/port"

ln -s / "$T/hostroot"
cat >"$T/etc/policy/images.yaml" <<EOF
extends: offline
filesystem:
  root: image
  image: $T/image
  mounts: [ { source: $T/repo, target: /repo } ]
inner_root: packages
limits: { disk: 64M, inodes: 4k }
egress:
  inject: [ { host: packages.agentbox, upstream: "http://127.0.0.1:$(cat "$T/port")", allow_loopback: true } ]
EOF
sed '/^inner_root/d' "$T/etc/policy/images.yaml" >"$T/etc/policy/plain.yaml"
printf 'extends: offline\nfilesystem: { root: image, image: %s }\ninner_root: packages\n' "$T/hostroot" >"$T/etc/policy/host.yaml"
: >"$T/etc/agentboxd.yaml"
mkdir "$T/etc/harnesses"
for user in agent root; do
	cat >"$T/etc/harnesses/$user.md" <<-EOF
		---
		backend: exec
		policy: images
		sandbox: { user: $user }
		workspace: { seed: { seeded: yes } }
		artifacts: [out/*]
		command: [sh, -c, 'id -u; mkdir -p out; dpkg -i /repo/greeter_1_all.deb >out/log 2>&1 && greeter >out/said; cat out/said seeded']
		---
	EOF
done
for user in agent root; do
	printf -- '---\nbackend: exec\npolicy: images\nsandbox: { user: %s }\ncommand: [sh, -c, ". /dev/stdin"]\n---\n' $user >"$T/etc/harnesses/$user-says.md"
done
start_daemon --config "$T/etc/agentboxd.yaml" || { echo "not ok 1 - start"; echo 1..1; exit 1; }
root() { abctl jail --policy images --user root "$@" 2>"$T/err"; }
agent() { abctl jail --policy images "$@" 2>"$T/err"; }

# ---- dpkg ----
said=$(root -- sh -c 'dpkg -i /repo/greeter_1_all.deb >/tmp/log 2>&1 || cat /tmp/log
greeter; stat -c "%U:%G %a" /var/lib/greeter /usr/bin/greeter; cat /etc/greeter.conf /var/games/greeter/data
dpkg -s greeter | grep ^Status; dpkg -V greeter; dpkg --purge greeter >/dev/null 2>&1; ls /usr/bin/greeter /etc/greeter.conf 2>&1 | grep -c "No such"')
is 'dpkg installs, verifies and removes' "$said" "greeter was here
greeter-user:games 2750
root:root 4755
# greeter
data
Status: install ok installed
2"

# ---- apt ----
# Verify: a helper that gave root up makes sure that it cannot come back
apt='apt-get -qq -o APT::Sandbox::Verify=true -o Acquire::Languages=none -o Acquire::GzipIndexes=false'
said=$(root -- sh -c "echo 'deb [trusted=yes] file:/repo ./' >/etc/apt/sources.list
$apt update && $apt install -y caller >/tmp/log 2>&1 || cat /tmp/log; caller; greeter")
is 'apt from a directory, with what it depends on' "$said" "$(printf 'caller was here\ngreeter was here')"
said=$(root -- sh -c "echo 'deb [trusted=yes] http://packages.agentbox/ repo/' >/etc/apt/sources.list
$apt update && $apt install -y caller >/tmp/log 2>&1 || cat /tmp/log; caller; ls -l /var/cache/apt/archives/*.deb | wc -l")
is 'apt over HTTP by the one way out' "$said" "$(printf 'caller was here\n2')"
is 'whose helper has another user' "$(root -- sh -c "echo 'deb [trusted=yes] http://packages.agentbox/ repo/' >/etc/apt/sources.list
$apt update; stat -c %U /var/lib/apt/lists/partial")" _apt
like 'an apt that finds no such host says so' "$(root -- sh -c "echo 'deb [trusted=yes] http://packages.example/ ./' >/etc/apt/sources.list; $apt update 2>&1")" 'not in policy|403|Failed'

# ---- a harness ----
run() { abctl run "$1" -s "u/$1" -p x --json 2>"$T/err" | json 'l.result.status+" "+l.result.artifacts.map(a=>a.path)+" "+l.result.finalText'; }
is 'a run as inner root installs, and its files come back' "$(run root | tr '\n' ' ')" 'succeeded out/log,out/said 0 greeter was here yes '
like 'one as the agent does not' "$(run agent | tr '\n' ' ')" '^failed out/log 1000'

# ---- what a run leaves to the next one of its session ----
says() { abctl run "$1-says" -s u/left -p "$2" --json 2>"$T/err" | json 'l.result.status+" "+l.result.finalText'; }
is 'inner root gives workspace and home away, and closes them' "$(says root 'chown -R 65534:0 /workspace /home/agent; chmod 0 /workspace /home/agent; stat -c %u:%a /workspace')" 'succeeded 65534:0'
is 'the next run is the agent'"'"'s all the same' "$(says agent 'stat -c %u:%a /workspace; touch mine ~/mine && echo wrote' | tr '\n' ' ')" 'succeeded 1000:700 wrote '
is 'and where an agent closes its own' "$(says agent 'chmod 0 /workspace ~; echo closed')$(says agent 'ls')" 'succeeded closedsucceeded mine'

# ---- the example of the documentation, line for line; the places and the mirror are this test's ----
mkdir -p "$T"/{mirror/debian/dists/stable/main/binary-amd64,mirror/debian/pool}
greeting='Hello, world!'
mkdir -p "$T"/hello/{DEBIAN,usr/bin}
printf 'Package: hello\nVersion: 2\nArchitecture: all\nDepends: base-files\nMaintainer: x <x@y.z>\nDescription: greets\n' >"$T/hello/DEBIAN/control"
printf '#!/bin/sh\necho "%s"\n' "$greeting" >"$T/hello/usr/bin/hello"
chmod 755 "$T/hello/usr/bin/hello"
(cd "$T/mirror/debian" && dpkg-deb --build --root-owner-group "$T/hello" pool/hello_2_all.deb >/dev/null &&
	index pool/hello_2_all.deb >dists/stable/main/binary-amd64/Packages && cd dists/stable &&
	printf 'Suite: stable\nCodename: stable\nArchitectures: amd64\nComponents: main\nSHA256:\n %s %s main/binary-amd64/Packages\n' \
		"$(sha256sum <main/binary-amd64/Packages | cut -d' ' -f1)" "$(stat -c %s main/binary-amd64/Packages)" >Release)
serve "$T/mirror" "$T/mirror.port"
# No network here, and no key to sign with: the image's apt is told so.
cat >"$T/tools/debootstrap" <<EOF
#!/usr/bin/env bash
[ "\$*" = "--variant=minbase stable $T/images/debian" ] || { echo "unknown: \$*"; exit 1; }
. tests/integration/image.sh
debian_image $T/images/debian apt
mkdir -p $T/images/debian/etc/apt/apt.conf.d
printf 'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n' >$T/images/debian/etc/apt/apt.conf.d/unsigned
EOF
chmod 755 "$T/tools/debootstrap"
mkdir "$T/images"
sed -n '/^# 1. an image/,/^```/p' docs/POLICY.md | grep -v '^```' | sed \
	-e "s,/srv/images,$T/images,g" -e "s,/etc/agentbox,$T/etc,g" \
	-e "s#upstream: \"https://mirror.example\"#upstream: \"http://127.0.0.1:$(cat "$T/mirror.port")\", allow_loopback: true#" >"$T/example.sh"
is 'the example has its four steps' "$(grep -c '^# [1-4]\. ' "$T/example.sh")" 4
PATH=$T/tools:$(cd "$BIN" && pwd):$PATH AGENTBOX_SOCKET=$T/sock bash -e "$T/example.sh" >"$T/said" 2>&1
is 'and goes through' $? 0
ok 'greeted by the jail' grep -qx "$greeting" "$T/said"
is 'and by the run' "$(abctl artifacts "$(abctl runs -s me/packages --json | json 'l.runs[0].runId')" get out/said)" "$greeting"
ok 'which nothing of is left in the image' test ! -e "$T/images/debian/usr/bin/hello"
tail -n 30 "$T/said" | sed 's/^/# /'

# ---- the layer ----
is 'the image is as it was' "$(sum)" "$before"
is 'the next jail has nothing of it' "$(root -- sh -c 'command -v greeter; ls /var/lib/greeter /var/games/greeter 2>/dev/null; echo none')" none
is 'a full layer is full for this jail alone' "$(root -- sh -c 'head -c 100000000 /dev/zero >/var/big 2>/dev/null; stat -c %s /var/big; rm /var/big; perl -e "1 while open F, q(>), q(/opt/f) . \$i++; print \$i"' | awk 'NR==1{print ($1<=67108864)} NR==2{print ($1<4096)}')" "$(printf '1\n1')"
is 'it is the agent that cannot write there' "$(agent -- sh -c 'id -u; for d in /usr /etc /var /opt /var/lib/dpkg; do touch $d/x 2>&1 | grep -c "denied"; done' | tr '\n' ' ')" '1000 1 1 1 1 1 '
is 'who it is, is known' "$(agent -- sh -c 'id -un; id -gn; getent hosts localhost | wc -l; cat /etc/resolv.conf')" "$(printf 'agent\nagent\n1\nnameserver 198.18.0.1')"
is 'what is closed in the image stays closed to the agent' "$(agent -- sh -c 'cat /etc/shadow 2>&1 | grep -c denied')" 1
is 'and is inner root'"'"'s' "$(root -- sh -c 'cut -d: -f1 /etc/shadow')" root
is 'set-uid programs do nothing' "$(root -- sh -c 'cp /usr/bin/id /usr/bin/i; chmod 4755 /usr/bin/i; perl -e "\$( = \$) = 1000; \$< = \$> = 1000; exec qw(/usr/bin/i -u)"')" 1000
is 'without inner_root: packages the image is read-only' "$(abctl jail --policy plain --user root -- sh -c 'touch /usr/x 2>&1 | grep -c Read-only; grep -c upperdir= /proc/self/mountinfo' 2>/dev/null)" "$(printf '1\n0')"
is 'no path of the host shows, whose image and mounts these are' "$(root -- cat /proc/self/mountinfo | awk -v t="$T" '{ n++ } index($0, t) { bad++ } END { print (n > 9), bad + 0 }')" '1 0'
like "the host's own root is no image" "$(abctl jail --policy host --user root -- true 2>&1)" "is the host's own root"

# ---- and no more than that: the shipped filter, and capabilities that reach nothing ----
cat >"$T/tools/try.pl" <<'EOF'
use Socket;
sub c { my @a = @_; my $n = shift @a; my $r = syscall($n, @a); $r < 0 ? ($! + 0) : 'went through' }
sub o { open(my $f, $_[0], $_[1]) ? 'went through' : $! + 0 }
my %tried = (
	mount => c(165, 't', '/tmp', 'tmpfs', 0, 0), remount => c(165, '', '/usr', '', 4128, 0),
	umount => c(166, '/usr', 2), pivot_root => c(155, '/', '/tmp'), chroot => c(161, '/tmp'),
	fsopen => c(430, 'tmpfs', 0), open_tree => c(428, -100, '/', 1), move_mount => c(429, -1, '', -1, '', 4),
	mknod => c(133, '/tmp/disk', 24576 + 384, 2048), mknod_usr => c(133, '/usr/mem', 8192 + 384, 257),
	unshare_user => c(272, 0x10000000), unshare_mnt => c(272, 0x20000), unshare_net => c(272, 0x40000000),
	clone_user => c(56, 0x10000011, 0, 0, 0, 0), clone3 => c(435, 0, 0),
	setns => do { open(my $f, '<', '/proc/self/ns/mnt'); c(308, fileno($f), 0) },
	raw => c(41, 2, 3, 1), packet => c(41, 17, 3, 3), netlink_netfilter => c(41, 16, 3, 12),
	ptrace => c(101, 16, 1, 0, 0), process_vm => c(310, 1, 0, 0, 0, 0, 0), keyctl => c(250, 0, -3, 0),
	bpf => c(321, 0, 0, 0), module => c(175, 0, 0, ''), handle => c(304, -100, "\10\0\0\0\1\0\0\0" . "\0" x 8, 0),
	hostname => c(170, 'x', 1), clock => c(227, 0, "\0" x 16), quota => c(179, 0, '', 0, 0), io_uring => c(425, 1, ''),
	core_pattern => o('>', '/proc/sys/kernel/core_pattern'), sysrq => o('>', '/proc/sysrq-trigger'),
	kmsg => o('<', '/dev/kmsg'), kcore => o('+<', '/proc/kcore'), init_root => o('<', '/proc/1/root/etc/passwd'),
	low_port => do { socket(my $s, AF_INET, SOCK_STREAM, 0); bind($s, pack_sockaddr_in(22, INADDR_ANY)) ? 'went through' : $! + 0 },
	root_dir => o('>', '/planted'), dev => o('>', '/dev/planted'), sys => o('>', '/sys/planted'), repo => o('>', '/repo/planted'),
);
c(117, 65533, 65533, 65533);    # PID 1's own user
$tried{ptrace_as_init} = c(101, 16, 1, 0, 0);
$tried{prlimit_init} = c(302, 1, 7, "\1" . "\0" x 15, 0);
$tried{signal_init} = kill(9, 1) && kill('STOP', 1) && !-e '/proc/1' ? 'nothing happens' : $! + 0;
print "$_ $tried{$_}\n" for sort keys %tried;
EOF
root -- sh -c 'cat >/tmp/try.pl; perl /tmp/try.pl; echo alive' <"$T/tools/try.pl" >"$T/tried"
is 'everything was tried, and PID 1 serves on' "$(wc -l <"$T/tried") $(tail -n 1 "$T/tried")" '43 alive'
is 'nothing went through' "$(grep 'went through' "$T/tried")" ''
unshare -m -n -i -u -p -f sh -c 'mount --make-rprivate / && mount -t tmpfs t /tmp && perl -e "
	sub c { my @a = @_; my \$n = shift @a; syscall(\$n, @a) < 0 ? 0 : 1 }
	print c(165, q(t), q(/tmp), q(tmpfs), 0, 0) + c(272, 0x20000) + c(41, 2, 3, 1) + c(41, 17, 3, 3) + c(430, q(tmpfs), 0) + c(133, q(/tmp/disk), 24960, 2048), qq(\n)"' >"$T/lax"
is 'as root of the host, in namespaces of its own, six of them do' "$(cat "$T/lax")" 6
kill "${servers[@]}"
finish
