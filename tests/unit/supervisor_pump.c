/* Splitting lines however the bytes arrive; and the pump on real pipes. */
#include "supervisor/pump.h"

#include "base/clock.h"
#include "base/fd.h"
#include "supervisor/loop.h"
#include "tests/t.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

/* ---- lines ---- */

static char log_text[1 << 16];
static size_t log_len, pieces, piece_bytes, largest;

static void note(void *ctx, const char *p, size_t n, bool whole)
{
	(void)ctx;
	pieces++;
	piece_bytes += n;
	largest = n > largest ? n : largest;
	if (log_len + n + 2 < sizeof(log_text)) {
		log_text[log_len++] = whole ? '=' : '~';
		memcpy(log_text + log_len, p, n);
		log_len += n;
		log_text[log_len++] = '|';
		log_text[log_len] = '\0';
	}
}

static void forget(void)
{
	log_len = pieces = piece_bytes = largest = 0;
	log_text[0] = '\0';
}

static void feed_by(const char *text, size_t len, size_t chunk, size_t line_max, size_t piece)
{
	struct splitter s = SPLITTER_INIT;
	s.line_max = line_max;
	s.piece = piece;
	forget();
	for (size_t at = 0; at < len; at += chunk)
		splitter_feed(&s, text + at, len - at < chunk ? len - at : chunk, note, NULL);
	splitter_end(&s, note, NULL);
	splitter_done(&s);
}

static void lines(void)
{
	static const char text[] =
	        "one\n\ntwo \xff\xfe\nwith\0nul\nsep \xe2\x80\xa8\xc2\x85\r\v\f.\nlast";
	static const char want[] =
	        "=one|=|=two \xff\xfe|=with\0nul|=sep \xe2\x80\xa8\xc2\x85\r\v\f.|=last|";
	int bad = 0;
	for (size_t chunk = 1; chunk <= sizeof(text); chunk++) {
		feed_by(text, sizeof(text) - 1, chunk, LIMIT_LINE, LIMIT_RAW_PIECE);
		bad += log_len != sizeof(want) - 1 || memcmp(log_text, want, log_len) != 0;
	}
	ok(bad == 0, "the same lines for every chunk size");
	feed_by("a\n", 2, 1, LIMIT_LINE, LIMIT_RAW_PIECE);
	is_str(log_text, "=a|", "no line after the last newline");
	feed_by("", 0, 1, LIMIT_LINE, LIMIT_RAW_PIECE);
	is_str(log_text, "", "nothing is no line");
	feed_by("abcdefghijk\nxy\n", 15, 15, 8, 4);
	is_str(log_text, "~abcd|~efgh|~ijk|=xy|", "a long line in pieces, all at once");
	feed_by("abcdefghijk\nxy\n", 15, 1, 8, 4);
	is_str(log_text, "~abcd|~efgh|~ijk|=xy|", "a long line in pieces, byte by byte");
	feed_by("abcdefghijkl", 12, 5, 8, 4);
	is_str(log_text, "~abcd|~efgh|~ijkl|", "a long line without an end");
	feed_by("abcdefgh\n", 9, 3, 8, 4);
	is_str(log_text, "=abcdefgh|", "a line of just the limit is whole");
}

static void floods(void)
{
	enum { CHUNK = 64 << 10 };
	static char x[CHUNK];
	memset(x, 'x', sizeof(x));
	struct splitter s = SPLITTER_INIT;
	forget();
	int64_t t = clock_mono_ms();
	const size_t total = (size_t)1 << 30;
	for (size_t at = 0; at < total; at += CHUNK)
		splitter_feed(&s, x, CHUNK, note, NULL);
	splitter_end(&s, note, NULL);
	t = clock_mono_ms() - t;
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	ok(piece_bytes == total, "a line of 1 GiB: every byte comes out");
	ok(largest <= LIMIT_RAW_PIECE, "in pieces of at most %d", LIMIT_RAW_PIECE);
	ok(u.ru_maxrss < 128 << 10, "in flat memory: %ld KiB at most", u.ru_maxrss);
	ok(t < 60000, "in linear time: %lld ms", (long long)t);
	splitter_done(&s);
	forget();
	t = clock_mono_ms();
	for (size_t at = 0; at < (size_t)20 << 20; at++)
		splitter_feed(&s, at % 2 ? "\n" : "y", 1, note, NULL);
	ok(pieces == (size_t)10 << 20, "ten million lines, a byte at a time: %lld ms",
	        (long long)(clock_mono_ms() - t));
	splitter_done(&s);
}

/* ---- the pump ---- */

static struct loop *loop;
static size_t got_lines, got_bytes, drained, batches, batched_lines;
static bool hold;
static int slow_us;
static struct op guard;

static void on_line(void *ctx, enum pump_stream s, const char *p, size_t n, bool whole)
{
	(void)ctx;
	(void)s;
	note(NULL, p, n, whole);
	got_lines++;
	int64_t until = slow_us ? clock_mono_us() + slow_us : 0;
	while (slow_us && clock_mono_us() < until)
		; /* what an event costs */
}

/* What a journal would hold: the reads, each with its stream and length. */
static struct taken {
	enum pump_stream s;
	size_t at, n;
} taken[4096];
static char taken_bytes[4 << 20];
static size_t ntaken, taken_len;
static bool keeping;

static void on_bytes(void *ctx, enum pump_stream s, const char *p, size_t n)
{
	(void)ctx;
	got_bytes += n;
	if (!keeping || ntaken == sizeof(taken) / sizeof(taken[0]) ||
	        taken_len + n > sizeof(taken_bytes))
		return;
	taken[ntaken++] = (struct taken){s, taken_len, n};
	memcpy(taken_bytes + taken_len, p, n);
	taken_len += n;
}

static int busy[3];
static size_t written, stdin_ends;

static void on_busy(void *ctx, enum pump_stream s, bool on)
{
	(void)ctx;
	busy[s] += on ? 1 : -1;
}

static void on_wrote(void *ctx, size_t n)
{
	(void)ctx;
	written += n;
}

static void on_stdin_ended(void *ctx)
{
	(void)ctx;
	stdin_ends++;
}

static void on_batch(void *ctx, enum pump_stream s)
{
	(void)ctx;
	(void)s;
	batches++;
	batched_lines = got_lines;
}

static bool on_ready(void *ctx)
{
	(void)ctx;
	return !hold;
}

static void on_drained(void *ctx)
{
	(void)ctx;
	drained++;
	loop_stop(loop);
}

static const struct pump_calls calls = {.line = on_line,
        .bytes = on_bytes,
        .busy = on_busy,
        .wrote = on_wrote,
        .stdin_ended = on_stdin_ended,
        .batch = on_batch,
        .ready = on_ready,
        .drained = on_drained};

static void guarded(struct op *op, int res, uint32_t flags)
{
	(void)op;
	(void)res;
	(void)flags;
	loop_stop(loop);
}

static void run_for(int64_t ms)
{
	struct err e;
	loop_timeout(loop, &guard, ms, guarded);
	if (loop_run(loop, &e) < 0)
		printf("# loop: %s\n", e.text);
	if (guard.inflight) {
		loop_cancel(loop, &guard);
		(void)!loop_run(loop, &e);
	}
}

static void pipes_of(int ours[3], int theirs[3])
{
	for (int i = 0; i < 3; i++) {
		int p[2];
		must(pipe2(p, O_CLOEXEC) == 0, "pipe");
		ours[i] = p[i == 0];
		theirs[i] = p[i != 0];
		must(fd_set_nonblock(ours[i], 1) == 0, "ours does not block");
	}
}

static void *shout(void *arg)
{
	const int *fds = arg;
	char line[1000];
	memset(line, 'z', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int i = 0; i < 2000; i++)
		(void)!fd_write_all(fds[1], line, sizeof(line));
	(void)!fd_write_all(fds[2], "oops", 4);
	close(fds[1]);
	close(fds[2]);
	return NULL;
}

static void pumped(void)
{
	int ours[3], theirs[3];
	pthread_t t;
	pipes_of(ours, theirs);
	forget();
	hold = true;
	struct pump *p = pump_new(loop, ours, &calls, NULL);
	pthread_create(&t, NULL, shout, theirs);
	run_for(200);
	ok(got_bytes == 0, "nothing is read while the log is behind");
	hold = false;
	/* Nobody reads stdin: two megabytes wait and hold up nothing. */
	static char big[2 << 20];
	ok(pump_write(p, big, sizeof(big), true) == 0, "much for stdin");
	run_for(30000);
	pthread_join(t, NULL);
	ok(drained == 1 && pump_drained(p), "drained, once");
	ok(got_lines == 2001 && got_bytes == 2000004, "%zu lines, %zu bytes", got_lines, got_bytes);
	ok(batches >= 2 && batches < got_lines / 2 && batched_lines == got_lines,
	        "the lines of a read are one batch: %zu", batches);
	/* Now somebody reads. */
	size_t n = 0;
	char buf[65536];
	must(fd_set_nonblock(theirs[0], 1) == 0, "their stdin does not block");
	for (int i = 0; i < 500 && n < sizeof(big); i++) {
		ssize_t k = read(theirs[0], buf, sizeof(buf));
		n += k > 0 ? (size_t)k : 0;
		run_for(5);
	}
	ok(n == sizeof(big), "all of it arrives (%zu)", n);
	run_for(20);
	ok(read(theirs[0], buf, 1) == 0, "and its end");
	pump_close(p);
	run_for(20);
	close(theirs[0]);
}

static void given_up(void)
{
	int ours[3], theirs[3];
	pipes_of(ours, theirs);
	drained = 0;
	struct pump *p = pump_new(loop, ours, &calls, NULL);
	run_for(20);
	pump_give_up(p);
	run_for(5000);
	ok(drained == 1, "giving up drains");
	pump_close(p);
	run_for(20);
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
	/* Closed while reading: the last completion frees. */
	pipes_of(ours, theirs);
	p = pump_new(loop, ours, &calls, NULL);
	run_for(20);
	pump_close(p);
	run_for(50);
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
}

/* What one pump took and noted brings another to the same place: the same lines in the same
 * batches, the rest of a line, and stdin from where it was. */
static void replayed(void)
{
	int ours[3], theirs[3], kept[3];
	char buf[64];
	pipes_of(ours, theirs);
	for (int i = 0; i < 3; i++)
		kept[i] = fcntl(ours[i], F_DUPFD_CLOEXEC, 3);
	forget();
	drained = batches = written = stdin_ends = 0;
	keeping = true;
	struct pump *p = pump_new(loop, ours, &calls, NULL);
	ok(pump_write(p, "hello ", 6, false) == 0 && written == 6, "written and told");
	must(fd_write_all(theirs[1], "one\ntwo\nthr", 11) == 0, "its output");
	must(fd_write_all(theirs[2], "bad\n", 4) == 0, "its errors");
	run_for(50);
	ok(busy[0] == 0 && busy[1] == 0 && busy[2] == 0, "nothing is under way while it waits");
	pump_hold(p);
	must(fd_write_all(theirs[1], "ee\n", 3) == 0, "more of it");
	run_for(50);
	ok(ntaken == 2 && taken_len == 15, "on hold nothing is taken: %zu reads", ntaken);
	pump_close(p);
	run_for(20);
	static char first[1 << 12];
	must(str_copy(first, sizeof(first), log_text), "what came is no more than that");
	size_t first_batches = batches;
	forget();
	batches = 0;
	keeping = false;
	p = pump_new_held(loop, kept, &calls, NULL, 6);
	ok(pump_write(p, "hello world", 11, true) == 0 && written == 6, "held: nothing is written");
	for (size_t i = 0; i < ntaken; i++)
		pump_replay(p, taken[i].s, taken_bytes + taken[i].at, taken[i].n);
	is_str(log_text, first, "the same lines come again");
	ok(batches == first_batches, "in the same batches");
	pump_go(p);
	run_for(50);
	ok(strstr(log_text, "=three|") != NULL, "and the rest of the last one");
	ok(written == 11 && stdin_ends == 1, "only what was missing is written, then its end");
	ok(read(theirs[0], buf, sizeof(buf)) == 11 && memcmp(buf, "hello world", 11) == 0,
	        "it reads all of it once");
	/* The ends of the streams can be replayed too. */
	pump_replay(p, PUMP_STDOUT, "", 0);
	pump_replay(p, PUMP_STDERR, "", 0);
	ok(pump_drained(p) && drained == 0, "at their ends");
	pump_go(p);
	run_for(2000);
	ok(drained == 1, "which is told later, once");
	pump_close(p);
	run_for(20);
	for (int i = 0; i < 3; i++)
		close(theirs[i]);
}

/* ---- many short lines ---- */

enum { SHORT = 5000, LINE_US = 50 };

static struct op ticker;
static int64_t last_us, longest_us; /* of our processor time: others have theirs */

static int64_t used_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void on_tick(struct op *op, int res, uint32_t flags)
{
	(void)op;
	(void)res;
	(void)flags;
	int64_t now = used_us();
	longest_us = now - last_us > longest_us ? now - last_us : longest_us;
	last_us = now;
	loop_timeout(loop, &ticker, 1, on_tick);
}

static void ticks(bool on)
{
	longest_us = 0;
	last_us = used_us();
	if (on)
		loop_timeout(loop, &ticker, 1, on_tick);
	else
		loop_cancel(loop, &ticker);
}

/* A pump with SHORT lines in its stdout and one in its stderr, until some of them are told. */
static struct pump *flooded(int ours[3], int theirs[3])
{
	static char text[3 * SHORT + 1];
	for (int i = 0; i < SHORT; i++)
		memcpy(text + 3 * i, "{}\n", 3);
	pipes_of(ours, theirs);
	forget();
	drained = batches = got_lines = 0;
	must(fd_write_all(theirs[1], text, 3 * SHORT) == 0, "its output");
	slow_us = LINE_US;
	struct pump *p = pump_new(loop, ours, &calls, NULL);
	for (int i = 0; i < 1000 && got_lines == 0; i++)
		run_for(1);
	must(fd_write_all(theirs[2], "bad\n", 4) == 0, "its errors");
	return p;
}

static void end_flood(struct pump *p, int theirs[3])
{
	slow_us = 0;
	pump_close(p);
	run_for(20);
	for (int i = 0; i < 3; i++)
		fd_close(take_fd(theirs[i]));
}

static void fair(void)
{
	int ours[3], theirs[3];
	ticks(true);
	struct pump *p = flooded(ours, theirs);
	ok(got_lines > 0 && got_lines < SHORT, "a read of %d lines is told in parts: %zu", SHORT,
	        got_lines);
	fd_close(take_fd(theirs[1]));
	fd_close(take_fd(theirs[2]));
	run_for(20000);
	int64_t most = longest_us;
	ticks(false);
	/* All at once it would be 250 ms. */
	ok(most < 50000, "others have their turn after %lld ms", (long long)most / 1000);
	ok(drained == 1 && got_lines == SHORT + 1 && strstr(log_text, "=bad|") != NULL,
	        "all of them are told: %zu", got_lines);
	ok(log_text[log_len - 2] == 'd' && batches == 4, "in the order of the reads: %zu batches",
	        batches);
	end_flood(p, theirs);
}

static void in_parts(void)
{
	int ours[3], theirs[3];
	struct pump *p = flooded(ours, theirs);
	ok(got_lines < SHORT && !pump_idle(p), "while lines are untold it is not idle");
	pump_settle(p);
	ok(got_lines == SHORT && batches == 1, "settled: all are told, one batch");
	run_for(50);
	ok(got_lines == SHORT + 1 && pump_idle(p), "and it goes on");
	end_flood(p, theirs);

	p = flooded(ours, theirs);
	pump_give_up(p);
	ok(!pump_drained(p), "what was read is told before it is given up");
	run_for(20000);
	ok(drained == 1 && got_lines == SHORT, "and what was not read is not: %zu", got_lines);
	end_flood(p, theirs);

	p = flooded(ours, theirs);
	pump_hold(p);
	size_t then = got_lines;
	run_for(50);
	ok(got_lines == then && then < SHORT, "on hold nothing more is told");
	pump_go(p);
	run_for(1000);
	ok(got_lines == SHORT + 1, "and then the rest");
	end_flood(p, theirs);

	p = flooded(ours, theirs);
	then = got_lines;
	end_flood(p, theirs);
	ok(got_lines == then, "closed: nobody is told any more");
}

int main(void)
{
	struct err e;
	lines();
	floods();
	loop = loop_new(64, &e);
	if (!loop || loop_enable(loop, &e) < 0)
		skip_all(e.text);
	signal(SIGPIPE, SIG_IGN);
	int before = fd_count();
	pumped();
	given_up();
	replayed();
	fair();
	in_parts();
	ok(fd_count() == before, "no descriptor is left: %d, %d", before, fd_count());
	return done();
}
