/* Fairness, order, limits; then random operations against a slow model. */
#include "supervisor/sched.h"

#include "tests/t.h"

enum { USERS = 5, SESSIONS = 12, JOBS = 400 };

struct item {
	struct sched_job job;
	int session, user;
};

static struct sched_session sessions[SESSIONS];
static struct item items[JOBS];

static void reset(void)
{
	memset(items, 0, sizeof(items));
	for (int i = 0; i < SESSIONS; i++)
		sched_session_init(&sessions[i]);
}

static size_t add(struct sched *s, int i, int user, int session, int priority)
{
	char name[8];
	size_t position;
	snprintf(name, sizeof(name), "u%d", user);
	items[i].user = user;
	items[i].session = session;
	sched_add(s, &items[i].job, &sessions[session], name, priority, &position);
	return position;
}

static int next(struct sched *s)
{
	struct sched_job *j = sched_next(s);
	return j ? (int)((struct item *)(void *)j - items) : -1;
}

static void turns(void)
{
	reset();
	struct sched *s = sched_new(3, 100);
	for (int i = 0; i < 4; i++)
		ok(add(s, i, 0, i, 0) == (size_t)i, "position %d", i);
	add(s, 4, 1, 4, 0);
	ok(next(s) == 0, "the first one");
	ok(next(s) == 4, "then the other user");
	ok(next(s) == 1, "then the first user again");
	ok(next(s) == -1, "the cap holds");
	ok(sched_running(s) == 3 && sched_waiting(s) == 2, "counts");
	sched_leave(s, &items[4].job);
	ok(next(s) == 2, "a slot came free");
	sched_leave(s, &items[3].job);
	ok(sched_waiting(s) == 0, "a waiting one left");
	sched_leave(s, &items[3].job);
	ok(sched_running(s) == 3, "leaving twice is harmless");
	sched_free(s);
}

static void busy_sessions(void)
{
	reset();
	struct sched *s = sched_new(8, 100);
	for (int i = 0; i < 5; i++)
		add(s, i, 0, 0, i); /* one session, whatever the priority */
	add(s, 5, 0, 1, 0);
	ok(next(s) == 0, "the session's first");
	ok(next(s) == 5, "its others take no slot; the next session runs");
	ok(next(s) == -1, "nothing else is ready");
	sched_leave(s, &items[0].job);
	ok(next(s) == 1, "in the session's order");
	sched_leave(s, &items[2].job);
	sched_leave(s, &items[1].job);
	ok(next(s) == 3, "a cancelled one is passed over");
	sched_free(s);
}

static void held_sessions(void)
{
	reset();
	struct sched *s = sched_new(8, 100);
	ok(sched_hold(s, &sessions[0]) && !sched_hold(s, &sessions[0]), "held once");
	add(s, 0, 0, 0, 0);
	add(s, 1, 0, 1, 0);
	ok(next(s) == 1 && next(s) == -1, "a held session's job waits and stands in nobody's way");
	ok(!sched_hold(s, &sessions[1]), "a session with a running job is not to be held");
	sched_unhold(s, &sessions[0]);
	ok(next(s) == 0, "then it runs");
	sched_leave(s, &items[0].job);
	add(s, 2, 0, 0, 0);
	ok(sched_hold(s, &sessions[0]) && next(s) == -1, "held with a job that waits already");
	sched_leave(s, &items[2].job);
	sched_leave(s, &items[1].job);
	sched_unhold(s, &sessions[0]);
	ok(next(s) == -1 && sched_waiting(s) == 0, "its job left meanwhile");
	add(s, 3, 1, 0, 0);
	ok(next(s) == 3, "and the session is as new");
	sched_free(s);
}

static void priorities(void)
{
	reset();
	struct sched *s = sched_new(8, 100);
	add(s, 0, 0, 0, 0);
	add(s, 1, 0, 1, 5);
	add(s, 2, 0, 2, 5);
	add(s, 3, 1, 3, 0);
	ok(next(s) == 1, "the higher priority");
	ok(next(s) == 3, "but other users keep their turn");
	ok(next(s) == 2 && next(s) == 0, "then in order");
	sched_free(s);
}

static void limit(void)
{
	reset();
	struct err e = {0};
	struct sched *s = sched_new(1, 2);
	ok(sched_room(s, &e) == 0 && e.code == 0, "room");
	add(s, 0, 0, 0, 0);
	add(s, 1, 0, 1, 0);
	ok(sched_room(s, &e) == -EAGAIN && strstr(e.text, "2"), "full, and says the limit: %s",
	        e.text);
	ok(next(s) == 0 && sched_room(s, NULL) == 0, "room again");
	sched_limits(s, 2, 2);
	ok(next(s) == 1, "a raised cap counts at once");
	sched_free(s);
}

/* A heavy user with one session must not hold back nine light ones (slots are not taken while a
 * session is busy). */
static void light_users(void)
{
	reset();
	struct sched *s = sched_new(8, 1000);
	for (int i = 0; i < 40; i++)
		add(s, i, 0, 0, 0);
	for (int i = 0; i < 9; i++)
		add(s, 40 + i, 1 + i, 1 + i, 0);
	int light = 0;
	for (int i; (i = next(s)) >= 0;)
		light += items[i].user != 0;
	ok(light == 7, "seven of nine light users run at once beside the heavy one (%d)", light);
	sched_free(s);
}

/* Invariants under random load; the same seed each time. */
static void random_load(void)
{
	reset();
	struct sched *s = sched_new(4, JOBS);
	unsigned x = 1;
	int added = 0, finished = 0, running[JOBS], n = 0, bad = 0, last[SESSIONS];
	memset(last, -1, sizeof(last));
	while (finished < JOBS && bad == 0) {
		x = x * 1103515245u + 12345u;
		unsigned r = x >> 16;
		if (added < JOBS && r % 3) {
			int session = (int)(r / 7 % SESSIONS);
			add(s, added++, session % USERS, session, 0);
		} else if (n && r % 2) {
			int k = (int)(r / 11 % (unsigned)n);
			sched_leave(s, &items[running[k]].job);
			running[k] = running[--n];
			finished++;
		}
		for (int i; (i = next(s)) >= 0;) {
			for (int k = 0; k < n; k++)
				bad += items[running[k]].session == items[i].session;
			bad += i < last[items[i].session];
			last[items[i].session] = i;
			running[n++] = i;
		}
		bad += n > 4 || sched_running(s) != (size_t)n ||
		       sched_waiting(s) != (size_t)(added - finished - n);
		if (added == JOBS && n < 4 && sched_waiting(s)) {
			/* Idle slots only when every waiting session is busy. */
			bool busy[SESSIONS] = {false};
			for (int k = 0; k < n; k++)
				busy[items[running[k]].session] = true;
			for (int i = 0; i < JOBS; i++)
				bad += items[i].job.waiting && !busy[items[i].session];
		}
	}
	ok(bad == 0 && finished == JOBS, "%d jobs: one a session, in order, no slot idle",
	        finished);
	sched_free(s);
}

int main(void)
{
	turns();
	busy_sessions();
	held_sessions();
	priorities();
	limit();
	light_users();
	random_load();
	return done();
}
