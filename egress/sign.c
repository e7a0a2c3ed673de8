#include "egress/sign.h"

#include "base/mem.h"

#include <openssl/hmac.h>
#include <stdint.h>
#include <string.h>

#define ENCODED      "whsec_"
#define SIGN_VERSION "v1,"

/* Base64 into key[n / 4 * 3].  Its length, or -EINVAL. */
static int decode(const char *p, size_t n, unsigned char *key)
{
	int pad = 0;
	if (n == 0 || n % 4)
		return -EINVAL;
	while (pad < 2 && p[n - 1 - (size_t)pad] == '=')
		pad++;
	int len = EVP_DecodeBlock(key, (const unsigned char *)p, (int)n);
	return len < 0 ? -EINVAL : len - pad;
}

int sign_hmac(const char *key, size_t nkey, const char *text, size_t n, unsigned char ret[SIGN_MAC],
        struct err *e)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	if (nkey > INT32_MAX ||
	        !HMAC(EVP_sha256(), key, (int)nkey, (const unsigned char *)text, n, mac, &len) ||
	        len != SIGN_MAC)
		return err_set(e, -EIO, "libcrypto does not sign");
	memcpy(ret, mac, SIGN_MAC);
	return 0;
}

int sign_text(const char *secret, size_t secret_len, const char *signed_text, size_t n,
        char ret[SIGN_TEXT], struct err *e)
{
	unsigned char key[4096], mac[SIGN_MAC];
	const size_t prefix = strlen(ENCODED);
	int keylen;
	if (secret_len > sizeof(key))
		return err_set(e, -EINVAL, "the secret is too long");
	if (secret_len >= prefix && memcmp(secret, ENCODED, prefix) == 0) {
		keylen = decode(secret + prefix, secret_len - prefix, key);
	} else {
		memcpy(key, secret, secret_len);
		keylen = (int)secret_len;
	}
	if (keylen < SIGN_KEY_MIN) {
		explicit_bzero(key, sizeof(key));
		return keylen < 0 ? err_set(e, -EINVAL, "what follows " ENCODED " is not base64")
		                  : err_set(e, -EINVAL, "the key has fewer than %d bytes",
		                            SIGN_KEY_MIN);
	}
	int r = sign_hmac((const char *)key, (size_t)keylen, signed_text, n, mac, e);
	explicit_bzero(key, sizeof(key));
	if (r < 0)
		return r;
	(void)str_copy(ret, SIGN_TEXT, SIGN_VERSION); /* fits, as what follows does: 44 and NUL */
	(void)EVP_EncodeBlock((unsigned char *)ret + strlen(SIGN_VERSION), mac, SIGN_MAC);
	return 0;
}
