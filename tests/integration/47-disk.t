#!/usr/bin/env bash
# limits.disk and limits.inodes of a session: held by the file system, whatever the host has room for,
# kept from run to run, for sessions that are older than their limit too, and nothing stays behind.
# Here by an image for each session: the state is on a file system that counts no projects.
. tests/integration/lib.sh
WANT=image
. tests/integration/disk.sh
finish
