#include "supervisor/store.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/store_private.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* ---- jobs ---- */

struct job *store_job(store_done_fn *done, void *ctx)
{
	struct job *j = xnew(struct job);
	list_init(&j->steps);
	j->sync_fd = -1;
	j->done = done;
	j->ctx = ctx;
	return j;
}

/* types: t text (const char *, NULL allowed), b blob (const char *, size_t), i (int64_t). */
void store_job_add(struct job *j, enum write stmt, const char *types, ...)
{
	struct step *s = xnew(struct step);
	s->stmt = stmt;
	va_list ap;
	va_start(ap, types);
	for (const char *t = types; *t; t++) {
		assert(s->nparams < STORE_PARAMS);
		struct db_param *p = &s->params[s->nparams++];
		p->type = *t;
		if (*t == 'i') {
			p->i = va_arg(ap, int64_t);
			continue;
		}
		const char *from = va_arg(ap, const char *);
		p->n = *t == 'b' ? va_arg(ap, size_t) : from ? strlen(from) : 0;
		char *copy = from ? xcalloc(1, p->n + 1) : NULL;
		if (from)
			memcpy(copy, from, p->n);
		p->p = copy;
	}
	va_end(ap);
	list_append(&j->steps, &s->link);
}

void store_job_free(struct job *j)
{
	list_for_each (s, &j->steps, struct step, link) {
		for (size_t i = 0; i < s->nparams; i++)
			free((char *)(uintptr_t)s->params[i].p);
		free(s);
	}
	fd_close(j->sync_fd);
	free(j->copy_to);
	free(j);
}

/* ---- writing ---- */

static void add_session(struct job *j, const struct store_session *s)
{
	store_job_add(j, W_SESSION, "tttii", s->id, s->user, s->goal, s->created_ms,
	        (int64_t)s->reserved);
}

void store_add_session(
        struct store *st, const struct store_session *s, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	add_session(j, s);
	store_submit(st, j);
}

void store_add_run(struct store *st, const struct store_session *s, const struct store_run *r,
        const char *key, const char *hash, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	add_session(j, s);
	store_job_add(j, W_RUN, "tttbtiii", r->id, r->session, r->harness, r->prompt, r->prompt_len,
	        r->params, (int64_t)r->priority, r->created_ms, (int64_t)r->from_seq);
	if (r->pipeline)
		store_job_add(j, W_PIPELINE, "tt", r->id, r->pipeline);
	if (r->parent)
		store_job_add(j, W_STEP, "tti", r->id, r->parent, (int64_t)r->step);
	if (r->trace)
		store_job_add(j, W_TRACE, "tt", r->id, r->trace);
	if (key)
		store_job_add(j, W_KEY, "tttt", s->user, key, r->id, hash);
	for (unsigned i = 0; r->webhooks && i < r->webhooks->n; i++)
		store_job_add(j, W_HOOK, "ttti", r->webhooks->names[i], r->id, r->session,
		        (int64_t)r->from_seq);
	if (r->repo)
		store_job_add(j, W_CHECKOUT, "ttt", r->id, r->session, r->repo);
	store_submit(st, j);
}

void store_start_run(struct store *st, const char *run, int64_t started_ms)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_START, "ti", run, started_ms);
	store_submit(st, j);
}

void store_use_session(struct store *st, const char *session, int64_t ms)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_USED, "ti", session, ms);
	store_submit(st, j);
}

void store_evict_session(
        struct store *st, const char *session, int64_t ms, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_EVICT, "ti", session, ms);
	store_submit(st, j);
}

void store_pin_session(
        struct store *st, const char *session, bool pinned, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_PIN, "ti", session, (int64_t)pinned);
	store_submit(st, j);
}

void store_seeded(struct store *st, const char *session)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_SEEDED, "t", session);
	store_submit(st, j);
}

void store_finish_run(
        struct store *st, const struct store_finish *f, int sync_fd, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	j->sync_fd = sync_fd;
	store_job_add(j, W_FINISH, "ttti", f->run, f->status, f->result, f->ended_ms);
	for (size_t i = 0; i < f->nartifacts; i++)
		store_job_add(j, W_ARTIFACT, "titit", f->run, (int64_t)i, f->artifacts[i].path,
		        (int64_t)f->artifacts[i].bytes, f->artifacts[i].sha256);
	for (size_t i = 0; f->place && i < f->nartifacts; i++)
		store_job_add(j, W_OBJECT, "tittitti", f->run, (int64_t)i, f->session,
		        f->artifacts[i].path, (int64_t)f->artifacts[i].bytes,
		        f->artifacts[i].sha256, f->place, f->ended_ms);
	if (f->resume && f->resume[0])
		store_job_add(j, W_RESUME, "tttt", f->session, f->backend, f->resume, f->run);
	else if (f->resume)
		store_job_add(j, W_FORGET, "tt", f->session, f->backend);
	if (f->asked_repo)
		store_job_add(j, W_CHECKOUT_DONE, "t", f->run);
	if (f->settled)
		store_job_add(j, W_SETTLE, "tii", f->session, (int64_t)f->settled, f->ended_ms);
	else
		store_job_add(j, W_USED, "ti", f->session, f->ended_ms);
	store_submit(st, j);
}

void store_set_repo(struct store *st, const char *session, const struct store_repo *x,
        store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_REPO, "tttt", session, x->source, x->base, x->ref);
	store_submit(st, j);
}

void store_take_talks(struct store *st, const char *session, const struct store_talk *all, size_t n,
        store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	for (size_t i = 0; i < n; i++)
		store_job_add(j, W_RESUME, "tttt", session, all[i].backend, all[i].id, all[i].run);
	store_submit(st, j);
}

void store_reserve(
        struct store *st, const char *session, uint64_t upto, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_RESERVE, "ti", session, (int64_t)upto);
	store_submit(st, j);
}

void store_set_meta(
        struct store *st, const char *key, const char *value, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_META, "tt", key, value);
	store_submit(st, j);
}

void store_sync(struct store *st, int fd, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	j->sync_fd = fd;
	store_submit(st, j);
}

void store_sync_artifacts(
        struct store *st, int root_fd, const char *run, size_t n, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	j->kept.root_fd = root_fd;
	(void)str_copy(j->kept.run, sizeof(j->kept.run), run); /* an id of ours */
	j->kept.n = n;
	store_submit(st, j);
}

void store_sync_later(struct store *st, int fd)
{
	struct job *j = store_job(NULL, NULL);
	j->sync_fd = fd;
	j->later = true;
	store_submit(st, j);
}

void store_delete_session(struct store *st, const char *session, store_done_fn *done, void *ctx)
{
	static const enum write order[] = {W_DROP_ARTIFACTS, W_DROP_KEYS, W_DROP_RUNS,
	        W_DROP_RESUMES, W_DROP_HOOKS, W_DROP_CHECKOUTS, W_DROP_REPO, W_DROP_SESSION};
	struct job *j = store_job(done, ctx);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		store_job_add(j, order[i], "t", session);
	store_job_add(j, W_DROP_OBJECTS, "ti", session, clock_wall_ms());
	store_job_add(j, W_DROP_SPENT, "it", (int64_t)BUDGET_SESSION, session);
	store_submit(st, j);
}

void store_add_key(struct store *st, const struct store_key *k, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_API_KEY, "ttt", k->id, k->hash, k->spec);
	store_submit(st, j);
}

void store_drop_key(struct store *st, const char *id, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_DROP_API_KEY, "t", id);
	store_submit(st, j);
}

void store_gone(struct store *st, const char *run, unsigned gone, store_done_fn *done, void *ctx)
{
	struct job *j = store_job(done, ctx);
	store_job_add(j, W_GONE, "ti", run, (int64_t)gone);
	if (gone & STORE_GONE_ARTIFACTS) {
		store_job_add(j, W_DROP_RUN_ARTIFACTS, "t", run);
		store_job_add(j, W_DROP_RUN_OBJECTS, "ti", run, clock_wall_ms());
	}
	store_submit(st, j);
}

void store_drop_run(struct store *st, const char *run, store_done_fn *done, void *ctx)
{
	static const enum write order[] = {W_DROP_RUN_ARTIFACTS, W_DROP_RUN_KEY, W_DROP_RUN};
	struct job *j = store_job(done, ctx);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		store_job_add(j, order[i], "t", run);
	store_job_add(j, W_DROP_RUN_OBJECTS, "ti", run, clock_wall_ms());
	store_submit(st, j);
}

static int64_t bounded(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

void store_spend(struct store *st, const struct store_spent *all, size_t n)
{
	struct job *j = store_job(NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		const struct budget *b = &all[i].spent.sum;
		store_job_add(j, W_SPENT, "itiiiiii", (int64_t)all[i].scope, all[i].id, all[i].day,
		        bounded(b->requests), bounded(b->bytes), bounded(b->tokens),
		        bounded(b->cost_micro), bounded(all[i].spent.unpriced));
	}
	store_submit(st, j);
}

void store_forget_spent(struct store *st, int64_t before_day)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_FORGET_SPENT, "i", before_day);
	store_submit(st, j);
}

void store_delivered(struct store *st, const char *webhook, const char *run, uint64_t seq)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_HOOK_AT, "tti", webhook, run, (int64_t)seq);
	store_submit(st, j);
}

void store_delivered_all(struct store *st, const char *webhook, const char *run)
{
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_HOOK_DONE, "tt", webhook, run);
	store_submit(st, j);
}
