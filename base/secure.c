#include "base/secure.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

/* A struct secure is the library's connection, a service its context, under our names. */
static SSL *inner(const struct secure *x)
{
	return (SSL *)(uintptr_t)x;
}

static SSL_CTX *context(struct secure_service *s)
{
	return (SSL_CTX *)s;
}

/* What the library says of the first mistake; clears the others. */
static const char *why(char *to, size_t n)
{
	unsigned long code = ERR_get_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;
	(void)str_copy(to, n, reason ? reason : "no reason is given");
	ERR_clear_error();
	return to;
}

/* ---- services ---- */

static const unsigned char http[] = "\x08http/1.1";

static int on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_len,
        const unsigned char *in, unsigned in_len, void *ctx)
{
	unsigned char *picked = NULL;
	(void)ssl;
	(void)ctx;
	if (SSL_select_next_proto(&picked, out_len, http, sizeof(http) - 1, in, in_len) !=
	        OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = picked;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	if (!ctx)
		return NULL;
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
	                                 SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                              SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static BIO *bio_of(const char *pem, size_t n)
{
	return n > INT_MAX ? NULL : BIO_new_mem_buf(pem, (int)n);
}

static bool use_chain(SSL_CTX *ctx, const char *pem, size_t n)
{
	BIO *b = bio_of(pem, n);
	X509 *x = b ? PEM_read_bio_X509_AUX(b, NULL, NULL, NULL) : NULL;
	bool ok = x && SSL_CTX_use_certificate(ctx, x) == 1;
	X509_free(x);
	while (ok && (x = PEM_read_bio_X509(b, NULL, NULL, NULL))) {
		ok = SSL_CTX_add0_chain_cert(ctx, x) == 1; /* takes */
		if (!ok)
			X509_free(x);
	}
	if (ok)
		ERR_clear_error(); /* that there was no further one */
	BIO_free(b);
	return ok;
}

/* Without it the library would ask at a terminal. */
static int no_password(char *to, int size, int writing, void *ctx)
{
	(void)to;
	(void)size;
	(void)writing;
	(void)ctx;
	return -1;
}

static bool use_key(SSL_CTX *ctx, const char *pem, size_t n)
{
	BIO *b = bio_of(pem, n);
	EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_password, NULL) : NULL;
	bool ok =
	        key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
	EVP_PKEY_free(key);
	BIO_free(b);
	return ok;
}

struct secure_service *secure_server(const char *pem, size_t n, struct err *e)
{
	char text[128];
	SSL_CTX *ctx = make(TLS_server_method());
	const char *what = !ctx                      ? "TLS cannot be set up"
	                   : !use_chain(ctx, pem, n) ? "the certificate cannot be used"
	                   : !use_key(ctx, pem, n)   ? "the private key cannot be used"
	                                             : NULL;
	if (!what) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
		SSL_CTX_set_alpn_select_cb(ctx, on_protocols, NULL);
		(void)SSL_CTX_set_num_tickets(ctx, 0);
		return (struct secure_service *)ctx;
	}
	(void)err_set(e, -EINVAL, "%s: %s", what, why(text, sizeof(text)));
	SSL_CTX_free(ctx);
	return NULL;
}

struct secure_service *secure_client(const char *ca_file, struct err *e)
{
	char text[128];
	SSL_CTX *ctx = make(TLS_client_method());
	if (ctx)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (ctx && (ca_file ? SSL_CTX_load_verify_file(ctx, ca_file)
	                    : SSL_CTX_set_default_verify_paths(ctx)) == 1)
		return (struct secure_service *)ctx;
	(void)err_set(e, -EINVAL, "certificates to trust (%s): %s",
	        ca_file ? ca_file : "the host's", why(text, sizeof(text)));
	SSL_CTX_free(ctx);
	return NULL;
}

void secure_service_free(struct secure_service *s)
{
	SSL_CTX_free(context(s));
}

/* ---- connections ---- */

static bool expect(SSL *ssl, const char *host)
{
	struct in6_addr a;
	if (inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	/* SSL_set_tlsext_host_name, which would cast `const` away. */
	return SSL_set1_host(ssl, host) == 1 &&
	       SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
	               (void *)(uintptr_t)host) == 1;
}

struct secure *secure_new(struct secure_service *s, int fd, const char *host, struct err *e)
{
	SSL *ssl = SSL_new(context(s));
	bool ok = ssl && SSL_set_fd(ssl, fd) == 1 && (!host || expect(ssl, host));
	if (!ok) {
		SSL_free(ssl);
		ERR_clear_error();
		(void)err_set(e, -ENOMEM, "TLS of a connection cannot be set up");
		return NULL;
	}
	if (host)
		SSL_set_connect_state(ssl);
	else
		SSL_set_accept_state(ssl);
	return (struct secure *)ssl;
}

void secure_free(struct secure *x)
{
	SSL_free(inner(x));
}

/* ---- use ---- */

bool secure_wants_write(const struct secure *x)
{
	return SSL_want_write(inner(x));
}

static bool waits(const struct secure *x, int r)
{
	int code = SSL_get_error(inner(x), r);
	return code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE;
}

int secure_handshake(struct secure *x, struct err *e)
{
	char text[128];
	ERR_clear_error();
	int r = SSL_do_handshake(inner(x));
	if (r == 1)
		return 1;
	if (waits(x, r))
		return 0;
	long verdict = SSL_get_verify_result(inner(x));
	if (verdict != X509_V_OK) {
		ERR_clear_error();
		return err_set(e, -EPERM, "its certificate is not trusted: %s",
		        X509_verify_cert_error_string(verdict));
	}
	return err_set(e, -EPROTO, "TLS: %s", why(text, sizeof(text)));
}

/* What a call without bytes means. */
static ssize_t outcome(const struct secure *x, int r)
{
	int code = SSL_get_error(inner(x), r);
	if (code == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
	ERR_clear_error();
	return -1;
}

ssize_t secure_recv(struct secure *x, void *p, size_t n)
{
	ERR_clear_error();
	int r = SSL_read(inner(x), p, n > INT_MAX ? INT_MAX : (int)n);
	return r > 0 ? r : outcome(x, r);
}

ssize_t secure_send(struct secure *x, const void *p, size_t n)
{
	ERR_clear_error();
	int r = SSL_write(inner(x), p, n > INT_MAX ? INT_MAX : (int)n);
	return r > 0 ? r : outcome(x, r);
}

void secure_end(struct secure *x)
{
	ERR_clear_error();
	(void)SSL_shutdown(inner(x)); /* as far as the socket takes it */
	ERR_clear_error();
}
