/* Fairness, order, limits; then random operations against a slow model. */
#include "supervisor/sched.h"

#include "policy/policy.h"

#include "tests/t.h"

enum { USERS = 5, SESSIONS = 12, JOBS = 400 };

struct item {
	struct sched_job job;
	int session, user;
};

static struct sched_session sessions[SESSIONS];
static struct item items[JOBS];
static int64_t now_us = 1000000;

static void reset(void)
{
	memset(items, 0, sizeof(items));
	for (int i = 0; i < SESSIONS; i++)
		sched_session_init(&sessions[i]);
}

static size_t add_need(
        struct sched *s, int i, int user, int session, int priority, struct sched_need need)
{
	char name[8];
	snprintf(name, sizeof(name), "u%d", user);
	items[i].user = user;
	items[i].session = session;
	const struct sched_ask ask = {name, priority, need};
	sched_add(s, &items[i].job, &sessions[session], &ask, now_us);
	return sched_position(s, &items[i].job);
}

static size_t add(struct sched *s, int i, int user, int session, int priority)
{
	return add_need(s, i, user, session, priority, (struct sched_need){0});
}

static int next(struct sched *s)
{
	struct sched_job *j = sched_next(s, now_us);
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
	sched_leave(s, &items[4].job, now_us);
	ok(next(s) == 2, "a slot came free");
	sched_leave(s, &items[3].job, now_us);
	ok(sched_waiting(s) == 0, "a waiting one left");
	sched_leave(s, &items[3].job, now_us);
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
	sched_leave(s, &items[0].job, now_us);
	ok(next(s) == 1, "in the session's order");
	sched_leave(s, &items[2].job, now_us);
	sched_leave(s, &items[1].job, now_us);
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
	sched_leave(s, &items[0].job, now_us);
	add(s, 2, 0, 0, 0);
	ok(sched_hold(s, &sessions[0]) && next(s) == -1, "held with a job that waits already");
	sched_leave(s, &items[2].job, now_us);
	sched_leave(s, &items[1].job, now_us);
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

static int room(const struct sched *s, const char *owner, uint64_t memory, struct err *e)
{
	const struct sched_ask ask = {owner, 0, {memory, 0}};
	return sched_room(s, &ask, e);
}

static void limit(void)
{
	reset();
	struct err e = {0};
	struct sched *s = sched_new(1, 2);
	ok(room(s, "u0", 0, &e) == 0 && e.code == 0, "room");
	add(s, 0, 0, 0, 0);
	add(s, 1, 0, 1, 0);
	ok(room(s, "u0", 0, &e) == -EAGAIN && strstr(e.text, "2"), "full, and says the limit: %s",
	        e.text);
	ok(next(s) == 0 && room(s, "u0", 0, NULL) == 0, "room again");
	const struct sched_limits more = {.running = 2, .waiting = 2};
	sched_set_limits(s, &more, now_us);
	ok(next(s) == 1, "a raised cap counts at once");
	sched_free(s);
}

static void limits_of_users(void)
{
	reset();
	struct err e = {0};
	struct sched *s = sched_new(1, 1);
	const struct run_share shares[] = {
	        {.user = "u1", .weight = 1, .max = 2, .queue = 1},
	        {.tenant = "acme", .weight = 1, .max = 1, .queue = 3},
	        {.tenant = "acme", .user = "u0", .weight = 2},
	};
	const struct sched_limits l = {.running = 8,
	        .waiting = 100,
	        .user_running = 1,
	        .user_waiting = 2,
	        .shares = shares,
	        .nshares = 3};
	sched_set_limits(s, &l, now_us);
	for (int i = 0; i < 3; i++)
		add(s, i, 0, i, 0);
	for (int i = 3; i < 7; i++)
		add(s, i, 1, i, 0);
	ok(next(s) == 0 && next(s) == 3 && next(s) == 4 && next(s) == -1,
	        "as many at once as everybody may, or this one");
	ok(room(s, "u0", 0, &e) == -EAGAIN && strstr(e.text, "'u0'") && strstr(e.text, "limit 2"),
	        "a user's part of the queue: %s", e.text);
	ok(room(s, "u1", 0, &e) == -EAGAIN && strstr(e.text, "limit 1"), "another's: %s", e.text);
	ok(room(s, "u2", 0, NULL) == 0, "a third has room");
	struct sched_ask ask = {"acme\x1fu0", 0, {0}};
	for (int i = 7; i < 9; i++)
		sched_add(s, &items[i].job, &sessions[i], &ask, now_us);
	ok(next(s) == 7 && next(s) == -1, "a tenant's cap holds for all of its users");
	ask.owner = "acme\x1fu1";
	struct sched_job on_its_way[2] = {0};
	ok(sched_room(s, &ask, NULL) == 0, "it has room");
	for (int i = 0; i < 2; i++)
		sched_expect(s, &on_its_way[i], &ask, now_us);
	ok(sched_room(s, &ask, &e) == -EAGAIN && strstr(e.text, "tenant 'acme'"),
	        "what is on its way counts, too: %s", e.text);
	sched_leave(s, &on_its_way[0], now_us);
	ok(sched_room(s, &ask, NULL) == 0, "until it is given up");
	sched_add(s, &on_its_way[1], &sessions[9], &ask, now_us);
	ok(next(s) == -1, "it waits as the others");
	sched_leave(s, &items[7].job, now_us);
	ok(next(s) == 8, "a user of twice the weight has another turn");
	sched_leave(s, &items[8].job, now_us);
	ok(sched_next(s, now_us) == &on_its_way[1], "then the other one");
	sched_free(s);
}

static void comes_again(void)
{
	reset();
	struct sched *s = sched_new(1, 2);
	ok(sched_retry_after(s, "u0", now_us) == 1, "nothing is known: a second");
	for (int i = 0; i < 8; i++) {
		add(s, i, 0, i, 0);
		ok(next(s) == i, "starts");
		now_us += 7000000;
		sched_leave(s, &items[i].job, now_us);
	}
	unsigned n = sched_retry_after(s, "u0", now_us);
	ok(n >= 7 && n <= 9, "one starts every seven seconds: in %u", n);
	ok(sched_retry_after(s, "u0", now_us + 60000000) >= 60, "none has for a minute");
	ok(sched_retry_after(s, "u0", now_us + 3600000000) == 300, "five minutes at most");
	sched_free(s);
}

static void positions_each(void *ctx, struct sched_job *j, size_t position)
{
	size_t *of = ctx;
	of[(struct item *)(void *)j - items] = position;
}

static void positions(void)
{
	reset();
	struct sched *s = sched_new(1, 100);
	for (int i = 0; i < 6; i++)
		add(s, i, 0, i, i == 5 ? 3 : 0);
	ok(add(s, 6, 1, 6, 0) == 1, "another user's first is behind one of the first user's");
	ok(add(s, 7, 1, 7, 0) == 3, "its second behind two and its own");
	ok(sched_position(s, &items[5].job) == 0, "priority goes in front");
	ok(sched_position(s, &items[0].job) == 2, "of its own and a turn of the other's");
	size_t of[8];
	ok(sched_positions(s, positions_each, of), "all at once");
	int same = 0;
	for (int i = 0; i < 8; i++)
		same += of[i] == sched_position(s, &items[i].job);
	ok(same == 8, "are the same as one by one");
	ok(next(s) == 5 || items[6].job.running, "somebody starts");
	sched_free(s);
}

static void pauses(void)
{
	reset();
	struct sched *s = sched_new(1, 100);
	add(s, 0, 0, 0, 0);
	add(s, 1, 0, 0, 9);
	add(s, 2, 1, 1, 0);
	ok(next(s) == 0 && next(s) == -1, "one runs");
	sched_pause(s, &items[0].job, now_us);
	ok(sched_running(s) == 0 && sched_waiting(s) == 2, "it gives its slot back");
	ok(next(s) == 2 && next(s) == -1, "others take it, but none of its session");
	sched_wake(s, &items[0].job, now_us);
	ok(sched_waiting(s) == 2 && next(s) == -1, "then it waits for a slot");
	sched_leave(s, &items[2].job, now_us);
	ok(next(s) == 0, "in front of what came later in its session, whatever its priority");
	sched_pause(s, &items[0].job, now_us);
	ok(sched_hold(s, &sessions[0]), "a command may have the session meanwhile");
	sched_wake(s, &items[0].job, now_us);
	ok(next(s) == -1, "which it waits for");
	sched_unhold(s, &sessions[0]);
	ok(next(s) == 0, "and goes on");
	sched_pause(s, &items[0].job, now_us);
	sched_leave(s, &items[0].job, now_us);
	ok(next(s) == 1, "one that leaves while it pauses lets the next run");
	sched_leave(s, &items[1].job, now_us);
	const struct sched_ask ask = {"u0", 0, {0}};
	sched_add_paused(s, &items[3].job, &sessions[0], &ask, now_us);
	add(s, 4, 0, 0, 0);
	ok(next(s) == -1 && sched_running(s) == 0, "one of an earlier supervisor pauses on");
	sched_wake(s, &items[3].job, now_us);
	ok(next(s) == 3, "and is first");
	sched_free(s);
}

/* A large one does not wait for ever behind small ones, which fit where it does not. */
static void resources(void)
{
	reset();
	struct err e = {0};
	struct sched *s = sched_new(8, 100);
	const struct sched_limits l = {.running = 8, .waiting = 100, .most = {1000, 0}};
	const struct sched_need small = {250, 0}, large = {750, 0}, huge = {2000, 0};
	sched_set_limits(s, &l, now_us);
	ok(room(s, "u0", 2000, &e) == -ENOEXEC && strstr(e.text, "runs.memory"),
	        "what never fits is refused: %s", e.text);
	for (int i = 0; i < 3; i++)
		add_need(s, i, 0, i, 0, small);
	ok(next(s) == 0 && next(s) == 1 && next(s) == 2, "three small ones");
	add_need(s, 3, 1, 3, 0, large);
	for (int i = 4; i < 8; i++)
		add_need(s, i, 0, i, 0, small);
	ok(next(s) == 4 && next(s) == -1, "one more fits beside the large one that waits");
	sched_leave(s, &items[0].job, now_us);
	ok(next(s) == -1, "what comes free is kept for it");
	sched_leave(s, &items[1].job, now_us);
	sched_leave(s, &items[2].job, now_us);
	ok(next(s) == 3, "until it fits");
	ok(next(s) == -1, "the memory is all promised");
	sched_leave(s, &items[4].job, now_us);
	ok(next(s) == 5, "then others go on");
	add_need(s, 8, 2, 8, 0, large);
	ok(next(s) == -1, "another one");
	sched_leave(s, &items[8].job, now_us);
	sched_leave(s, &items[3].job, now_us);
	ok(next(s) == 6 && next(s) == 7, "one that leaves keeps nothing");
	for (int i = 5; i < 8; i++)
		sched_leave(s, &items[i].job, now_us);
	add_need(s, 9, 0, 9, 0, huge);
	ok(next(s) == 9 && next(s) == -1,
	        "one that was accepted under other limits runs, and by itself");
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
			sched_leave(s, &items[running[k]].job, now_us);
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
	limits_of_users();
	comes_again();
	positions();
	pauses();
	resources();
	light_users();
	random_load();
	return done();
}
