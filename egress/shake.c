#include "egress/shake.h"

#include "base/fd.h"
#include "base/mem.h"
#include "egress/client.h"
#include "egress/http_conn.h"
#include "egress/tls.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct shake {
	struct client client;
	struct place place;
	struct tls *tls; /* owned */
	char host[POLICY_HOST_MAX];
};

static void refuse(struct shake *s, enum egress_remedy remedy, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void refuse(struct shake *s, enum egress_remedy remedy, const char *fmt, ...)
{
	struct jail *j = s->client.jail;
	char reason[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	const struct report_of what = {.host = s->host,
	        .port = s->place.port,
	        .protocol = EGRESS_PROTOCOL_TLS,
	        .remedy = remedy,
	        .policy = &j->names.book->policy,
	        .rule = names_rule(&j->names, s->host, strlen(s->host), s->place.port)};
	report_denied(&j->report, &what, reason);
	client_end(&s->client, true);
}

static void go_on(struct shake *s)
{
	struct err err;
	enum tls_step step = tls_handshake(s->tls, &err);
	if (step == TLS_READ || step == TLS_WRITE) {
		reactor_set(
		        s->client.reactor, &s->client.watch, step == TLS_READ ? EPOLLIN : EPOLLOUT);
	} else if (step == TLS_DONE) {
		struct jail *j = s->client.jail;
		int fd = client_release(&s->client);
		http_conn_accept_tls(j, fd, &s->place, take(s->tls));
	} else {
		refuse(s, step == TLS_DISTRUSTED ? EGRESS_REMEDY_TERMINATE : EGRESS_REMEDY_NONE,
		        "tls: %.110s", err.text);
	}
}

static void on_ready(struct client *c, uint32_t events)
{
	(void)events; /* an end is read as one */
	go_on(container_of(c, struct shake, client));
}

static void on_late(struct client *c)
{
	refuse(container_of(c, struct shake, client), EGRESS_REMEDY_NONE,
	        "tls: the handshake did not end within %d s", SHAKE_MS / 1000);
}

static void on_leave(struct client *c, const char *cut)
{
	if (cut)
		refuse(container_of(c, struct shake, client), EGRESS_REMEDY_NONE, "%s", cut);
}

static void on_free(struct client *c)
{
	struct shake *s = container_of(c, struct shake, client);
	tls_free(s->tls);
	free(s);
}

/* Its rules are asked again for each request. */
static const struct client_kind kind = {
        .ready = on_ready, .late = on_late, .leave = on_leave, .free = on_free};

void shake_accept(struct jail *j, int fd, const struct place *p, const char *name,
        const uint8_t *hello, size_t n)
{
	struct shake *s = xnew(struct shake);
	struct err err;
	s->place = *p;
	for (size_t i = 0; i < sizeof(s->host) - 1 && name[i]; i++)
		s->host[i] = (char)tolower((unsigned char)name[i]);
	client_begin(&s->client, &kind, j, fd, EPOLLIN, SHAKE_MS);
	if (s->client.ended)
		return;
	if (!j->certs) {
		refuse(s, EGRESS_REMEDY_NONE,
		        "tls: this jail began before its policy terminated any name");
		return;
	}
	s->tls = tls_new(j->services->tls, j->certs, fd, s->host, hello, n, &err);
	if (s->tls)
		go_on(s);
	else
		refuse(s, EGRESS_REMEDY_NONE, "tls: %.110s", err.text);
}
