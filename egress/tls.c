#include "egress/tls.h"

#include "base/mem.h"
#include "egress/certs.h"
#include "policy/forms.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

struct tls_service {
	SSL_CTX *ctx;    /* owned */
	BIO_METHOD *bio; /* owned */
};

struct tls {
	SSL *ssl; /* owned */
	int fd;
	uint8_t *hello; /* owned, until it was read */
	size_t nhello, at;
	char name[POLICY_HOST_MAX];
	bool sent;     /* the server's part of the handshake, as far as the socket is concerned */
	bool h2_alone; /* all that the program offers */
	bool renamed;  /* OpenSSL reads another name in the hello than we did */
};

/* ---- the socket, after the hello ---- */

static int bio_read(BIO *b, char *p, int n)
{
	struct tls *t = BIO_get_data(b);
	BIO_clear_retry_flags(b);
	if (t->hello) {
		size_t left = t->nhello - t->at, k = left < (size_t)n ? left : (size_t)n;
		memcpy(p, t->hello + t->at, k);
		t->at += k;
		if (t->at == t->nhello)
			free(take(t->hello));
		return (int)k;
	}
	ssize_t k = recv(t->fd, p, (size_t)n, 0);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)k;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct tls *t = BIO_get_data(b);
	BIO_clear_retry_flags(b);
	ssize_t k = send(t->fd, p, (size_t)n, MSG_NOSIGNAL);
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	t->sent |= k > 0;
	return (int)k;
}

/* Nothing is buffered here. */
static long bio_ctrl(BIO *b, int what, long number, void *p)
{
	(void)b;
	(void)number;
	(void)p;
	return what == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static BIO_METHOD *make_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "jail");
	if (m && BIO_meth_set_read(m, bio_read) == 1 && BIO_meth_set_write(m, bio_write) == 1 &&
	        BIO_meth_set_ctrl(m, bio_ctrl) == 1 && BIO_meth_set_create(m, bio_create) == 1)
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- what is agreed on ---- */

/* `offered` is a list of names, each after its length. */
static bool offers(const unsigned char *offered, unsigned n, const char *word)
{
	size_t len = strlen(word);
	for (unsigned i = 0; i < n && offered[i] < n - i; i += offered[i] + 1u)
		if (offered[i] == len && memcmp(offered + i + 1, word, len) == 0)
			return true;
	return false;
}

static int on_protocols(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
        const unsigned char *offered, unsigned n, void *ctx)
{
	static const unsigned char http[] = "http/1.1";
	struct tls *t = SSL_get_app_data(ssl);
	(void)ctx;
	if (!offers(offered, n, "http/1.1")) {
		t->h2_alone = offers(offered, n, "h2");
		/* Other protocols than HTTP announce themselves, too; without a common one, HTTP.
		 */
		return t->h2_alone ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
	}
	*ret = http;
	*ret_n = sizeof(http) - 1;
	return SSL_TLSEXT_ERR_OK;
}

/* What was judged is what OpenSSL goes by. */
static int on_name(SSL *ssl, int *alert, void *ctx)
{
	struct tls *t = SSL_get_app_data(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	(void)ctx;
	if (name && strcasecmp(name, t->name) == 0)
		return SSL_TLSEXT_ERR_OK;
	t->renamed = true;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static bool set_up(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
	                                 SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                              SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_alpn_select_cb(ctx, on_protocols, NULL);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_num_tickets(ctx, 0) == 1;
}

/* ---- life ---- */

struct tls_service *tls_service_new(struct err *e)
{
	struct tls_service *s = xnew(struct tls_service);
	s->ctx = SSL_CTX_new(TLS_server_method());
	s->bio = make_bio();
	if (s->ctx && s->bio && set_up(s->ctx))
		return s;
	tls_service_free(s);
	(void)err_set(e, -ENOMEM, "TLS with jails cannot be set up");
	return NULL;
}

void tls_service_free(struct tls_service *s)
{
	if (!s)
		return;
	SSL_CTX_free(s->ctx);
	BIO_meth_free(s->bio);
	free(s);
}

static bool begin(
        struct tls *t, const struct tls_service *s, struct x509_st *cert, struct evp_pkey_st *key)
{
	BIO *b = BIO_new(s->bio);
	t->ssl = b ? SSL_new(s->ctx) : NULL;
	if (!t->ssl) {
		BIO_free(b);
		return false;
	}
	BIO_set_data(b, t);
	SSL_set_bio(t->ssl, b, b); /* takes */
	SSL_set_accept_state(t->ssl);
	return SSL_set_app_data(t->ssl, t) == 1 && SSL_use_certificate(t->ssl, cert) == 1 &&
	       SSL_use_PrivateKey(t->ssl, key) == 1;
}

struct tls *tls_new(struct tls_service *s, struct certs *c, int fd, const char *name,
        const uint8_t *hello, size_t n, struct err *e)
{
	struct x509_st *cert;
	struct evp_pkey_st *key;
	int r = certs_for(c, name, &cert, &key, e);
	if (r < 0)
		return NULL;
	struct tls *t = xnew(struct tls);
	t->fd = fd;
	(void)str_copy(t->name, sizeof(t->name), name);
	t->hello = n ? xcalloc(1, n) : NULL;
	if (n)
		memcpy(t->hello, hello, n);
	t->nhello = n;
	if (begin(t, s, cert, key))
		return t;
	tls_free(t);
	ERR_clear_error();
	(void)err_set(e, -ENOMEM, "TLS of a connection cannot be set up");
	return NULL;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t->hello);
	free(t);
}

const char *tls_name(const struct tls *t)
{
	return t->name;
}

/* ---- the handshake ---- */

/* What clients say of a certificate that they do not take. */
static bool is_distrust(unsigned long code)
{
	switch (ERR_GET_REASON(code)) {
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return true;
	default:
		return false;
	}
}

static enum tls_step failed(const struct tls *t, int why, struct err *e)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	/* Some say nothing and hang up: after the certificate there is no other reason to. */
	bool left = why == SSL_ERROR_SYSCALL ||
	            (code && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING);
	if (code && ERR_GET_LIB(code) == ERR_LIB_SSL && is_distrust(code)) {
		(void)err_set(
		        e, -EACCES, "the program does not trust the jail's authority (%s)", text);
		return TLS_DISTRUSTED;
	}
	if (left && t->sent) {
		(void)err_set(e, -EACCES, "the program hung up on the jail's certificate");
		return TLS_DISTRUSTED;
	}
	if (t->h2_alone)
		(void)err_set(
		        e, -EPROTO, "the program speaks HTTP/2 alone, which is not terminated");
	else if (t->renamed)
		(void)err_set(e, -EPROTO, "the hello can be read in two ways");
	else
		(void)err_set(e, -EPROTO, "handshake: %s", text ? text : "cut short");
	return TLS_FAILED;
}

enum tls_step tls_handshake(struct tls *t, struct err *e)
{
	ERR_clear_error();
	int r = SSL_do_handshake(t->ssl);
	if (r == 1)
		return TLS_DONE;
	int why = SSL_get_error(t->ssl, r);
	if (why == SSL_ERROR_WANT_READ)
		return TLS_READ;
	if (why == SSL_ERROR_WANT_WRITE)
		return TLS_WRITE;
	enum tls_step step = failed(t, why, e);
	ERR_clear_error();
	return step;
}

/* ---- bytes ---- */

static ssize_t later_or_broken(struct tls *t, int r)
{
	int why = SSL_get_error(t->ssl, r);
	ERR_clear_error();
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
	return -1;
}

ssize_t tls_recv(struct tls *t, void *p, size_t n)
{
	size_t k = 0;
	ERR_clear_error();
	int r = SSL_read_ex(t->ssl, p, n, &k);
	return r == 1 ? (ssize_t)k : later_or_broken(t, r);
}

ssize_t tls_send(struct tls *t, const void *p, size_t n)
{
	size_t k = 0;
	ERR_clear_error();
	int r = SSL_write_ex(t->ssl, p, n, &k);
	return r == 1 ? (ssize_t)k : later_or_broken(t, r);
}

void tls_end(struct tls *t)
{
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl); /* what the socket does not take nobody waits for */
	ERR_clear_error();
}
