#!/usr/bin/env bash
# Project quota of XFS, which also holds root and says "no space" where ext4 says "quota exceeded".
MEANS=quota FS=xfs OPTIONS=prjquota
make_fs() { mkfs.xfs -q "$1"; }
. tests/vm/inside/state.sh
