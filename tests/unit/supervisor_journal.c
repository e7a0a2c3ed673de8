/* What is kept for the next supervisor: records in order, a state that a SIGKILL leaves, and
 * nothing that is torn, foreign or incomplete taken for good. */
#include "supervisor/journal.h"

#include "base/fd.h"
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
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
	must(pwrite(fd, wrong, sizeof(wrong), 4096) == sizeof(wrong), "a length beyond the end");
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
	refused();
	swept();
	ok(fd_count() == before, "no descriptor is left");
	journal_remove(dir, run);
	(void)rmdir(path);
	return done();
}
