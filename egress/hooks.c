#include "egress/hooks.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "egress/jails.h"
#include "egress/secrets.h"
#include "egress/sign.h"
#include "egress/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	/* At once: those of the supervisor before may be there still. */
	HOOKS_MOST = 2 * JAIL_HOOKS,
	ANSWER_MOST =
	        64 << 10, /* bytes of an answer that are read, so that the connection is kept */
	STAMP_MOST = 32,
	OTLP_ANSWER_MOST = 4 << 10, /* bytes of an answer that are looked at */
};

struct hooks {
	struct services *services;       /* borrowed: process */
	struct connections *connections; /* owned */
	struct list posts;               /* of struct post.link */
	unsigned n;
};

struct post {
	struct hooks *hooks;
	struct list link; /* in hooks.posts */
	struct corpse corpse;
	struct timer late;
	struct lookup lookup;
	struct transfer *transfer; /* owned */
	struct origin origin;
	struct reach reach;
	uint64_t delivery;
	int64_t begun_ms;
	struct buf text; /* "id.seconds." and the body; of traces the body alone */
	size_t head;     /* length of what is in front of the body */
	size_t sent;
	int status;
	size_t answered;
	bool traces;
	struct buf answer; /* of traces: its beginning */
	bool over;
};

#define TEXT(literal) ((struct http_text){(literal), sizeof(literal) - 1})

/* ---- the end ---- */

static void tell(struct services *s, struct jail_hooked *m, const char *reason)
{
	m->head.type = EGRESS_HOOKED;
	(void)snprintf(m->reason, sizeof(m->reason), "%s", reason); /* cut is fine: for people */
	int r = msg_send(s->control, m, sizeof(*m), NULL, 0);
	if (r < 0) /* the supervisor asks again */
		log_warn("agentboxd does not take what a webhook has answered: %s", strerror(-r));
}

static void bury(struct corpse *c)
{
	struct post *p = container_of(c, struct post, corpse);
	buf_done(&p->text);
	buf_done(&p->answer);
	free(p);
}

/* {"partialSuccess":{"rejectedSpans":"3","errorMessage":"..."}}: a number in either form. */
static uint64_t rejected(const struct buf *answer, char *why, size_t room)
{
	struct err e;
	auto_json struct json *j = answer->len ? json_parse(answer->p, answer->len, &e) : NULL;
	const struct json *part = json_get(j, "partialSuccess");
	const char *text = json_str(part, "rejectedSpans", NULL);
	int64_t n = text ? strtoll(text, NULL, 10) : json_int(part, "rejectedSpans", 0);
	(void)snprintf(why, room, "%s", json_str(part, "errorMessage", ""));
	return n > 0 ? (uint64_t)n : 0;
}

static void finish(struct post *p, const char *reason)
{
	struct services *s = p->hooks->services;
	struct jail_hooked m = {.delivery = p->delivery,
	        .status = (uint32_t)p->status,
	        .took_ms = (uint32_t)(clock_mono_ms() - p->begun_ms),
	        .retry_after_ms = p->transfer ? transfer_retry_after_ms(p->transfer) : 0};
	char why[sizeof(m.reason)] = "";
	if (p->traces && p->status >= 200 && p->status < 300)
		m.rejected = rejected(&p->answer, why, sizeof(why));
	p->over = true;
	reactor_disarm(&p->late);
	lookup_cancel(&p->lookup);
	transfer_free(take(p->transfer));
	tell(s, &m, p->status ? why : reason);
	list_remove(&p->link);
	p->hooks->n--;
	reactor_bury(s->reactor, &p->corpse);
	jails_slack(s);
	jails_end_if_drained(s);
}

static void on_late(struct timer *t)
{
	finish(container_of(t, struct post, late), "no answer in time");
}

/* ---- libcurl calls ---- */

static int on_head(void *ctx, int status, const char *lines, size_t n)
{
	struct post *p = ctx;
	(void)lines;
	(void)n;
	p->status = status;
	return 0;
}

static ssize_t on_body(void *ctx, const char *bytes, size_t n)
{
	struct post *p = ctx;
	p->answered += n;
	if (p->traces) /* what does not fit is not parsed */
		(void)buf_put(&p->answer, bytes, n);
	return p->answered > ANSWER_MOST ? TRANSFER_ABORT : (ssize_t)n;
}

static ssize_t on_pull(void *ctx, char *to, size_t n)
{
	struct post *p = ctx;
	size_t left = p->text.len - p->head - p->sent, k = left < n ? left : n;
	memcpy(to, p->text.p + p->head + p->sent, k);
	p->sent += k;
	return (ssize_t)k;
}

static bool on_rewind(void *ctx)
{
	((struct post *)ctx)->sent = 0;
	return true;
}

/* Once there is a status it is the answer, whatever becomes of the rest. */
static void on_end(void *ctx, const struct err *e)
{
	struct post *p = ctx;
	if (!p->over)
		finish(p, e ? e->text : "no answer");
}

static const struct transfer_ops ops = {
        .head = on_head, .body = on_body, .pull = on_pull, .rewind = on_rewind, .end = on_end};

/* ---- the beginning ---- */

static void start(struct post *p)
{
	struct err err;
	if (transfer_start(p->transfer, &p->lookup, &err) < 0)
		finish(p, err.text);
}

static void on_addresses(struct lookup *l, const struct err *e)
{
	struct post *p = container_of(l, struct post, lookup);
	if (e)
		finish(p, e->text);
	else
		start(p);
}

/* `id` NULL: it is the body alone. */
static int read_body(struct post *p, const char *id, const char *stamp, int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "the body");
	if (st.st_size < 1 || st.st_size > JAIL_HOOK_BODY)
		return err_set(e, -EBADMSG, "a body of %lld bytes", (long long)st.st_size);
	p->text = (struct buf)BUF_INIT(JAIL_HOOK_BODY + JAIL_HOOK_ID + STAMP_MOST + 2);
	if (id)
		(void)buf_printf(&p->text, "%s.%s.", id, stamp);
	p->head = p->text.len;
	size_t n = (size_t)st.st_size;
	int r = buf_reserve(&p->text, n);
	if (r < 0)
		return err_set(e, r, "no memory for the body");
	if (fd_pread_full(fd, p->text.p + p->head, n, 0) != (ssize_t)n)
		return err_set(e, -EIO, "the body is shorter than it says");
	p->text.len += n;
	return 0;
}

static int put(struct transfer *t, const char *name, const char *prefix, struct http_text value,
        struct err *e)
{
	int r = transfer_header(t, (struct http_text){name, strlen(name)}, prefix, value);
	return r < 0 ? err_set(e, r, "the headers do not fit") : 0;
}

static int put_text(struct transfer *t, const char *name, const char *value, struct err *e)
{
	return put(t, name, "", (struct http_text){value, strlen(value)}, e);
}

static int open_transfer(struct post *p, const struct webhook *w, struct err *e)
{
	int r = origin_parse(w->url, &p->origin, e);
	if (r < 0)
		return r;
	p->reach.n = w->ncidrs;
	memcpy(p->reach.cidrs, w->cidrs, sizeof(p->reach.cidrs));
	struct transfer_spec spec = {.origin = &p->origin,
	        .reach = p->reach,
	        .own = p->hooks->connections,
	        .method = TEXT("POST"),
	        .target = p->origin.prefix[0] ? TEXT("") : TEXT("/"),
	        .body_bytes = (int64_t)(p->text.len - p->head),
	        .ops = &ops,
	        .ctx = p};
	p->transfer = transfer_new(p->hooks->services->upstream, &spec, e);
	if (!p->transfer)
		return e->code;
	r = put_text(p->transfer, "content-type", "application/json", e);
	if (r == 0)
		r = put_text(p->transfer, "user-agent", "agentbox/" AGENTBOX_VERSION, e);
	return r;
}

/* Of traces: root's headers, and nothing is signed. */
static int prepare_traces(struct post *p, const struct otlp *o, int body, struct err *e)
{
	int r = read_body(p, NULL, NULL, body, e);
	p->answer = (struct buf)BUF_INIT(OTLP_ANSWER_MOST);
	if (r == 0)
		r = open_transfer(p, &o->to, e);
	for (uint32_t i = 0; r == 0 && i < o->nheaders; i++) {
		const struct otlp_header *h = &o->headers[i];
		const struct secrets *secrets = p->hooks->services->secrets;
		size_t n = 0;
		const char *secret = h->secret[0] ? secrets_find(secrets, h->secret, &n) : "";
		if (!secret)
			return err_set(e, -ENOKEY, "secret %s is not configured", h->secret);
		r = put(p->transfer, h->name, h->value, (struct http_text){secret, n}, e);
	}
	return r;
}

static int prepare(struct post *p, const struct webhook *w, const char *id, int body, struct err *e)
{
	struct services *s = p->hooks->services;
	char stamp[STAMP_MOST], signature[SIGN_TEXT];
	size_t n = 0;
	const char *secret = secrets_find(s->secrets, w->secret, &n);
	if (!secret)
		return err_set(e, -ENOKEY, "secret %s is not configured", w->secret);
	snprintf(stamp, sizeof(stamp), "%lld", (long long)(clock_wall_ms() / 1000));
	int r = read_body(p, id, stamp, body, e);
	if (r == 0)
		r = sign_text(secret, n, p->text.p, p->text.len, signature, e);
	if (r < 0)
		return r == -EINVAL ? err_wrap(e, "secret %s", w->secret) : r;
	r = open_transfer(p, w, e);
	if (r == 0)
		r = put_text(p->transfer, "webhook-id", id, e);
	if (r == 0)
		r = put_text(p->transfer, "webhook-timestamp", stamp, e);
	if (r == 0)
		r = put_text(p->transfer, "webhook-signature", signature, e);
	return r;
}

/* Where it goes, and how long that may take; of traces config.otlp has it. */
static const struct webhook *find(
        const struct policy_set *set, const struct jail_hook *m, struct err *e)
{
	const struct daemon_config *c = set ? &set->config : NULL;
	bool traces = m->hook == JAIL_HOOK_TRACES;
	if (!set || m->policy_generation != set->generation ||
	        (traces ? !c->otlp.to.url[0] : m->hook >= c->nwebhooks))
		err_set(e, -ESTALE, "agentbox-egress has other webhooks in use");
	else if (!jail_hook_id_ok(m->id))
		err_set(e, -EBADMSG, "the event's id is none");
	else
		return traces ? &c->otlp.to : &c->webhooks[m->hook];
	return NULL;
}

static struct post *post_new(struct hooks *h, const struct jail_hook *m)
{
	struct post *p = xnew(struct post);
	p->hooks = h;
	p->delivery = m->delivery;
	p->traces = m->hook == JAIL_HOOK_TRACES;
	p->begun_ms = clock_mono_ms();
	p->corpse.bury = bury;
	p->late.fire = on_late;
	p->lookup.done = on_addresses;
	list_init(&p->late.link);
	list_append(&h->posts, &p->link);
	h->n++;
	return p;
}

void hooks_begin(struct hooks *h, const struct policy_set *set, const struct jail_hook *m, int body)
{
	struct err err = {0};
	const struct webhook *w = find(set, m, &err);
	if (w && h->n == HOOKS_MOST) {
		err_set(&err, -EBUSY, "%d are under way already", HOOKS_MOST);
		w = NULL;
	}
	if (!w) {
		struct jail_hooked none = {.delivery = m->delivery};
		tell(h->services, &none, err.text);
		return;
	}
	struct post *p = post_new(h, m);
	int r = p->traces ? prepare_traces(p, &set->config.otlp, body, &err)
	                  : prepare(p, w, m->id, body, &err);
	if (r < 0) {
		finish(p, err.text);
		return;
	}
	reactor_arm(h->services->reactor, &p->late, (int64_t)w->timeout_ms);
	r = lookup_start(h->services->resolver, &p->origin, &p->reach, &p->lookup, &err);
	if (r < 0)
		finish(p, err.text);
	else if (r == 1)
		start(p);
}

bool hooks_open(const struct hooks *h)
{
	return h && h->n > 0;
}

/* ---- life ---- */

struct hooks *hooks_new(struct services *s)
{
	struct hooks *h = xnew(struct hooks);
	h->services = s;
	h->connections = connections_new(s->upstream);
	list_init(&h->posts);
	return h;
}

void hooks_free(struct hooks *h)
{
	if (!h)
		return;
	list_for_each (p, &h->posts, struct post, link) {
		reactor_disarm(&p->late);
		lookup_cancel(&p->lookup);
		transfer_free(p->transfer);
		bury(&p->corpse);
	}
	connections_free(h->connections);
	free(h);
}
