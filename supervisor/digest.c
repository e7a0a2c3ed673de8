#include "supervisor/digest.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>

/* A struct digest is the library's context under our name. */
static EVP_MD_CTX *inner(struct digest *d)
{
	return (EVP_MD_CTX *)(void *)d;
}

struct digest *digest_new(void)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	int ok = c ? EVP_DigestInit_ex(c, EVP_sha256(), NULL) : 0;
	assert(ok == 1); /* fails only without memory */
	return (struct digest *)(void *)c;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
	int ok = EVP_DigestUpdate(inner(d), p, n);
	assert(ok == 1);
}

void digest_end(struct digest *d, char ret[DIGEST_TEXT])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	int ok = EVP_DigestFinal_ex(inner(d), raw, &n);
	assert(ok == 1 && n == 32);
	for (size_t i = 0; i < n; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
	digest_free(d);
}

void digest_free(struct digest *d)
{
	EVP_MD_CTX_free(inner(d));
}
