#include "base/digest.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { SHA256_SIZE = 32, SHA512_SIZE = 64 };

/* A struct digest is the library's context under our name. */
static EVP_MD_CTX *inner(struct digest *d)
{
	return (EVP_MD_CTX *)(void *)d;
}

static struct digest *begin(const EVP_MD *of)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	int ok = c ? EVP_DigestInit_ex(c, of, NULL) : 0;
	assert(ok == 1); /* fails only without memory */
	return (struct digest *)(void *)c;
}

static void end(struct digest *d, unsigned char raw[EVP_MAX_MD_SIZE], unsigned want)
{
	unsigned n = 0;
	int ok = EVP_DigestFinal_ex(inner(d), raw, &n);
	assert(ok == 1 && n == want);
	digest_free(d);
}

struct digest *digest_new(void)
{
	return begin(EVP_sha256());
}

struct digest *digest_integrity_new(void)
{
	return begin(EVP_sha512());
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	int ok = EVP_DigestUpdate(inner(d), p, n);
	assert(ok == 1);
}

void digest_end(struct digest *d, char ret[DIGEST_TEXT])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	end(d, raw, SHA256_SIZE);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

bool digest_same(const char a[DIGEST_TEXT], const char b[DIGEST_TEXT])
{
	return CRYPTO_memcmp(a, b, DIGEST_TEXT) == 0;
}

void digest_integrity_end(struct digest *d, char ret[DIGEST_INTEGRITY])
{
	static const char name[] = "sha512-";
	unsigned char raw[EVP_MAX_MD_SIZE];
	end(d, raw, SHA512_SIZE);
	memcpy(ret, name, sizeof(name));
	int n = EVP_EncodeBlock((unsigned char *)ret + sizeof(name) - 1, raw, SHA512_SIZE);
	assert(n == DIGEST_INTEGRITY - (int)sizeof(name));
}

void digest_free(struct digest *d)
{
	EVP_MD_CTX_free(inner(d));
}
