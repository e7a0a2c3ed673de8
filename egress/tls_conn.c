#include "egress/tls_conn.h"

#include "base/mem.h"
#include "egress/address.h"
#include "egress/client.h"
#include "egress/hello.h"
#include "egress/jails.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* A hello follows the handshake of TCP at once; on loopback that is microseconds. */
enum { HELLO_WAIT_MS = 2000 };

struct tls_conn {
	struct client client;
	size_t n;
	uint8_t hello[HELLO_MAX];
};

/* What was dialled, by the name it has in this jail or as a number. */
static void dialled(const struct client *c, char to[POLICY_HOST_MAX])
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	uint32_t v4;
	char text[ADDRESS_TEXT_MAX] = "?";
	const struct sockaddr *sa = (const struct sockaddr *)&a;
	const struct names *t = &c->jail->names;
	if (getsockname(c->fd, (struct sockaddr *)&a, &len) == 0)
		address_text(sa, text);
	if (text[0] != '?' && address_v4(sa, &v4) && names_at(t, v4) >= 0)
		(void)str_copy(to, POLICY_HOST_MAX, t->inject[names_at(t, v4)].host);
	else
		(void)str_copy(to, POLICY_HOST_MAX, text);
}

static void refuse(struct client *c, const char *host)
{
	char reason[128];
	if (names_find(&c->jail->names, host, strlen(host)) >= 0)
		snprintf(reason, sizeof(reason), "tls: %.60s is served as http:// only", host);
	else
		names_refusal(&c->jail->names, "tls", host, reason, sizeof(reason));
	report_denied(&c->jail->report, host, 443, reason);
	client_end(c, true);
}

static void refuse_unnamed(struct client *c)
{
	char host[POLICY_HOST_MAX];
	dialled(c, host);
	refuse(c, host);
}

static void on_ready(struct client *c, uint32_t events)
{
	(void)events;
	struct tls_conn *t = container_of(c, struct tls_conn, client);
	char name[POLICY_HOST_MAX];
	ssize_t n = recv(c->fd, t->hello + t->n, sizeof(t->hello) - t->n, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		t->n += (size_t)n;
	enum hello_verdict v = n <= 0 ? HELLO_NOT_TLS : hello_read(t->hello, t->n, name);
	if (v == HELLO_NAME)
		refuse(c, name);
	else if (v != HELLO_MORE || t->n == sizeof(t->hello))
		refuse_unnamed(c);
}

static void on_free(struct client *c)
{
	free(container_of(c, struct tls_conn, client));
}

static const struct client_kind kind = {
        .port = 443, .ready = on_ready, .late = refuse_unnamed, .free = on_free};

void tls_conn_accept(struct jail *j, int fd)
{
	struct tls_conn *t = xnew(struct tls_conn);
	client_begin(&t->client, &kind, j, fd, EPOLLIN, HELLO_WAIT_MS);
}
