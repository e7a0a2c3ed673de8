#include "supervisor/sched.h"

#include "base/mem.h"
#include "supervisor/hash.h"

#include <assert.h>
#include <string.h>

enum { BUCKETS = 256 }; /* users with work: tens to hundreds */

struct sched_user {
	struct list link;  /* in sched.users[] */
	struct list turn;  /* in sched.turns while it has a ready session */
	struct list ready; /* sched_session.ready: idle with jobs, best first */
	size_t jobs;       /* waiting and running; the record goes at 0 */
	char *name;        /* owned */
};

struct sched {
	size_t max_running, max_waiting;
	size_t running, waiting;
	uint64_t arrivals;
	struct list users[BUCKETS];
	struct list turns; /* sched_user.turn: whose turn it is, first first */
};

struct sched *sched_new(size_t max_running, size_t max_waiting)
{
	struct sched *s = xnew(struct sched);
	sched_limits(s, max_running, max_waiting);
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&s->users[i]);
	list_init(&s->turns);
	return s;
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		list_for_each (u, &s->users[i], struct sched_user, link) {
			free(u->name);
			free(u);
		}
	free(s);
}

void sched_limits(struct sched *s, size_t max_running, size_t max_waiting)
{
	s->max_running = max_running;
	s->max_waiting = max_waiting;
}

void sched_session_init(struct sched_session *x)
{
	memset(x, 0, sizeof(*x));
	list_init(&x->jobs);
	list_init(&x->ready);
}

int sched_room(const struct sched *s, struct err *e)
{
	if (s->waiting < s->max_waiting)
		return 0;
	return err_set(e, -EAGAIN, "the queue of runs is full (limit %zu)", s->max_waiting);
}

static struct sched_user *user_get(struct sched *s, const char *name)
{
	struct list *bucket = &s->users[hash_text(name) % BUCKETS];
	list_for_each (u, bucket, struct sched_user, link)
		if (strcmp(u->name, name) == 0)
			return u;
	struct sched_user *u = xnew(struct sched_user);
	u->name = xstrdup(name);
	list_init(&u->turn);
	list_init(&u->ready);
	list_append(bucket, &u->link);
	return u;
}

static void user_put(struct sched_user *u)
{
	if (--u->jobs)
		return;
	list_remove(&u->link);
	list_remove(&u->turn);
	free(u->name);
	free(u);
}

static struct sched_job *head(const struct sched_session *x)
{
	return list_first(&x->jobs, struct sched_job, link);
}

/* By their first jobs; both have one. */
static bool before(const struct sched_session *x, const struct sched_session *y)
{
	const struct sched_job *a = head(x), *b = head(y);
	assert(a && b);
	return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

/* Puts the session where its first job belongs, or nowhere while it is busy, held or empty. */
static void session_place(struct sched *s, struct sched_session *x, struct sched_user *u)
{
	list_remove(&x->ready);
	if (!x->busy && !x->held && head(x)) {
		struct list *at = &u->ready;
		list_for_each (o, &u->ready, struct sched_session, ready)
			if (before(x, o)) {
				at = &o->ready;
				break;
			}
		list_append(at, &x->ready); /* in front of `at` */
	}
	if (list_empty(&u->ready))
		list_remove(&u->turn);
	else if (list_empty(&u->turn))
		list_append(&s->turns, &u->turn);
}

void sched_add(struct sched *s, struct sched_job *j, struct sched_session *x, const char *user,
        int priority, size_t *ret_position)
{
	struct sched_user *u = x->user ? x->user : user_get(s, user);
	u->jobs++;
	x->user = u;
	*ret_position = s->waiting;
	j->session = x;
	j->arrival = ++s->arrivals;
	j->priority = priority;
	j->waiting = true;
	j->running = false;
	/* Jobs of one session keep their order whatever their priority: they build on each other.
	 */
	list_append(&x->jobs, &j->link);
	s->waiting++;
	session_place(s, x, u);
}

struct sched_job *sched_next(struct sched *s)
{
	struct sched_user *u = list_first(&s->turns, struct sched_user, turn);
	if (!u || s->running >= s->max_running)
		return NULL;
	struct sched_session *x = list_first(&u->ready, struct sched_session, ready);
	assert(x); /* a user in line has a session that is ready, and that a job */
	struct sched_job *j = head(x);
	assert(j);
	list_remove(&j->link);
	j->waiting = false;
	j->running = true;
	x->busy = true;
	s->waiting--;
	s->running++;
	/* To the end of the line, then out of it if nothing is ready any more. */
	list_remove(&u->turn);
	session_place(s, x, u);
	return j;
}

void sched_resume(struct sched *s, struct sched_job *j, struct sched_session *x, const char *user)
{
	struct sched_user *u = x->user ? x->user : user_get(s, user);
	assert(!x->busy);
	u->jobs++;
	x->user = u;
	x->busy = true;
	j->session = x;
	j->running = true;
	s->running++;
	session_place(s, x, u);
}

void sched_leave(struct sched *s, struct sched_job *j)
{
	if (!j->waiting && !j->running)
		return;
	struct sched_session *x = j->session;
	struct sched_user *u = x->user;
	if (j->waiting) {
		list_remove(&j->link);
		s->waiting--;
	} else {
		s->running--;
		x->busy = false;
	}
	j->waiting = j->running = false;
	session_place(s, x, u);
	if (!x->busy && !head(x))
		x->user = NULL;
	user_put(u);
}

bool sched_hold(struct sched *s, struct sched_session *x)
{
	if (x->busy || x->held)
		return false;
	x->held = true;
	if (x->user)
		session_place(s, x, x->user);
	return true;
}

void sched_unhold(struct sched *s, struct sched_session *x)
{
	x->held = false;
	if (x->user)
		session_place(s, x, x->user);
}

size_t sched_running(const struct sched *s)
{
	return s->running;
}

size_t sched_waiting(const struct sched *s)
{
	return s->waiting;
}
