#!/bin/sh
# registry-policy.sh - a policy `install` (docs/AGENTS.md, "Installing") for the registry that npm is set to on this host, also where
# its name leads to an address that is not public.  On stdout.
set -eu
url=$(npm config get registry)
scheme=${url%%://*} rest=${url#*://}
authority=${rest%%/*}
host=${authority%%:*}
case $scheme-$authority in
*:*) port=${authority##*:} ;;
https-*) port=443 ;;
*) port=80 ;;
esac
protocol=tls
[ "$scheme" = https ] || protocol=http
addresses=$(getent ahosts "$host" | awk '{ print "\"" $1 "\"" }' | sort -u | paste -sd, -)
[ -n "$addresses" ] || {
	echo "registry-policy: the name of npm's registry has no address here" >&2
	exit 1
}
cat <<Y
extends: install
egress:
  allow:
    - { host: $host, protocol: $protocol, ports: [$port], addresses: [$addresses] }
Y
