#!/bin/sh
# Installs what building and testing need (Debian packages), or says which
# command would: `make deps`.  `all` is with lint's tools, `vm` with those of tests/vm, `tools` with
# those of tests/tools.  Nothing is done
# when all of it is there.
set -eu

build='gcc make pkg-config musl-tools linux-libc-dev libc6-dev libseccomp-dev libnl-3-dev
libnl-route-3-dev libcjson-dev libyaml-dev liburing-dev libsqlite3-dev
libcurl4-openssl-dev libc-ares-dev libssl-dev'
# perl has prove; node and npm serve the stand-in model server and fetch the agent
tests='perl nodejs npm curl jq g++ attr procps util-linux iproute2 bubblewrap ca-certificates socat strace git python3 sqlite3
openssl e2fsprogs dpkg-dev zsh fish'
lint='clang clang-tidy clang-format cppcheck shellcheck mandoc libclang-rt-14-dev'

tools='golang-go cargo default-jdk-headless python3-pip wget'
vm='qemu-system-x86 qemu-utils mmdebstrap debian-archive-keyring cpio e2fsprogs'

want="$build $tests"
case ${1:-} in
all) want="$want $lint" ;;
vm) want="$want $vm" ;;
tools) want="$want $tools" ;;
esac

missing=''
for package in $want; do
	case $package in
	nodejs) command -v node >/dev/null 2>&1 && continue ;;
	npm) command -v npm >/dev/null 2>&1 && continue ;;
	python3) command -v python3 >/dev/null 2>&1 && continue ;;
	esac
	status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
	[ "${status#ii}" != "$status" ] || missing="$missing $package"
done

[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "These packages are missing; install them as root with:" >&2
	echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of package names
apt-get install -y -qq --no-install-recommends $missing
