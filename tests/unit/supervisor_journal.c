/* What is kept for the next supervisor: records in order, a state that a SIGKILL leaves, and
 * nothing that is torn, foreign or incomplete taken for good. */
#include "supervisor/journal.h"

#include "base/fd.h"
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const run = "run_01jd0000000000000000000000";
static int dir;
static char text[ERR_TEXT_MAX];

static int note(void *ctx, enum journal_type t, const char *p, size_t n)
{
	(void)ctx;
	size_t len = strlen(text);
	snprintf(text + len, sizeof(text) - len, "%d:%.*s|", (int)t, (int)n, p);
	return 0;
}

static const char *all_of(struct journal *j)
{
	struct err e;
	text[0] = '\0';
	if (journal_each(j, note, NULL, &e) < 0)
		snprintf(text, sizeof(text), "%s", e.text);
	return text;
}

static bool put(struct journal *j, enum journal_type t, const char *s)
{
	struct err e;
	return journal_put(j, t, s, strlen(s), &e) == 0;
}

/* A supervisor that is killed in the middle of a read. */
static void killed(void)
{
	struct err e;
	pid_t pid = fork();
	if (pid == 0) {
		struct journal *j = journal_new(dir, run, &e);
		if (!j || !put(j, JOURNAL_HARNESS, "h") || !put(j, JOURNAL_STDOUT, "one\ntw") ||
		        !put(j, JOURNAL_STDERR, "") || !put(j, JOURNAL_STDOUT, "o\n"))
			_exit(1);
		journal_state(j)->stdin_done = 42;
		journal_state(j)->judged = 1;
		snprintf(journal_state(j)->why, JOURNAL_WHY, "because");
		journal_state(j)->reading[1] = 1;
		kill(getpid(), SIGKILL);
	}
	int status;
	waitpid(pid, &status, 0);
	must(WIFSIGNALED(status), "it was killed");
	struct journal *j = journal_open(dir, run, &e);
	must(j != NULL, "a journal");
	is_str(all_of(j), "0:h|1:one\ntw|2:|1:o\n|", "its records, in order");
	struct journal_state *s = journal_state(j);
	ok(s->stdin_done == 42 && s->judged && !s->reading[0] && s->reading[1], "its state");
	is_str(s->why, "because", "and the verdict");
	ok(put(j, JOURNAL_INTERRUPT, ""), "it goes on");
	journal_close(j);
	j = journal_open(dir, run, &e);
	must(j != NULL, "a journal");
	is_str(all_of(j), "0:h|1:one\ntw|2:|1:o\n|3:|", "from its end");
	journal_close(j);
}

/* The beginning of a secret that the next supervisor may see the end of. */
static void waits(void)
{
	struct err e;
	struct veil v;
	char back[VEIL_WINDOW], file[16384];
	static const char half[] = "the beginning of a secret", other[] = "of another";
	must(veil_begin(&v, &e) == 0, "a veil");
	struct journal *j = journal_new(dir, run, &e);
	must(j != NULL, "a journal");
	journal_waits(j, &v, 0, half, sizeof(half));
	journal_waits(j, &v, 1, other, sizeof(other));
	journal_close(j);
	j = journal_open(dir, run, &e);
	must(j != NULL, "a journal");
	ok(journal_waited(j, &v, 0, back) == sizeof(half) && !strcmp(back, half) &&
	                journal_waited(j, &v, 1, back) == sizeof(other) && !strcmp(back, other),
	        "what waits is there for the next one");
	int fd = openat(dir, run, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, file, sizeof(file));
	ok(n > 0 && !memmem(file, (size_t)n, half, 8) && !memmem(file, (size_t)n, other, 8),
	        "and not to be read in the file");
	journal_waits(j, &v, 0, "", 0);
	ok(journal_waited(j, &v, 0, back) == 0, "nothing waits any more");
	journal_state(j)->agent.veil = v;
	(void)journal_end(j);
	n = pread(fd, file, sizeof(file), 0);
	ok(n > 0 && !memmem(file, (size_t)n, v.key, sizeof(v.key)), "the veil goes with its end");
	close(fd);
	journal_close(j);
}

/* Supervisors that end while the driver has the word, one after the other. */
static void deaths(void)
{
	struct err e;
	struct journal *j = journal_new(dir, run, &e);
	must(j != NULL, "a journal");
	ok(journal_deaths(j, &e) == 0 && journal_deaths(j, &e) == 0 && journal_deaths(j, &e) == 0,
	        "who ended elsewhere does not count");
	for (int i = 0; i < 2; i++) {
		journal_driving(j, true);
		journal_close(j);
		j = journal_open(dir, run, &e);
		must(j != NULL, "a journal");
		ok(journal_deaths(j, &e) == 0, "death %d is forgiven", i + 1);
	}
	journal_driving(j, true);
	journal_driving(j, false);
	ok(journal_deaths(j, &e) == 0, "a call that came back does not count");
	journal_driving(j, true);
	ok(journal_deaths(j, &e) == -ELOOP && strstr(e.text, "3 supervisors"), "the third is not");
	ok(journal_deaths(j, &e) == -ELOOP, "and that stands");
	journal_driving(NULL, true);
	journal_close(j);
}

/* ---- as a raw log ---- */

/* Everything a reader gets now: streams' bytes by their number, gaps, and how it stands. */
static const char *raw_of(struct journal_reader *r)
{
	static char out[4096];
	auto_buf struct buf b = BUF_INIT(8 << 20);
	struct journal_raw x;
	struct err e;
	size_t n = 0;
	uint64_t bytes = 0;
	int rc;
	out[0] = '\0';
	while ((rc = journal_reader_next(r, &b, &x, &e)) > 0) {
		bytes += x.n;
		if (x.gap)
			n += (size_t)snprintf(
			        out + n, sizeof(out) - n, "gap %d|", (int)(x.gap >> 20));
		else if (x.n < 64 && n < sizeof(out) - 100)
			n += (size_t)snprintf(
			        out + n, sizeof(out) - n, "%d:%.*s|", (int)x.type, (int)x.n, x.p);
	}
	snprintf(out + n, sizeof(out) - n, "%s%s%s%d MiB", rc < 0 ? e.text : "",
	        x.ended ? "ended " : "", x.broken ? "broken " : "", (int)(bytes >> 20));
	return out;
}

static void raw(void)
{
	struct err e;
	struct journal_reader r;
	journal_remove(dir, run);
	ok(journal_reader_open(dir, run, &r, &e) == -ENOENT, "no log");
	struct journal *j = journal_new(dir, run, &e);
	must(j && put(j, JOURNAL_STDOUT, "one"), "a journal");
	must(journal_reader_open(dir, run, &r, &e) == 0, "is a log from its beginning");
	is_str(raw_of(&r), "1:one|0 MiB", "it is read while it is written");
	must(put(j, JOURNAL_STDERR, "two") && put(j, JOURNAL_STDOUT, "three"), "more");
	is_str(raw_of(&r), "2:two|1:three|0 MiB", "and on");
	uint64_t bytes = journal_end(j);
	ok(bytes > 0 && bytes < 64 << 10, "it takes %d bytes", (int)bytes);
	is_str(raw_of(&r), "ended 0 MiB", "to its end");
	int fd = journal_sync_fd(j);
	ok(fd >= 0, "it can be synced elsewhere");
	close(fd);
	journal_close(j);
	journal_reader_done(&r);
	must(journal_reader_open(dir, run, &r, &e) == 0, "it stays");
	is_str(raw_of(&r), "1:one|2:two|1:three|ended 0 MiB", "whole");
	journal_reader_done(&r);
}

/* Of a long one both ends stay, and the disk has the rest back. */
static void cut(void)
{
	struct err e;
	struct journal_reader r, early;
	static char chunk[16 << 10];
	memset(chunk, 'x', sizeof(chunk));
	struct journal *j = journal_new(dir, run, &e);
	must(j && put(j, JOURNAL_STDOUT, "first"), "a journal");
	bool all = true;
	for (int i = 0; i < 64 * 64; i++)
		all &= journal_put(j, JOURNAL_STDOUT, chunk, sizeof(chunk), &e) == 0;
	must(all && put(j, JOURNAL_STDOUT, "last"), "64 MiB");
	must(journal_reader_open(dir, run, &early, &e) == 0, "read before its end");
	auto_buf struct buf b = BUF_INIT(8 << 20);
	struct journal_raw x;
	for (int i = 0; i < 1000; i++)
		all &= journal_reader_next(&early, &b, &x, &e) == 1;
	must(all, "some of it");
	uint64_t bytes = journal_end(j);
	ok(bytes > 14 << 20 && bytes < 18 << 20, "%d MiB stay", (int)(bytes >> 20));
	const char *rest = raw_of(&early);
	ok(strncmp(rest, "gap 3", 5) == 0 && strstr(rest, "|1:last|ended"),
	        "who is within goes on behind it");
	journal_reader_done(&early);
	must(journal_reader_open(dir, run, &r, &e) == 0, "it stays");
	is_str(raw_of(&r), "1:first|gap 49|1:last|ended 15 MiB", "its ends");
	journal_reader_done(&r);
	journal_close(j);
	journal_remove(dir, run);
}

static bool newest(void *ctx, const char *name)
{
	(void)ctx;
	return name[26] == '0'; /* the oldest, which is still in use */
}

static void pruned(void)
{
	struct err e;
	char name[ID_MAX];
	static char chunk[1 << 20];
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "run_01jd000000000000000000%d000", i);
		must(id_valid(name, "run"), "an id");
		struct journal *j = journal_new(dir, name, &e);
		must(j && journal_put(j, JOURNAL_STDOUT, chunk, sizeof(chunk), &e) == 0, "a MiB");
		(void)journal_end(j);
		journal_close(j);
	}
	uint64_t sum = journal_prune(dir, UINT64_MAX, newest, NULL);
	ok(sum > 8 << 20 && sum < 10 << 20, "they take %d MiB", (int)(sum >> 20));
	sum = journal_prune(dir, 4 << 20, newest, NULL);
	ok(sum > 2 << 20 && sum <= 4 << 20, "now %d MiB", (int)(sum >> 20));
	char left[16] = "";
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "run_01jd000000000000000000%d000", i);
		if (faccessat(dir, name, F_OK, 0) == 0)
			snprintf(left + strlen(left), 3, "%d", i);
		journal_remove(dir, name);
	}
	is_str(left, "067", "the oldest went, but for one that is in use");
}

static void torn(void)
{
	struct err e;
	struct journal *j = journal_new(dir, run, &e);
	must(j && put(j, JOURNAL_STDOUT, "good"), "a journal");
	journal_close(j);
	int fd = openat(dir, run, O_WRONLY | O_APPEND | O_CLOEXEC);
	must(write(fd, "\1\0\0\0\377", 5) == 5, "a torn record behind it");
	j = journal_open(dir, run, &e);
	must(j != NULL, "a journal");
	is_str(all_of(j), "1:good|", "what is torn is not there");
	ok(put(j, JOURNAL_STDOUT, "more"), "the next one goes over it");
	is_str(all_of(j), "1:good|1:more|", "as it should");
	uint32_t wrong[2] = {JOURNAL_STDOUT, 1 << 30};
	close(fd);
	fd = openat(dir, run, O_WRONLY | O_CLOEXEC);
	must(pwrite(fd, wrong, sizeof(wrong), 8192) == sizeof(wrong), "a length beyond the end");
	is_str(all_of(j), "its journal is damaged", "is seen");
	journal_close(j);
	close(fd);
}

static void refused(void)
{
	struct err e;
	journal_remove(dir, run);
	ok(!journal_open(dir, run, &e) && e.code == -ENOENT, "none");
	struct journal *j = journal_new(dir, run, &e);
	must(j != NULL, "a journal");
	ok(journal_open(dir, "run_01jd0000000000000000000001", &e) == NULL, "none of that run");
	journal_state(j)->size++;
	ok(!journal_open(dir, run, &e) && strstr(e.text, "version"), "another layout: %s", e.text);
	journal_state(j)->size--;
	journal_state(j)->end += 4096;
	ok(!journal_open(dir, run, &e), "more than there is");
	journal_state(j)->end -= 4096;
	/* A full disk: the run goes on, and its journal is of no use from there on. */
	struct rlimit old, small = {.rlim_cur = 4096 + 100, .rlim_max = RLIM_INFINITY};
	signal(SIGXFSZ, SIG_IGN);
	must(getrlimit(RLIMIT_FSIZE, &old) == 0 && setrlimit(RLIMIT_FSIZE, &small) == 0, "limit");
	static const char much[200];
	ok(journal_put(j, JOURNAL_STDOUT, much, sizeof(much), &e) < 0, "said once: %s", e.text);
	must(setrlimit(RLIMIT_FSIZE, &old) == 0, "no limit");
	ok(journal_put(j, JOURNAL_STDOUT, "x", 1, &e) == 0, "then no more");
	ok(!journal_open(dir, run, &e) && strstr(e.text, "not complete"), "and why: %s", e.text);
	journal_close(j);
}

static bool wanted(void *ctx, const char *name)
{
	return strcmp(name, ctx) == 0;
}

static void swept(void)
{
	struct err e;
	static char keep[] = "run_01jd0000000000000000000002";
	journal_close(journal_new(dir, run, &e));
	journal_close(journal_new(dir, keep, &e));
	int other = openat(dir, "other", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	journal_sweep(dir, wanted, keep);
	ok(faccessat(dir, run, F_OK, 0) < 0, "what nobody wants goes");
	ok(faccessat(dir, keep, F_OK, 0) == 0, "what is wanted stays");
	ok(faccessat(dir, "other", F_OK, 0) == 0, "and what is no journal");
	close(other);
	journal_remove(dir, keep);
	(void)unlinkat(dir, "other", 0);
}

int main(void)
{
	char path[] = "/tmp/agentbox-journal.XXXXXX";
	must(mkdtemp(path) != NULL, "a directory");
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int before = fd_count();
	killed();
	torn();
	deaths();
	waits();
	raw();
	cut();
	pruned();
	refused();
	swept();
	ok(fd_count() == before, "no descriptor is left");
	journal_remove(dir, run);
	(void)rmdir(path);
	return done();
}
