/*
 * sign.h - the signature of a webhook: HMAC-SHA256 over "id.seconds.body", as
 * "v1," and base64 (the scheme of Standard Webhooks, which receivers have
 * libraries for).
 *
 * Pure.  A secret that begins with whsec_ is base64 behind it, any other is the
 * key as it is; a key of fewer than SIGN_KEY_MIN bytes is refused.
 */
#ifndef EGRESS_SIGN_H
#define EGRESS_SIGN_H

#include "base/err.h"

#include <stddef.h>

enum { SIGN_KEY_MIN = 16, SIGN_TEXT = 48, SIGN_MAC = 32 };

/* `signed_text` is all of it: "id.seconds.body". */
MUST_USE int sign_text(const char *secret, size_t secret_len, const char *signed_text, size_t n,
        char ret[SIGN_TEXT], struct err *e);

/* HMAC-SHA256 alone; ret may be the key. */
MUST_USE int sign_hmac(const char *key, size_t nkey, const char *text, size_t n,
        unsigned char ret[SIGN_MAC], struct err *e);

#endif
