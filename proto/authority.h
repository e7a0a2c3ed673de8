/*
 * authority.h - agentbox-authority -> agentboxd -> agentbox-egress: the
 * certificate authority of one jail, as a memfd.
 *
 * Made for a jail whose policy terminates TLS, and good for the names that it
 * terminates and no others.  The key is in no file and never in the jail, which
 * gets the certificate.
 */
#ifndef PROTO_AUTHORITY_H
#define PROTO_AUTHORITY_H

#include <stdint.h>

enum {
	AUTHORITY_KEY_MAX = 256, /* P-256 with its curve's name: 138 */
	/* A policy has 128 rules, each name of at most 127 bytes, in base64. */
	AUTHORITY_CERT_MAX = 32 << 10,
	AUTHORITY_HASH_MAX = 16,
};

struct authority {
	uint32_t key_bytes, cert_bytes;
	char hash[AUTHORITY_HASH_MAX];  /* "0a1b2c3d.0": its name in a directory of certificates */
	uint8_t key[AUTHORITY_KEY_MAX]; /* DER */
	char cert[AUTHORITY_CERT_MAX];  /* PEM, without a final NUL */
};

#endif
