#!/usr/bin/env bash
# Project quota of ext4.
MEANS=quota FS=ext4 OPTIONS=prjquota
make_fs() { mke2fs -q -F -t ext4 -O quota,project -E quotatype=prjquota "$1"; }
. tests/vm/inside/state.sh
