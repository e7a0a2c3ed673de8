#include "supervisor/runner_repo.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "drivers/driver.h"
#include "supervisor/active.h"
#include "supervisor/changes.h"
#include "supervisor/checkout.h"
#include "supervisor/daemon.h"
#include "supervisor/jailed.h"
#include "supervisor/guard.h"
#include "supervisor/journal.h"
#include "supervisor/policies.h"
#include "supervisor/result.h"
#include "supervisor/runner_talk.h"
#include "supervisor/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	SAID_MAX = 1024,    /* of the first program: two lines */
	GIT_LINES = 3,      /* of git's last words */
	RESULT_MAX = 16384, /* of a member of the result: names, numbers, a text of JAILED_SAID */
};

static bool ends_line(char c)
{
	return c == '\n' || c == '\r';
}

static size_t line_before(const char *p, size_t n, size_t *ret_end)
{
	while (n && ends_line(p[n - 1]))
		n--;
	*ret_end = n;
	while (n && !ends_line(p[n - 1]))
		n--;
	return n;
}

static bool is_git(const char *line, size_t n)
{
	return (n > 7 && memcmp(line, "fatal: ", 7) == 0) ||
	       (n > 7 && memcmp(line, "error: ", 7) == 0);
}

/* The program's own last word is one line.  git's last word alone says little ("index-pack
 * failed"): the lines before it say why. */
static void last_words(const char *p, size_t n, struct buf *to)
{
	size_t end, from = line_before(p, n, &end), at = from;
	for (int i = 1; i < GIT_LINES && is_git(p + at, end - at); i++) {
		at = line_before(p, at, &end);
		if (at == end || !is_git(p + at, end - at))
			break;
		from = at;
	}
	bool gap = false;
	for (size_t i = from; i < n; i++) {
		if (ends_line(p[i])) {
			gap = true;
			continue;
		}
		if (gap)
			(void)buf_puts(to, "; "); /* fits: the buffer holds all of it */
		(void)buf_putc(to, p[i]);
		gap = false;
	}
}

/* What it has said, or how it ended. */
static void why_of(const struct jailed_end *x, const char *what, struct err *e)
{
	auto_buf struct buf said = BUF_INIT(3 * (size_t)JAILED_SAID);
	last_words(x->said, x->nsaid, &said);
	if (x->err)
		err_set(e, x->err->code, "%s: %s", what, x->err->text);
	else if (x->timed_out)
		err_set(e, -ETIMEDOUT, "%s: it takes too long", what);
	else if (x->lost)
		err_set(e, -ECONNABORTED, "%s: its jail has ended", what);
	else if (said.len)
		err_set(e, -EIO, "%s: %s", what, said.p);
	else if (x->sig)
		err_set(e, -EIO, "%s: it ended by signal %d", what, x->sig);
	else
		err_set(e, -EIO, "%s: it ended with code %d", what, x->code);
}

static bool went_well(const struct jailed_end *x)
{
	return !x->err && !x->timed_out && !x->lost && !x->sig && x->code == 0;
}

static const struct policy *policy_of(const struct run *r)
{
	const struct policy_set *set = policies_set(r->d->policies);
	int at = policy_find(set, r->plan.policy);
	return at < 0 ? NULL : &set->policies[at];
}

static void emit(struct run *r, enum event_type t, void (*write)(struct run *r, struct jw *w))
{
	auto_buf struct buf b = BUF_INIT(RESULT_MAX);
	struct jw w = JW_INIT(&b);
	write(r, &w);
	active_emit(r, t, b.p, b.len);
}

/* ---- into the workspace ---- */

bool runner_repo_clones(const struct run *r)
{
	return r->checkout.asked && !r->checkout.known;
}

static void write_cloned(struct run *r, struct jw *w)
{
	jw_str(w, "source", r->checkout.was.source);
	jw_str(w, "base", r->checkout.was.base);
	if (r->checkout.was.ref[0])
		jw_str(w, "ref", r->checkout.was.ref);
}

/* The agent starts when it is known for good: what it does then is never overwritten. */
static void on_stored(void *ctx, int rc, const struct err *e)
{
	struct run *r = ctx;
	r->replies--;
	if (r->state == RUN_STATE_SEEDING) {
		if (rc < 0) {
			active_fail(r, e);
		} else {
			r->checkout.known = true;
			emit(r, EVENT_REPO_CLONED, write_cloned);
			r->cloned(r);
		}
	}
	active_settle(r);
}

static int take_base(struct checkout *c, struct err *e)
{
	struct repo_base x;
	if (!c->said.p || strlen(c->said.p) != c->said.len || !repo_base_read(c->said.p, &x))
		return err_set(e, -EBADMSG, "checkout: it does not say what was checked out");
	c->was = (struct store_repo){.source = xstrdup(repo_source(&c->ask)),
	        .base = xstrdup(x.base),
	        .ref = xstrdup(x.ref)};
	return 0;
}

static void on_cloned(void *ctx, const struct jailed_end *x)
{
	struct run *r = ctx;
	struct checkout *c = &r->checkout;
	struct err e;
	int rc = 0;
	jailed_close(take(c->jailed));
	if (went_well(x)) {
		rc = take_base(c, &e);
	} else {
		why_of(x, "checkout", &e);
		rc = e.code;
	}
	if (rc < 0) {
		active_fail(r, &e);
		return;
	}
	r->replies++;
	store_set_repo(r->d->store, r->session->id, &c->was, on_stored, r);
}

static int on_clone_says(void *ctx, const char *p, size_t n, struct err *e)
{
	struct run *r = ctx;
	if (buf_put(&r->checkout.said, p, n) < 0)
		return err_set(e, -EBADMSG, "it says more than it should");
	return 0;
}

void runner_repo_clone(struct run *r, void (*next)(struct run *r))
{
	struct checkout *c = &r->checkout;
	struct repo_command cmd;
	struct err e;
	const struct policy *p = policy_of(r);
	auto_free char *from = NULL;
	r->cloned = next;
	c->said = (struct buf)BUF_INIT(SAID_MAX);
	if (!p) {
		err_set(&e, -ENOEXEC, "policy '%s' is not there any more", r->plan.policy);
		active_fail(r, &e);
		return;
	}
	if (c->ask.url && !(from = repo_from(&c->ask, p, &r->plan.outlets, &e))) {
		active_fail(r, &e);
		return;
	}
	repo_clone_command(&c->ask, from, r->id, policy_trust_env(p), &cmd);
	const struct jailed_spec spec = {.argv = cmd.argv,
	        .env = cmd.env,
	        .cwd = DRIVER_WORKSPACE,
	        .jail = r->watch.jail,
	        .flags = r->plan.exec_flags & JAIL_MAKE_ROOT,
	        .out = on_clone_says,
	        .done = on_cloned,
	        .ctx = r};
	c->jailed = jailed_start(r->d, &spec, &e);
	repo_command_done(&cmd);
	if (!c->jailed)
		active_fail(r, &e);
}

void runner_repo_stop(struct run *r)
{
	jailed_close(take(r->checkout.jailed));
}

/* ---- what has become of it ---- */

bool runner_repo_collects(const struct run *r)
{
	return r->checkout.known && !r->checkout.collected && r->pump &&
	       r->state == RUN_STATE_COLLECTING && !r->plan.is_volatile && !r->withheld;
}

static void write_changes(struct run *r, struct jw *w)
{
	jw_members(w, r->checkout.result.p + 1, r->checkout.result.len - 2);
}

static void begin_result(struct run *r, struct jw *w)
{
	struct checkout *c = &r->checkout;
	c->result = (struct buf)BUF_INIT(RESULT_MAX);
	*w = (struct jw)JW_INIT(&c->result);
	jw_open(w, NULL, '{');
	jw_str(w, "source", c->was.source);
}

static void fail_result(struct run *r, const char *why)
{
	struct jw w;
	buf_done(&r->checkout.result);
	begin_result(r, &w);
	jw_str(&w, "base", r->checkout.was.base);
	jw_bytes(&w, "error", why, strlen(why));
	jw_close(&w, '}');
}

static void collected(struct run *r)
{
	emit(r, EVENT_REPO_CHANGES, write_changes);
	active_step(r, RUN_EVENT_COLLECTED);
	active_settle(r);
}

static void on_changes(void *ctx, const struct jailed_end *x)
{
	struct run *r = ctx;
	struct checkout *c = &r->checkout;
	struct err e;
	int rc = 0;
	jailed_close(take(c->jailed));
	if (went_well(x)) {
		rc = changes_end(c->changes, &e);
	} else {
		why_of(x, "changes", &e);
		rc = e.code;
	}
	if (rc < 0) {
		log_warn("r=%s: %s", r->id, e.text);
		fail_result(r, e.text);
	} else {
		struct jw w;
		buf_done(&c->result);
		begin_result(r, &w);
		changes_members(c->changes, &w);
		jw_close(&w, '}');
	}
	changes_free(take(c->changes));
	collected(r);
}

static int on_changes_say(void *ctx, const char *p, size_t n, struct err *e)
{
	struct run *r = ctx;
	return changes_feed(r->checkout.changes, p, n, e);
}

void runner_repo_note(struct run *r)
{
	fail_result(r, "the supervisor ended while they were looked for");
	result_write(r, &r->result);
	if (!r->result.failed)
		runner_talk_keep(r, JOURNAL_RESULT, r->result.p, r->result.len);
}

static int start_collecting(struct run *r, struct err *e)
{
	struct checkout *c = &r->checkout;
	const struct harness *h = r->harness;
	const struct repo_who who = {.name = h->git_name, .email = h->git_email};
	struct repo_command cmd;
	const struct policy_set *set = policies_set(r->d->policies);
	int at = policy_find(set, r->plan.policy);
	if (at < 0)
		return err_set(e, -ENOEXEC, "policy '%s' is not there any more", r->plan.policy);
	struct jail_make m = {.policy_generation = set->generation,
	        .policy = (uint32_t)at,
	        .flags = JAIL_MAKE_SESSION | JAIL_MAKE_NO_EGRESS,
	        .narrow = r->plan.narrow};
	memcpy(m.session, r->session->id, sizeof(m.session));
	repo_changes_command(c->was.base, r->id, &who, &cmd);
	const struct jailed_spec spec = {.argv = cmd.argv,
	        .env = cmd.env,
	        .cwd = "/",
	        .make = &m,
	        .flags = r->plan.exec_flags & JAIL_MAKE_ROOT,
	        .limit_ms = (int64_t)h->git_timeout_ms,
	        .out = on_changes_say,
	        .done = on_changes,
	        .ctx = r};
	c->changes = changes_new(r->d->artifacts_fd, r->id, &r->kept);
	c->jailed = jailed_start(r->d, &spec, e);
	repo_command_done(&cmd);
	return c->jailed ? 0 : e->code;
}

void runner_repo_collect(struct run *r)
{
	struct err e;
	r->checkout.collected = true;
	if (guard_any(r->harness, GUARD_ARTIFACTS)) {
		fail_result(r, "guardrails look at artifacts, and cannot look into a bundle");
		collected(r);
		return;
	}
	if (start_collecting(r, &e) < 0) {
		fail_result(r, e.text);
		collected(r);
	}
}
