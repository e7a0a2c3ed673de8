#!/usr/bin/env bash
# An XFS that counts nothing: images on it.
MEANS=image FS=xfs OPTIONS=noquota
make_fs() { mkfs.xfs -q "$1"; }
. tests/vm/inside/state.sh
