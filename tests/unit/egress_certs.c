/* The authority of a jail and what it signs, judged by OpenSSL as a client would. */
#include "base/mem.h"
#include "egress/certs.h"
#include "policy/forms.h"
#include "tests/t.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

static const char *const names[] = {"good.example", ".cdn.example"};

static X509 *read_authority(const struct authority *a)
{
	BIO *b = BIO_new_mem_buf(a->cert, (int)a->cert_bytes);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
	BIO_free(b);
	return x;
}

/* What a client that trusts only this authority says of a server's certificate. */
static const char *verdict(const struct authority *a, X509 *leaf, const char *host)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *root = read_authority(a);
	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set1_host(p, host, 0);
	X509_VERIFY_PARAM_set_purpose(p, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_X509_STRICT);
	(void)X509_verify_cert(ctx);
	const char *text = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	X509_free(root);
	return text;
}

static void test_made(void)
{
	struct authority a, b;
	struct err e;
	must(certs_make(names, 2, &a, &e) == 0 && certs_make(names, 2, &b, &e) == 0, "two of them");
	ok(memcmp(a.key, b.key, a.key_bytes) != 0, "with keys of their own");
	is_str(a.hash, b.hash, "under one name: who finds one finds the other's place");
	X509 *x = read_authority(&a);
	ok(x && X509_check_ca(x) == 1 && X509_get_pathlen(x) == 0,
	        "an authority for servers alone");
	int critical = -1;
	NAME_CONSTRAINTS *limits = X509_get_ext_d2i(x, NID_name_constraints, &critical, NULL);
	ok(limits && critical == 0, "for its names, said so that mbedTLS takes it");
	NAME_CONSTRAINTS_free(limits);
	char hash[AUTHORITY_HASH_MAX];
	snprintf(hash, sizeof(hash), "%08lx.0", x ? X509_subject_name_hash(x) : 0);
	is_str(a.hash, hash, "where OpenSSL looks for it");
	X509_free(x);
	static const char *const bad[] = {
	        "good.example,DNS:evil.example", "", "a", "..a.b", "*.a.b"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(certs_make(&bad[i], 1, &b, &e) == -EINVAL, "'%s' is no name", bad[i]);
	ok(certs_make(names, 0, &b, &e) == -EINVAL, "nor is none");
	char most[128][POLICY_HOST_MAX];
	const char *all[128];
	for (int i = 0; i < 128; i++) {
		snprintf(most[i], sizeof(most[i]), "%060d.%060d.exam", i, i);
		all[i] = most[i];
	}
	ok(certs_make(all, 128, &b, &e) == 0, "as many rules as a policy has, %u bytes",
	        b.cert_bytes);
}

static void test_signed(void)
{
	struct authority a, other;
	struct err e;
	X509 *x, *again;
	EVP_PKEY *key;
	must(certs_make(names, 2, &a, &e) == 0 && certs_make(names, 2, &other, &e) == 0, "made");
	struct certs *c = certs_open(&a, &e);
	must(c != NULL, "opened");
	must(certs_for(c, "good.example", &x, &key, &e) == 0, "a certificate");
	is_str(verdict(&a, x, "good.example"), "ok", "that a strict client takes");
	is_str(verdict(&a, x, "evil.example"), "hostname mismatch", "for its name");
	ok(strcmp(verdict(&other, x, "good.example"), "ok") != 0, "and this authority: %s",
	        verdict(&other, x, "good.example"));
	ok(X509_check_private_key(x, key) == 1, "with its key");
	ok(certs_for(c, "good.example", &again, &key, &e) == 0 && again == x, "kept for the next");
	must(certs_for(c, "a.b.cdn.example", &x, &key, &e) == 0, "a name below a suffix");
	is_str(verdict(&a, x, "a.b.cdn.example"), "ok", "taken");
	ok(certs_for(c, "evil.example", &x, &key, &e) == -EACCES, "another name: %s", e.text);
	ok(certs_for(c, "good.example,DNS:evil.example", &x, &key, &e) == -EINVAL, "no name: %s",
	        e.text);
	certs_free(c);
}

static void test_bounded(void)
{
	struct authority a;
	struct err e;
	X509 *x;
	EVP_PKEY *key;
	char name[64];
	int bad = 0;
	must(certs_make(names, 2, &a, &e) == 0, "made");
	struct certs *c = certs_open(&a, &e);
	for (int i = 0; i < 3 * CERTS_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.cdn.example", i);
		bad += certs_for(c, name, &x, &key, &e) != 0 ||
		       X509_check_host(x, name, 0, 0, NULL) != 1;
	}
	ok(bad == 0, "more names than are kept, each its own");
	certs_free(c);
}

/* As it comes over a socket: nothing of it is believed. */
static void test_damaged(void)
{
	struct authority a, b;
	struct err e;
	must(certs_make(names, 2, &a, &e) == 0 && certs_make(names, 2, &b, &e) == 0, "made");
	struct authority mixed = a;
	memcpy(mixed.key, b.key, sizeof(mixed.key));
	ok(!certs_open(&mixed, &e), "another one's key: %s", e.text);
	mixed = a;
	mixed.key_bytes = AUTHORITY_KEY_MAX + 1;
	ok(!certs_open(&mixed, &e), "a key that is too long");
	mixed = a;
	mixed.cert_bytes = UINT32_MAX;
	ok(!certs_open(&mixed, &e), "a certificate that is too long");
	mixed = a;
	mixed.cert_bytes = mixed.key_bytes = 0;
	ok(!certs_open(&mixed, &e), "nothing at all");
	int opened = 0;
	for (uint32_t i = 0; i < a.cert_bytes; i += 7) {
		mixed = a;
		mixed.cert[i] ^= 0x15;
		struct certs *c = certs_open(&mixed, &e);
		opened += c != NULL;
		certs_free(c);
	}
	ok(opened < 60, "a byte changed anywhere: nothing happens (%d opened)", opened);
}

int main(void)
{
	test_made();
	test_signed();
	test_bounded();
	test_damaged();
	return done();
}
