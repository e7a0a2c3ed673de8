#include "supervisor/exec_wait.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/problem.h"
#include "supervisor/sessions.h"

#include <string.h>

enum { TICK_MS = 100 }; /* how late a deadline may be noticed in a loop with nothing else to do */

struct exec_wait {
	struct list link;             /* in exec_waits.waiting */
	struct http_request *request; /* borrowed */
	char session[ID_MAX];
	uint64_t not_jail;
	int64_t deadline_ms;
};

struct exec_waits {
	struct daemon *daemon; /* borrowed */
	exec_again_fn *again;
	struct list waiting; /* exec_wait.link */
	struct loop_hook hook;
	struct op tick;
};

bool exec_must_wait(struct session *live, uint64_t not_jail)
{
	if (!live || (live->jail && live->jail != not_jail))
		return false;
	const struct sched_session *lane = session_lane(live);
	return lane->busy || lane->held;
}

static void gone(void *ctx)
{
	struct exec_wait *x = ctx;
	list_remove(&x->link);
	free(x);
}

static bool late(const struct exec_wait *x)
{
	return clock_mono_ms() >= x->deadline_ms;
}

static bool must_wait(const struct exec_waits *w, const struct exec_wait *x)
{
	return exec_must_wait(sessions_live(w->daemon->sessions, x->session), x->not_jail);
}

/* Whatever happened in this turn may have changed a session.  An answer may take others along, so
 * those that need not wait are first set apart. */
static void look(struct loop_hook *h)
{
	struct exec_waits *w = container_of(h, struct exec_waits, hook);
	struct list over;
	list_init(&over);
	list_for_each (x, &w->waiting, struct exec_wait, link)
		if (late(x) || !must_wait(w, x)) {
			list_remove(&x->link);
			list_append(&over, &x->link);
		}
	while (!list_empty(&over)) {
		struct exec_wait *x = list_entry(over.next, struct exec_wait, link);
		list_remove(&x->link);
		bool waits = must_wait(w, x);
		if (waits && !late(x)) { /* the one before it makes a jail now */
			list_append(&w->waiting, &x->link);
			continue;
		}
		http_on_gone(x->request, NULL, NULL);
		if (waits)
			problem_reply(x->request, PROBLEM_CONFLICT, "try again",
			        "a run or command of session %s is starting or ending all this"
			        " time",
			        x->session);
		else
			w->again(w->daemon, x->request, x->deadline_ms);
		free(x);
	}
}

static void tick(struct op *op, int res, uint32_t flags)
{
	struct exec_waits *w = container_of(op, struct exec_waits, tick);
	(void)res;
	(void)flags;
	if (!list_empty(&w->waiting))
		loop_timeout(w->daemon->loop, &w->tick, TICK_MS, tick);
}

struct exec_waits *exec_waits_new(struct daemon *d, exec_again_fn *again)
{
	struct exec_waits *w = xnew(struct exec_waits);
	w->daemon = d;
	w->again = again;
	list_init(&w->waiting);
	w->hook.run = look;
	loop_hook(d->loop, &w->hook);
	return w;
}

void exec_waits_free(struct exec_waits *w)
{
	free(w);
}

void exec_wait(struct exec_waits *w, struct http_request *r, const char *session, uint64_t not_jail,
        int64_t deadline_ms)
{
	struct exec_wait *x = xnew(struct exec_wait);
	x->request = r;
	(void)str_copy(x->session, sizeof(x->session), session); /* an id: fits */
	x->not_jail = not_jail;
	x->deadline_ms = deadline_ms;
	list_append(&w->waiting, &x->link);
	http_on_gone(r, gone, x);
	if (!w->tick.inflight)
		loop_timeout(w->daemon->loop, &w->tick, TICK_MS, tick);
}
