/* Numbers, torn ends, hidden events, cursors, and disks that are full. */
#include "supervisor/eventlog.h"
#include "supervisor/logline.h"

#include "base/fd.h"
#include "base/json.h"
#include "supervisor/hub.h"
#include "supervisor/stats.h"
#include "supervisor/store.h"
#include "tests/t.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char dir[] = "/tmp/agentbox-eventlog-XXXXXX";
static int dirfd_;
static char ses[ID_MAX], path[256];
static struct err e;

static void fresh(void)
{
	id_new("ses", ses);
	snprintf(path, sizeof(path), "%s/%s.jsonl", dir, ses);
}

static struct eventlog *open_log(struct store *st, struct hub *h)
{
	static struct stats stats;
	return eventlog_new(dirfd_, NULL, h, st, &stats);
}

static int add(struct eventlog *g, const char *text)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "text", text);
	return eventlog_append(g, ses, "run_x", EVENT_AGENT_MESSAGE, b.p, b.len, &e);
}

/* Numbers of everything visible from `from` on, as text; reads `max` bytes at a time. */
static const char *numbers(struct eventlog *g, uint64_t from, size_t max)
{
	static char out[4096];
	struct eventlog_cursor c;
	out[0] = '\0';
	if (eventlog_seek(g, ses, from, &c, &e) < 0)
		return e.text;
	for (;;) {
		auto_buf struct buf b = BUF_INIT(1 << 20);
		int64_t n = eventlog_read(g, &c, &b, max, &e);
		if (n < 0)
			return e.text;
		if (n == 0)
			return out;
		for (char *p = b.p, *nl; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
			struct logline_head h;
			bool fine = logline_head(p, (size_t)(nl - p), &h);
			struct json *j = json_parse(p, (size_t)(nl - p), NULL);
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%llu%s",
			        out[0] ? " " : "", fine ? (unsigned long long)h.seq : 0,
			        j ? "" : "!");
			json_free(j);
		}
	}
}

static off_t size_of(void)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_size : -1;
}

static void plain(void)
{
	fresh();
	struct eventlog *g = open_log(NULL, NULL);
	is_str(numbers(g, 1, 100), "", "nothing yet");
	ok(size_of() < 0, "reading makes no file");
	for (int i = 0; i < 5; i++)
		must(add(g, "x\"\n\xff") == 0, "append %d", i);
	is_str(numbers(g, 1, 1), "1 2 3 4 5", "one at a time");
	is_str(numbers(g, 1, 1 << 20), "1 2 3 4 5", "all at once");
	is_str(numbers(g, 4, 1 << 20), "4 5", "from four");
	is_str(numbers(g, 9, 1 << 20), "", "from beyond the end");
	ok(eventlog_next_seq(g, ses) == 6, "the next is six");
	ok(eventlog_append(g, "ses_../x", "", EVENT_ERROR, "", 0, &e) == -EINVAL, "a foreign id");
	eventlog_free(g);
	g = open_log(NULL, NULL);
	must(add(g, "again") == 0, "append after reopening");
	is_str(numbers(g, 1, 60), "1 2 3 4 5 6", "numbers go on");
	ok(eventlog_remove(g, ses, &e) == 0 && size_of() < 0, "removed");
	eventlog_free(g);
}

/* Cut after every byte of the last line: the whole lines stay, the numbers go on. */
static void torn(void)
{
	fresh();
	struct eventlog *g = open_log(NULL, NULL);
	for (int i = 0; i < 3; i++)
		must(add(g, "torn") == 0, "append");
	eventlog_free(g);
	off_t whole = size_of();
	char *text;
	size_t n;
	must(file_slurp(path, 1 << 20, &text, &n) == 0, "slurp");
	size_t two = (size_t)((char *)memchr(strchr(text, '\n') + 1, '\n', n) - text) + 1;
	int bad = 0;
	for (size_t cut = two; cut < n; cut++) {
		int fd = open(path, O_WRONLY | O_TRUNC);
		bad += fd_write_all(fd, text, cut) < 0;
		close(fd);
		g = open_log(NULL, NULL);
		bad += eventlog_open(g, ses, &e) < 0 || size_of() != (off_t)two;
		bad += add(g, "torn") < 0 || strcmp(numbers(g, 1, 1 << 20), "1 2 3") != 0;
		bad += size_of() != whole;
		eventlog_free(g);
	}
	ok(bad == 0, "every torn end is cut to the last whole line");
	/* Blocks of zeroes are what some file systems leave after a power cut. */
	int fd = open(path, O_WRONLY | O_TRUNC);
	char zeroes[8192] = {0};
	bad = fd_write_all(fd, text, n) < 0 || fd_write_all(fd, zeroes, sizeof(zeroes)) < 0;
	close(fd);
	g = open_log(NULL, NULL);
	ok(bad == 0 && eventlog_open(g, ses, &e) == 0 && size_of() == whole, "zeroes are cut");
	eventlog_free(g);
	free(text);
}

static void big(void)
{
	fresh();
	struct eventlog *g = open_log(NULL, NULL);
	char *x = malloc(300001);
	memset(x, 'b', 300000);
	x[300000] = '\0';
	int bad = 0;
	for (int i = 0; i < 40; i++)
		bad += add(g, i % 10 ? "small" : x) < 0;
	ok(bad == 0, "large and small events");
	eventlog_free(g);
	g = open_log(NULL, NULL); /* the index is rebuilt */
	is_str(numbers(g, 38, 100), "38 39 40", "the index finds the end");
	for (uint64_t i = 1; i <= 40; i++) {
		struct eventlog_cursor c;
		bad += eventlog_seek(g, ses, i, &c, &e) < 0 || c.seq != i;
	}
	ok(bad == 0, "the index finds each");
	char *huge = malloc((size_t)LIMIT_EVENT + 1);
	memset(huge, 'h', (size_t)LIMIT_EVENT);
	ok(eventlog_append(g, ses, "", EVENT_ERROR, huge, LIMIT_EVENT, &e) == -ENOBUFS,
	        "too large: %s", e.text);
	ok(eventlog_next_seq(g, ses) == 41, "and takes no number");
	/* As a stream reads: room for the longest event, and little at once. */
	enum { MOST = LIMIT_EVENT - 4096, ONCE = 64 << 10 };
	for (int i = 0; i < 3; i++)
		must(eventlog_append(g, ses, "", EVENT_ERROR, huge, i == 1 ? MOST : 200, &e) == 0,
		        "append");
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT + ONCE);
	struct eventlog_cursor c;
	must(eventlog_seek(g, ses, 41, &c, &e) == 0, "found");
	int64_t n[3];
	for (int i = 0; i < 3; i++) {
		b.len = 0;
		n[i] = eventlog_read(g, &c, &b, ONCE, &e);
	}
	ok(n[0] > 200 && n[0] < 4096 && n[1] > MOST && n[2] == n[0],
	        "the longest event is read, and alone (%lld, %lld, %lld)", (long long)n[0],
	        (long long)n[1], (long long)n[2]);
	free(huge);
	free(x);
	eventlog_free(g);
}

/* RLIMIT_FSIZE stands for a full disk: part of a line may be written. */
static void full_disk(void)
{
	fresh();
	struct eventlog *g = open_log(NULL, NULL);
	must(add(g, "before") == 0, "append");
	off_t before = size_of();
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = (rlim_t)before + 20;
	setrlimit(RLIMIT_FSIZE, &small);
	int rc = add(g, "does not fit");
	off_t then = size_of();
	setrlimit(RLIMIT_FSIZE, &old); /* before ok(): the limit holds for our output as well */
	ok(rc == -EFBIG, "a write that fails is told: %s", e.text);
	ok(then == before, "and leaves nothing of itself");
	ok(add(g, "after") == 0, "room again");
	is_str(numbers(g, 1, 1 << 20), "1 2", "no gap, nothing torn");
	eventlog_free(g);
}

static int woken;
static void wake(struct hub_sub *s)
{
	(void)s;
	woken++;
}

static void held(void)
{
	fresh();
	struct hub *h = hub_new(NULL);
	struct hub_sub sub = {.wake = wake}, other = {.wake = wake};
	char elsewhere[ID_MAX];
	id_new("ses", elsewhere);
	struct eventlog *g = open_log(NULL, h);
	uint64_t seq = 0;
	hub_subscribe(h, ses, &sub);
	hub_subscribe(h, elsewhere, &other);
	must(add(g, "seen") == 0 && add(g, "seen") == 0, "append");
	ok(woken == 0, "nobody is called from within an append");
	hub_flush(h);
	ok(woken == 1, "one wake-up for two events, for this session only");
	hub_flush(h);
	ok(woken == 1, "and not again");
	must(eventlog_append_held(g, ses, "run_x", EVENT_RUN_DONE, "\"result\":{}", 11, &seq, &e) ==
	                0,
	        "held");
	must(add(g, "behind it") == 0, "append");
	hub_flush(h);
	ok(woken == 1, "hidden events wake nobody");
	is_str(numbers(g, 1, 1 << 20), "1 2", "nor can they be read");
	eventlog_release(g, ses, seq);
	hub_flush(h);
	ok(woken == 2, "released");
	is_str(numbers(g, 1, 1 << 20), "1 2 3 4", "with what was behind it");
	char *line = eventlog_find(g, ses, "run_x", "run.done");
	ok(line && strstr(line, "\"result\":{}"), "found again: %s", line ? line : "nothing");
	free(line);
	ok(!eventlog_find(g, ses, "run_y", "run.done"), "not of another run");
	hub_unsubscribe(h, &sub);
	hub_unsubscribe(h, &sub);
	must(add(g, "alone") == 0, "append");
	hub_flush(h);
	ok(woken == 2, "unsubscribed");
	eventlog_free(g);
	hub_free(h);
}

static void nothing(void *ctx, int rc, const struct err *x)
{
	(void)ctx;
	(void)rc;
	(void)x;
}

static void rewrite_boot(const char *db)
{
	auto_free char *cmd = NULL;
	must(asprintf(&cmd,
	             "sqlite3 %s \"UPDATE meta SET value='another' WHERE key='boot';"
	             " UPDATE meta SET value='0' WHERE key='clean'\"",
	             db) > 0 &&
	                system(cmd) == 0,
	        "another boot (by the sqlite3 command)");
}

/* Numbers are only seen once they are reserved; a power cut leaves one log.gap. */
static void reserved(void)
{
	static struct stats stats;
	char db[256];
	fresh();
	snprintf(db, sizeof(db), "%s/db", dir);
	struct store *st = store_open(db, &stats, &e);
	must(st != NULL, "store: %s", st ? "" : e.text);
	struct eventlog *g = open_log(st, NULL);
	struct store_session s = {.id = ses, .user = "u", .goal = "g", .created_ms = 1};
	must(eventlog_open(g, ses, &e) == 0, "open");
	s.reserved = eventlog_claim(g, ses);
	must(add(g, "early") == 0, "append");
	is_str(numbers(g, 1, 1 << 20), "", "not reserved: not seen");
	store_add_session(st, &s, nothing, NULL);
	store_drain(st);
	eventlog_claimed(g, ses, s.reserved);
	is_str(numbers(g, 1, 1 << 20), "1", "reserved: seen");
	int bad = 0;
	for (int i = 0; i < 3 * EVENTLOG_BLOCK; i++)
		bad += add(g, "y") < 0;
	store_drain(st);
	struct eventlog_cursor c;
	ok(bad == 0, "blocks follow one another");
	is_str(numbers(g, 3 * EVENTLOG_BLOCK, 1 << 20), "12288 12289",
	        "and all is seen in the end");
	/* Closed unclean, another boot, and the last line lost. */
	uint64_t last = eventlog_next_seq(g, ses) - 1;
	eventlog_free(g);
	store_close(st);
	ok(last == 3 * EVENTLOG_BLOCK + 1, "so many numbers were seen");
	if (truncate(path, size_of() - 5) < 0)
		bad++;
	rewrite_boot(db);
	st = store_open(db, &stats, &e);
	must(st != NULL, "store again: %s", st ? "" : e.text);
	g = open_log(st, NULL);
	must(eventlog_open(g, ses, &e) == 0, "open after the power cut: %s", e.text);
	store_drain(st);
	auto_buf struct buf b = BUF_INIT(1 << 20);
	must(eventlog_seek(g, ses, last, &c, &e) == 0, "seek");
	ok(eventlog_read(g, &c, &b, 1 << 20, &e) > 0 && strstr(b.p, "\"type\":\"log.gap\"") &&
	                strstr(b.p, "\"from\":12289,"),
	        "one log.gap from the lost number on: %.200s", b.p ? b.p : "");
	struct logline_head h;
	ok(b.p && logline_head(b.p, strcspn(b.p, "\n"), &h) && h.seq > last,
	        "beyond every number that may have been seen");
	uint64_t next = eventlog_next_seq(g, ses);
	eventlog_free(g);
	store_close(st);
	st = store_open(db, &stats, &e);
	g = open_log(st, NULL);
	ok(st && eventlog_next_seq(g, ses) == next, "once only");
	eventlog_free(g);
	store_close(st);
}

/* An agent that never pauses: something is hidden at each moment, and never much of it. */
static void never_caught_up(void)
{
	enum { EVENTS = 100000, BEHIND = 500 };
	static struct stats stats;
	char db[256];
	fresh();
	snprintf(db, sizeof(db), "%s/db-behind", dir);
	struct store *st = store_open(db, &stats, &e);
	must(st != NULL, "store: %s", st ? "" : e.text);
	struct eventlog *g = open_log(st, NULL);
	must(eventlog_open(g, ses, &e) == 0, "open");
	int bad = 0;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (uint64_t i = 1; i <= EVENTS; i++) {
		bad += add(g, "y") < 0;
		if (i > BEHIND)
			eventlog_claimed(g, ses, i - BEHIND);
	}
	struct mallinfo2 m = mallinfo2();
	size_t held = m.uordblks + m.hblkhd;
	ok(bad == 0 && held < before + (256 << 10), "what was seen is not held: %zu bytes",
	        held - before);
	char want[32];
	snprintf(want, sizeof(want), "%d %d", EVENTS - BEHIND - 1, EVENTS - BEHIND);
	is_str(numbers(g, EVENTS - BEHIND - 1, 1 << 20), want,
	        "what is not reserved is hidden still");
	eventlog_claimed(g, ses, EVENTS);
	snprintf(want, sizeof(want), "%d", EVENTS);
	is_str(numbers(g, EVENTS, 1 << 20), want, "and seen in the end");
	store_drain(st); /* its answers are the log's */
	eventlog_free(g);
	store_close(st);
}

static void many(void)
{
	struct eventlog *g = open_log(NULL, NULL);
	static char ids[EVENTLOG_FDS + 50][ID_MAX];
	int bad = 0;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < EVENTLOG_FDS + 50; i++) {
			fresh();
			if (round == 0)
				memcpy(ids[i], ses, sizeof(ids[i]));
			memcpy(ses, ids[i], sizeof(ses));
			bad += add(g, "m") < 0;
		}
	int fds = fd_count();
	ok(bad == 0 && fds < EVENTLOG_FDS + 20, "descriptors are bounded: %d", fds);
	memcpy(ses, ids[0], sizeof(ses));
	is_str(numbers(g, 1, 100), "1 2", "evicted ones come back");
	eventlog_free(g);
}

struct end_read {
	uint64_t first, last, offset;
};

static bool end_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	struct end_read *x = ctx;
	struct logline_head h;
	if (!logline_head(line, n, &h))
		return false;
	if (!x->first) {
		x->first = h.seq;
		x->offset = offset;
	}
	x->last = h.seq;
	return true;
}

/* The end of a long log, from a whole line on. */
static void end_of_it(void)
{
	struct eventlog *g = open_log(NULL, NULL);
	static char text[40001];
	memset(text, 'x', sizeof(text) - 1);
	fresh();
	bool all = true;
	for (int i = 0; i < 50; i++)
		all &= add(g, text) == 0;
	must(all, "two million bytes");
	struct end_read x = {0};
	eventlog_tail(g, ses, 400000, end_line, &x);
	ok(x.last == 50 && x.first > 35 && x.first <= 41, "its end, from %d on", (int)x.first);
	struct end_read whole = {0};
	eventlog_tail(g, ses, 100 << 20, end_line, &whole);
	ok(whole.first == 1 && whole.last == 50 && whole.offset == 0, "or all of it");
	fresh();
	struct end_read none = {0};
	eventlog_tail(g, ses, 1000, end_line, &none);
	ok(none.last == 0, "or nothing");
	eventlog_free(g);
}

/* Old events go, and the numbers go on; also in a file whose hole is in two pieces. */
static void test_cut(void)
{
	fresh();
	struct eventlog *g = open_log(NULL, NULL);
	char text[2048];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 20; i++)
		must(add(g, text) == 0, "%s", e.text);
	struct eventlog_cursor behind;
	must(eventlog_seek(g, ses, 3, &behind, &e) == 0, "%s", e.text);
	struct stat before, after;
	must(stat(path, &before) == 0, "stat");
	ok(eventlog_first(g, ses) == 1, "all is there");
	ok(eventlog_cut(g, ses, 16, &e) == 0, "cut");
	ok(eventlog_first(g, ses) == 16, "the first one");
	is_str(numbers(g, 0, 1 << 16), "16 17 18 19 20", "what is kept");
	is_str(numbers(g, 17, 1 << 16), "17 18 19 20", "from within it");
	must(stat(path, &after) == 0, "stat");
	ok(after.st_blocks < before.st_blocks && after.st_size == before.st_size,
	        "room is given back, offsets stay");
	auto_buf struct buf b = BUF_INIT(1 << 20);
	ok(eventlog_read(g, &behind, &b, 1, &e) > 0 && strstr(b.p, "\"seq\":16,"),
	        "who read what is gone goes on behind it");
	ok(eventlog_cut(g, ses, 10, &e) == 0 && eventlog_first(g, ses) == 16, "not back");
	must(add(g, "y") == 0, "%s", e.text);
	eventlog_free(g);
	int fd = open(path, O_RDWR);
	must(fd >= 0 && pwrite(fd, "torn old line\n", 14, 4096) == 14, "a piece of the old");
	close(fd);
	g = open_log(NULL, NULL);
	is_str(numbers(g, 0, 1 << 16), "16 17 18 19 20 21", "opened anew");
	ok(eventlog_cut(g, ses, UINT64_MAX, &e) == 0, "all");
	is_str(numbers(g, 0, 1 << 16), "21", "the last one stays");
	eventlog_free(g);
	g = open_log(NULL, NULL);
	must(add(g, "z") == 0, "%s", e.text);
	is_str(numbers(g, 0, 1 << 16), "21 22", "so that the numbers go on");
	eventlog_free(g);
}

int main(void)
{
	must(mkdtemp(dir) != NULL, "directory");
	dirfd_ = open(dir, O_DIRECTORY | O_CLOEXEC);
	signal(SIGXFSZ, SIG_IGN);
	log_init("test", LOG_LEVEL_ERR);
	plain();
	torn();
	big();
	full_disk();
	held();
	reserved();
	never_caught_up();
	many();
	end_of_it();
	test_cut();
	auto_free char *cmd = NULL;
	if (asprintf(&cmd, "rm -rf %s", dir) > 0)
		(void)!system(cmd);
	return done();
}
