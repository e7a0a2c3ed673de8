/* GET /v1/jails: each jail that lives is asked for what it has used; the answer goes when all have
 * said so. */
#include "supervisor/api.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/policies.h"
#include "supervisor/scope.h"

enum { LIST_MAX = LIMIT_JAILS * 1024 };

struct listing {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	size_t waiting;
	struct buf json;
	struct jw w; /* into json */
};

struct asked {
	struct listing *listing;
	struct jail_live jail; /* a copy: it may end meanwhile */
};

static void on_client_gone(void *ctx)
{
	((struct listing *)ctx)->request = NULL;
}

static void finish(struct listing *l)
{
	if (l->waiting)
		return;
	jw_close(&l->w, ']');
	jw_close(&l->w, '}');
	buf_putc(&l->json, '\n');
	if (l->request)
		http_reply(l->request, 200, "application/json", &l->json);
	buf_done(&l->json);
	free(l);
}

static void row(struct listing *l, const struct jail_live *x, const struct jail_reply *reply)
{
	const struct jail_resources *used = &reply->resources;
	char since[CLOCK_TEXT_MAX];
	clock_rfc3339(x->made_ms, since);
	struct jw *w = &l->w;
	jw_open(w, NULL, '{');
	jw_int(w, "jail", (int64_t)x->jail);
	if (x->session[0])
		jw_str(w, "sessionId", x->session);
	if (x->policy[0])
		jw_str(w, "policy", x->policy);
	policies_jail_ports_json(l->d->policies, x->policy, w);
	jw_str(w, "since", since);
	keeper_show(l->d->keeper, x->jail, w);
	jw_int(w, "cpuMs", (int64_t)(used->cpu_us / 1000));
	/* 0: the host has no such controller. */
	if (used->memory_peak_bytes)
		jw_int(w, "memoryPeakBytes", (int64_t)used->memory_peak_bytes);
	if (reply->memory_bytes)
		jw_int(w, "memoryBytes", (int64_t)reply->memory_bytes);
	if (used->pids_peak)
		jw_int(w, "pidsPeak", (int64_t)used->pids_peak);
	jw_int(w, "ioReadBytes", (int64_t)used->io_read_bytes);
	jw_int(w, "ioWriteBytes", (int64_t)used->io_write_bytes);
	jw_int(w, "egressBytes", (int64_t)used->egress_bytes);
	jw_close(w, '}');
}

static void on_stats(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asked *a = ctx;
	struct listing *l = a->listing;
	(void)fds;
	l->waiting--;
	if (!reply->err.code) /* else it has ended meanwhile */
		row(l, &a->jail, reply);
	finish(l);
}

static void ask(void *ctx, const struct jail_live *x)
{
	struct listing *l = ctx;
	if (!scope_sees_session(l->d, l->request, x->session))
		return;
	struct asked *a = xnew(struct asked);
	a->listing = l;
	a->jail = *x;
	l->waiting++;
	jails_stats(l->d->jails, x->jail, on_stats, a);
}

void api_jail_list(struct daemon *d, struct http_request *r)
{
	struct listing *l = xnew(struct listing);
	l->d = d;
	l->request = r;
	l->json = (struct buf)BUF_INIT(LIST_MAX);
	l->w = (struct jw)JW_INIT(&l->json);
	jw_open(&l->w, NULL, '{');
	jw_open(&l->w, "jails", '[');
	http_on_gone(r, on_client_gone, l);
	jails_each(d->jails, ask, l);
	finish(l);
}
