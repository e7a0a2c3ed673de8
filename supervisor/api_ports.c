/* Listeners inside jails: POST /v1/sessions/{id}/ports/{port} with an upgrade to bytes, and HTTP by
 * path and by name. */
#include "supervisor/api.h"

#include "base/mem.h"
#include "proto/ports.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/inbound.h"
#include "supervisor/problem.h"
#include "supervisor/proxy.h"
#include "supervisor/relay.h"

#include <string.h>
#include <strings.h>

/* ---- bytes ---- */

struct tunnel {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once it is answered or the client left */
	struct inbound *conn;         /* owned */
	int fd;                       /* borrowed: of conn */
	struct relay *relay;
	struct http_upgraded *upgraded;
};

static void tunnel_free(struct tunnel *t)
{
	inbound_close(t->conn);
	free(t);
}

static void on_client_gone(void *ctx)
{
	tunnel_free(ctx);
}

static void on_relayed(void *ctx)
{
	struct tunnel *t = ctx;
	http_upgraded_close(t->upgraded);
	tunnel_free(t);
}

static void on_start(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n)
{
	struct tunnel *t = ctx;
	t->upgraded = u;
	const struct relay_spec spec = {.loop = t->d->loop,
	        .client = fd,
	        .server = t->fd,
	        .from_client = p,
	        .nclient = n,
	        .over = on_relayed,
	        .ctx = t};
	t->relay = relay_new(&spec);
}

static void on_opened(void *ctx, int fd, const struct err *e)
{
	struct tunnel *t = ctx;
	struct http_request *r = take(t->request);
	if (e) {
		http_on_gone(r, NULL, NULL);
		problem_err(r, e, PROBLEM_UNREACHABLE);
		tunnel_free(t);
		return;
	}
	t->fd = fd;
	http_upgrade(r, PORT_UPGRADE, on_start, t);
}

static void on_jail_gone(void *ctx)
{
	struct tunnel *t = ctx;
	if (t->relay)
		relay_expire(t->relay);
}

void api_port_open(struct daemon *d, struct http_request *r)
{
	struct err e;
	unsigned port;
	const char *upgrade = http_header(r, "Upgrade");
	if (!upgrade || strcasecmp(upgrade, PORT_UPGRADE) != 0) {
		http_add_header(r, "Upgrade", PORT_UPGRADE);
		problem_reply(r, PROBLEM_UPGRADE,
		        "use `abctl forward`, or HTTP with a / behind the port",
		        "send `Connection: Upgrade` and `Upgrade: " PORT_UPGRADE "`");
		return;
	}
	if (inbound_port(http_param(r, 1), &port, &e) < 0) {
		problem_err(r, &e, PROBLEM_UNREACHABLE);
		return;
	}
	struct tunnel *t = xnew(struct tunnel);
	const struct inbound_calls calls = {
	        .opened = on_opened, .jail_gone = on_jail_gone, .ctx = t};
	t->d = d;
	t->request = r;
	t->conn = inbound_open(d, http_param(r, 0), port, &calls, &e);
	if (!t->conn) {
		problem_err(r, &e, PROBLEM_UNREACHABLE);
		tunnel_free(t);
		return;
	}
	http_on_gone(r, on_client_gone, t);
}

/* ---- HTTP ---- */

void api_port_http(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct proxy_target t = {.form = PROXY_BY_PATH};
	if (!str_copy(t.session, sizeof(t.session), http_param(r, 0)) ||
	        !id_valid(t.session, "ses")) {
		problem_reply(r, PROBLEM_NOT_FOUND, NULL, "not a session's id");
		return;
	}
	if (inbound_port(http_param(r, 1), &t.port, &e) < 0)
		problem_err(r, &e, PROBLEM_UNREACHABLE);
	else
		proxy_begin(d, r, &t);
}

void api_port_by_name(struct daemon *d, struct http_request *r)
{
	struct proxy_target t;
	if (proxy_by_name(http_header(r, "Host"), &t))
		proxy_begin(d, r, &t);
	else
		problem_reply(r, PROBLEM_NOT_FOUND, NULL, "not the name of a port");
}
