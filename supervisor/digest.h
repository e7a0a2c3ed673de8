/*
 * digest.h - SHA-256, as hexadecimal text.  The only user of libcrypto, for
 * its use of the processor's SHA instructions.
 */
#ifndef SUPERVISOR_DIGEST_H
#define SUPERVISOR_DIGEST_H

#include <stddef.h>

enum { DIGEST_TEXT = 65 /* with NUL */ };

struct digest;
struct digest *digest_new(void);
void digest_add(struct digest *d, const void *p, size_t n);
void digest_end(struct digest *d, char ret[DIGEST_TEXT]); /* frees d */
void digest_free(struct digest *d);                       /* without a result; NULL is fine */

#endif
