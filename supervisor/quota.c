#include "supervisor/quota.h"

#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/policies.h"
#include "supervisor/store.h"

#include <string.h>

enum { LATEST = 8 /* runs that are looked at for one that has ended and had a jail */ };

static void latest(void *ctx, const struct store_run *r)
{
	(void)str_copy(ctx, NAME_MAX_LEN, r->harness);
}

int quota_policy(struct daemon *d, const char *session, const struct policy **ret,
        struct limits *ret_narrow, struct err *e)
{
	char name[NAME_MAX_LEN] = "";
	struct err none;
	struct harness *h = NULL;
	const struct store_run_filter f = {.session = session, .limit = 1};
	*ret_narrow = (struct limits){.disk_bytes = 0};
	int rc = store_runs(d->store, &f, latest, name, e);
	if (rc < 0)
		return rc;
	if (!name[0] || harnesses_get(d->harnesses, name, &h, &none) < 0)
		h = NULL;
	rc = policies_find(d->policies, h ? h->policy : NULL, ret, e);
	if (rc < 0 && h)
		rc = policies_find(d->policies, NULL, ret, e);
	else if (rc >= 0 && h)
		*ret_narrow = (struct limits){
		        .disk_bytes = h->narrow.disk_bytes, .inodes = h->narrow.inodes};
	harness_unref(h);
	return rc;
}

struct seen {
	char run[ID_MAX];
	int64_t bytes, inodes;
};

static void look_at(void *ctx, const struct store_run *r)
{
	struct seen *s = ctx;
	if (s->run[0] || !r->result)
		return;
	auto_json struct json *result = json_parse(r->result, strlen(r->result), NULL);
	const struct json *used = json_get(result, "resources");
	s->bytes = json_int(used, "diskPeakBytes", 0);
	s->inodes = json_int(used, "inodesPeak", 0);
	if (s->bytes || s->inodes)
		(void)str_copy(s->run, sizeof(s->run), r->id);
}

static void positive(struct jw *w, const char *key, uint64_t value)
{
	if (value)
		jw_int(w, key, (int64_t)value);
}

void quota_json(struct daemon *d, const char *session, struct jw *w)
{
	struct err e;
	struct seen seen = {.bytes = 0};
	struct limits narrow, held;
	const struct policy *p;
	const struct store_run_filter f = {.session = session, .limit = LATEST};
	if (quota_policy(d, session, &p, &narrow, &e) < 0 ||
	        limits_narrow(&p->limits, &narrow, &held, &e) < 0 ||
	        store_runs(d->store, &f, look_at, &seen, &e) < 0)
		return;
	jw_open(w, "disk", '{');
	jw_str(w, "policy", p->name);
	positive(w, "limitBytes", held.disk_bytes);
	positive(w, "limitInodes", held.inodes);
	if (seen.run[0]) {
		positive(w, "peakBytes", (uint64_t)seen.bytes);
		positive(w, "peakInodes", (uint64_t)seen.inodes);
		jw_str(w, "runId", seen.run);
	}
	jw_close(w, '}');
}
