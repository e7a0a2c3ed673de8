/* Frames that followers share: who gets the same, and who must not. */
#include "supervisor/frames.h"

#include "base/limits.h"
#include "supervisor/stats.h"
#include "tests/t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define RUN   "run_0123456789abcdef0123456789abcdef"
#define OTHER "run_f123456789abcdef0123456789abcdef"
enum { MAX = 64 << 10 };

static char session[ID_MAX];
static struct eventlog *g;
static struct frames *fs;
static struct err e;

static void append(const char *run, enum event_type t, const char *members)
{
	must(eventlog_append(g, session, run, t, members, strlen(members), &e) == 0, "append");
}

static struct frame *take_frame(struct frames_spec spec, struct eventlog_cursor *c)
{
	struct frame *f = NULL;
	int rc = frames_next(fs, g, &spec, c, MAX, LIMIT_EVENT, &f, &e);
	return rc == 1 ? f : NULL;
}

static struct eventlog_cursor at(uint64_t seq)
{
	struct eventlog_cursor c;
	must(eventlog_seek(g, session, seq, &c, &e) == 0, "seek");
	return c;
}

static void shared(void)
{
	const struct frames_spec sse = {FRAMES_SSE, "", 1};
	struct eventlog_cursor a = at(1), b = at(1), c = at(1);
	append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"one\"");
	append(OTHER, EVENT_AGENT_MESSAGE, "\"text\":\"two\"");
	struct frame *x = take_frame(sse, &a), *y = take_frame(sse, &b);
	ok(x && x == y, "two at the same place have one frame");
	ok(x && strstr(x->out.p, "id: 1\n") && strstr(x->out.p, "id: 2\n"), "with both events");
	ok(a.seq == 3 && b.seq == 3 && a.offset == b.offset, "and both go on behind them");
	append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"three\"");
	struct frame *z = take_frame(sse, &c);
	ok(z == x && c.seq == 3, "who comes later gets what was read before");
	frames_drop(z);
	z = take_frame(sse, &c);
	ok(z && z != x && strstr(z->out.p, "id: 3\n") && !strstr(z->out.p, "id: 2\n"),
	        "and then the rest, each once");
	ok(!take_frame(sse, &c), "and then nothing");
	frames_drop(x);
	frames_drop(y);
	frames_drop(z);
}

static void apart(void)
{
	struct eventlog_cursor a = at(1), b = at(1), c = at(1), d = at(1), f = at(2);
	struct frame *all = take_frame((struct frames_spec){FRAMES_SSE, "", 1}, &a);
	struct frame *lines = take_frame((struct frames_spec){FRAMES_NDJSON, "", 1}, &b);
	struct frame *run = take_frame((struct frames_spec){FRAMES_SSE, OTHER, 1}, &c);
	struct frame *late = take_frame((struct frames_spec){FRAMES_SSE, "", 3}, &d);
	struct frame *second = take_frame((struct frames_spec){FRAMES_SSE, "", 2}, &f);
	ok(lines && lines->out.p[0] == '{', "another format is another frame");
	ok(run && strstr(run->out.p, "two") && !strstr(run->out.p, "one"), "so is one run alone");
	ok(late && !strstr(late->out.p, "two") && strstr(late->out.p, "three"),
	        "and who wants later events only");
	ok(second && !strstr(second->out.p, "one"), "and who stands elsewhere");
	ok(all && strstr(all->out.p, "one"), "none of it is seen by others");
	frames_drop(all);
	frames_drop(lines);
	frames_drop(run);
	frames_drop(late);
	frames_drop(second);
}

static void large(void)
{
	const struct frames_spec sse = {FRAMES_SSE, "", 1};
	auto_buf struct buf b = BUF_INIT(2 << 20);
	buf_puts(&b, "\"text\":\"");
	while (b.len < 1 << 20)
		buf_puts(&b, "0123456789abcdef");
	buf_puts(&b, "\"");
	append(RUN, EVENT_AGENT_MESSAGE, b.p);
	struct eventlog_cursor c = at(4), d = at(4);
	struct frame *x = take_frame(sse, &c), *y = take_frame(sse, &d), *f = NULL;
	ok(x && y && x != y && x->out.len > 1 << 20, "what is large is its reader's alone");
	ok(x && x->refs == 1 && y && y->refs == 1, "and nobody keeps it");
	struct eventlog_cursor again = at(4);
	ok(frames_next(fs, g, &sse, &again, MAX, MAX, &f, &e) == -ENOBUFS && !f && again.seq == 4,
	        "one beyond the limit is left where it is");
	frames_drop(x);
	frames_drop(y);
}

/* Who waits for numbers that are still to come does not change what others get there. */
static void ahead(void)
{
	struct eventlog_cursor a = at(1000), b = at(5);
	append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"now\"");
	struct frame *x = take_frame((struct frames_spec){FRAMES_SSE, "", 1000}, &a);
	struct frame *y = take_frame((struct frames_spec){FRAMES_SSE, "", 0}, &b);
	ok(x && x->out.len == 0, "what is too early for one");
	ok(y && strstr(y->out.p, "now"), "is another's");
	frames_drop(x);
	frames_drop(y);
}

static void gone(void)
{
	const struct frames_spec sse = {FRAMES_SSE, "", 1};
	struct eventlog_cursor c = at(3), slow = at(3);
	append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"late\"");
	struct frame *x = take_frame(sse, &c);
	ok(x && strstr(x->out.p, "three"), "a frame that is kept");
	frames_drop(x);
	must(eventlog_cut(g, session, 6, &e) == 0 && eventlog_first(g, session) == 6,
	        "what it is of is not: %s", e.text);
	x = take_frame(sse, &slow);
	ok(x && strstr(x->out.p, "late") && !strstr(x->out.p, "three"),
	        "who stood there gets what there is");
	frames_drop(x);
}

static void ends(void)
{
	append(RUN, EVENT_RUN_DONE, "\"result\":{}");
	append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"after\"");
	struct eventlog_cursor c = at(7);
	struct frame *x = take_frame((struct frames_spec){FRAMES_SSE, RUN, 1}, &c);
	ok(x && x->ended && !strstr(x->out.p, "after"), "a run's events end with its run.done");
	frames_drop(x);
	frames_free(fs);
	fs = NULL;
}

int main(void)
{
	char dir[] = "/tmp/frames-XXXXXX", path[256];
	must(mkdtemp(dir), "a directory");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	id_new("ses", session);
	struct stats stats = {0};
	g = eventlog_new(fd, NULL, NULL, NULL, &stats);
	fs = frames_new();
	must(eventlog_open(g, session, &e) == 0, "a log");
	shared();
	apart();
	large();
	ahead();
	gone();
	ends();
	eventlog_free(g);
	snprintf(path, sizeof(path), "rm -rf %s", dir);
	must(system(path) == 0, "cleaned up");
	return done();
}
