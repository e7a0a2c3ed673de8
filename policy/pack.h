/*
 * pack.h - the verb `pack` of agentbox-policyc: what a directory of harnesses from a stranger is
 *and asks for, before anything of it is in use.
 *
 *	agentbox-policyc pack DIR NAME|- DEFAULT
 *
 * NAME is the pack's, `-`: what its manifest says, else DEFAULT.  Prints lines "KEY VALUE": name,
 * version, description, dir (of its harnesses, "." for its root), for each harness "harness NAME
 * FILE" and for each thing it asks for "wish FILE:LINE WISH" (wishes.h).  Started as root it reads
 * and parses in DIR as its root, without a capability.
 */
#ifndef POLICY_PACK_H
#define POLICY_PACK_H

#define PACK_MANIFEST "agentbox-pack.json"
enum { PACK_HARNESSES_MAX = 64, PACK_MANIFEST_MAX = 64 << 10, PACK_NAME_MAX = 32 };

int pack_main(int argc, char **argv);

#endif
