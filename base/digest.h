/*
 * digest.h - SHA-2 as text.  By libcrypto, for its use of the processor's
 * instructions.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	DIGEST_TEXT = 65,      /* SHA-256 as hexadecimal digits, with NUL */
	DIGEST_INTEGRITY = 96, /* SHA-512 as npm writes it: "sha512-" and base64, with NUL */
};

struct digest;
struct digest *digest_new(void);
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, char ret[DIGEST_TEXT]); /* frees d */
/* Do two results agree?  Takes the same time wherever they differ. */
bool digest_same(const char a[DIGEST_TEXT], const char b[DIGEST_TEXT]);
void digest_free(struct digest *d); /* without a result; NULL is fine */

/* The same with SHA-512. */
struct digest *digest_integrity_new(void);
void digest_integrity_end(struct digest *d, char ret[DIGEST_INTEGRITY]); /* frees d */

#endif
