#include "egress/certs.h"

#include "base/clock.h"
#include "base/mem.h"
#include "policy/forms.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { SERIAL_BYTES = 16, HOUR = 3600, DAY = 86400 };

/* Subjects; not names that could be hosts, and not the same: a certificate would look self-signed.
 */
#define AUTHORITY "agentbox egress authority"
#define SERVER    "agentbox egress"

struct leaf {
	char name[POLICY_HOST_MAX];
	X509 *cert; /* owned; NULL: free */
	int64_t until_ms;
};

struct certs {
	EVP_PKEY *key; /* owned, as all here: the authority's */
	X509 *cert;
	NAME_CONSTRAINTS *limits;
	EVP_PKEY *leaf_key; /* of all that it signs */
	struct leaf leaves[CERTS_MAX];
	unsigned oldest;
};

static int failed(struct err *e, const char *what)
{
	return err_set(e, -EIO, "certificates: %s failed", what);
}

/* ---- parts of a certificate ---- */

static bool set_serial(X509 *x)
{
	uint8_t bytes[SERIAL_BYTES];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of this length */
	return ASN1_STRING_set(X509_get_serialNumber(x), bytes, sizeof(bytes)) == 1;
}

static bool set_subject(X509 *x, const char *who)
{
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "O", MBSTRING_ASC,
	               (const unsigned char *)who, -1, -1, 0) == 1;
}

/* An hour ago: a jail's clock is the host's, but clocks are set. */
static bool set_dates(X509 *x, long seconds)
{
	return X509_gmtime_adj(X509_getm_notBefore(x), -HOUR) &&
	       X509_gmtime_adj(X509_getm_notAfter(x), seconds);
}

static bool add_text(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool added = extension && X509_add_ext(x, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return added;
}

/* Built and not written as text: a name from a hello has no say in the syntax. */
static GENERAL_NAME *dns_name(const char *host)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	if (!name || !text || ASN1_STRING_set(text, host, -1) != 1) {
		GENERAL_NAME_free(name);
		ASN1_IA5STRING_free(text);
		return NULL;
	}
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	return name;
}

static bool add_alternative(X509 *x, const char *host)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = dns_name(host);
	bool added = names && name && sk_GENERAL_NAME_push(names, name) > 0;
	if (!added)
		GENERAL_NAME_free(name);
	added = added && X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, 0) == 1;
	GENERAL_NAMES_free(names);
	return added;
}

static bool permit(NAME_CONSTRAINTS *limits, const char *host)
{
	GENERAL_SUBTREE *tree = GENERAL_SUBTREE_new();
	GENERAL_NAME *name = dns_name(host);
	if (!tree || !name || sk_GENERAL_SUBTREE_push(limits->permittedSubtrees, tree) <= 0) {
		GENERAL_SUBTREE_free(tree);
		GENERAL_NAME_free(name);
		return false;
	}
	GENERAL_NAME_free(tree->base);
	tree->base = name;
	return true;
}

/* A name permits those below it as well (RFC 5280, 4.2.1.10): finer than that it cannot be said.
 * The RFC wants it critical; then mbedTLS, which does not know it, refuses the authority (git of
 * cargo by Debian's libgit2).  Who knows it heeds it either way. */
static bool add_limits(X509 *x, const char *const *names, size_t n)
{
	NAME_CONSTRAINTS *limits = NAME_CONSTRAINTS_new();
	bool added = limits && (limits->permittedSubtrees = sk_GENERAL_SUBTREE_new_null());
	for (size_t i = 0; added && i < n; i++)
		added = permit(limits, names[i] + (names[i][0] == '.'));
	added = added && X509_add1_ext_i2d(x, NID_name_constraints, limits, 0, 0) == 1;
	NAME_CONSTRAINTS_free(limits);
	return added;
}

/* ---- an authority ---- */

static bool fill_authority(X509 *x, EVP_PKEY *key, const char *const *names, size_t n)
{
	return X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
	       set_subject(x, AUTHORITY) &&
	       X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
	       set_dates(x, (long)CERTS_AUTHORITY_DAYS * DAY) && X509_set_pubkey(x, key) == 1 &&
	       add_text(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       add_text(x, x, NID_key_usage, "critical,keyCertSign") &&
	       add_text(x, x, NID_ext_key_usage, "serverAuth") &&
	       add_text(x, x, NID_subject_key_identifier, "hash") && add_limits(x, names, n) &&
	       X509_sign(x, key, EVP_sha256()) > 0;
}

static int put_key(EVP_PKEY *key, struct authority *to, struct err *e)
{
	unsigned char *p = to->key;
	int n = i2d_PrivateKey(key, NULL);
	if (n <= 0 || n > AUTHORITY_KEY_MAX || i2d_PrivateKey(key, &p) != n)
		return failed(e, "writing a key");
	to->key_bytes = (uint32_t)n;
	return 0;
}

static int put_cert(X509 *x, struct authority *to, struct err *e)
{
	BIO *b = BIO_new(BIO_s_mem());
	int n = b && PEM_write_bio_X509(b, x) == 1 ? BIO_read(b, to->cert, sizeof(to->cert)) : 0;
	int r = n > 0 && BIO_eof(b) ? 0 : failed(e, "writing an authority");
	if (r == 0) {
		to->cert_bytes = (uint32_t)n;
		snprintf(to->hash, sizeof(to->hash), "%08lx.0", X509_subject_name_hash(x));
	}
	BIO_free(b);
	return r;
}

int certs_make(const char *const *names, size_t n, struct authority *ret, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!form_host(names[i] + (names[i][0] == '.')))
			return err_set(e, -EINVAL, "'%.80s' is no host name", names[i]);
	if (n == 0)
		return err_set(e, -EINVAL, "an authority for no name");
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	struct authority a = {.key_bytes = 0};
	int r = key && x && fill_authority(x, key, names, n) ? 0 : failed(e, "an authority");
	if (r == 0)
		r = put_key(key, &a, e);
	if (r == 0)
		r = put_cert(x, &a, e);
	if (r == 0)
		*ret = a;
	explicit_bzero(&a, sizeof(a));
	X509_free(x);
	EVP_PKEY_free(key);
	return r;
}

/* ---- in use ---- */

static X509 *take_cert(const struct authority *a)
{
	BIO *b = BIO_new_mem_buf(a->cert, (int)a->cert_bytes);
	X509 *x = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
	BIO_free(b);
	return x;
}

struct certs *certs_open(const struct authority *a, struct err *e)
{
	const unsigned char *p = a->key;
	if (a->key_bytes > sizeof(a->key) || a->cert_bytes > sizeof(a->cert)) {
		(void)err_set(e, -EBADMSG, "certificates: the authority is damaged");
		return NULL;
	}
	struct certs *c = xnew(struct certs);
	c->key = d2i_PrivateKey(EVP_PKEY_EC, NULL, &p, (long)a->key_bytes);
	c->cert = take_cert(a);
	c->limits = c->cert ? X509_get_ext_d2i(c->cert, NID_name_constraints, NULL, NULL) : NULL;
	c->leaf_key = EVP_EC_gen("P-256");
	if (c->key && c->limits && c->leaf_key && X509_check_private_key(c->cert, c->key) == 1)
		return c;
	(void)err_set(e, -EBADMSG, "certificates: the authority is damaged");
	certs_free(c);
	return NULL;
}

void certs_free(struct certs *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < CERTS_MAX; i++)
		X509_free(c->leaves[i].cert);
	NAME_CONSTRAINTS_free(c->limits);
	X509_free(c->cert);
	EVP_PKEY_free(c->leaf_key);
	EVP_PKEY_free(c->key); /* its number is wiped there */
	free(c);
}

/* Would those who trust the authority take it from it? */
static bool is_permitted(const struct certs *c, X509 *x)
{
	/* The first makes the second see the extensions that were just added. */
	return X509_check_purpose(x, -1, 0) == 1 &&
	       NAME_CONSTRAINTS_check(x, c->limits) == X509_V_OK;
}

static bool fill_leaf(struct certs *c, X509 *x, const char *name)
{
	return X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
	       set_subject(x, SERVER) &&
	       X509_set_issuer_name(x, X509_get_subject_name(c->cert)) == 1 &&
	       set_dates(x, CERTS_LEAF_SECONDS) && X509_set_pubkey(x, c->leaf_key) == 1 &&
	       add_alternative(x, name) &&
	       add_text(x, c->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	       add_text(x, c->cert, NID_key_usage, "critical,digitalSignature") &&
	       add_text(x, c->cert, NID_ext_key_usage, "serverAuth") &&
	       add_text(x, c->cert, NID_authority_key_identifier, "keyid:always") &&
	       X509_sign(x, c->key, EVP_sha256()) > 0;
}

/* Its place: its own, a free one, the oldest's. */
static struct leaf *find(struct certs *c, const char *name, int64_t now)
{
	struct leaf *at = NULL;
	for (size_t i = 0; i < CERTS_MAX; i++) {
		struct leaf *l = &c->leaves[i];
		if (l->cert && strcmp(l->name, name) == 0) {
			if (now < l->until_ms)
				return l;
			X509_free(take(l->cert));
		}
		if (!l->cert && !at)
			at = l;
	}
	if (at)
		return at;
	at = &c->leaves[c->oldest++ % CERTS_MAX];
	X509_free(take(at->cert));
	return at;
}

int certs_for(struct certs *c, const char *name, struct x509_st **ret_cert,
        struct evp_pkey_st **ret_key, struct err *e)
{
	int64_t now = clock_mono_ms();
	struct leaf *l = find(c, name, now);
	if (!l->cert) {
		X509 *x = form_host(name) ? X509_new() : NULL;
		if (!x)
			return err_set(e, -EINVAL, "certificates: '%.60s' is no host name", name);
		int r = fill_leaf(c, x, name) ? 0 : failed(e, "signing");
		if (r == 0 && !is_permitted(c, x))
			r = err_set(e, -EACCES,
			        "this jail began before its policy terminated %.60s", name);
		if (r < 0) {
			X509_free(x);
			return r;
		}
		l->cert = x;
		l->until_ms = now + (int64_t)CERTS_LEAF_SECONDS * 1000 / 2;
		(void)str_copy(l->name, sizeof(l->name), name);
	}
	*ret_cert = l->cert;
	*ret_key = c->leaf_key;
	return 0;
}
