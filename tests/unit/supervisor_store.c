/* What survives: restart, groups, failures apart, damage told and left. */
#include "supervisor/store.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/stats.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir[] = "/tmp/agentbox-store-XXXXXX";
static char db[64];
static struct stats stats;
static struct err e;
static int calls, last_rc, order[8], norder;

static void done_(void *ctx, int rc, const struct err *x)
{
	calls++;
	last_rc = rc;
	if (ctx && norder < 8)
		order[norder++] = *(int *)ctx;
	if (rc < 0 && x)
		printf("# %s\n", x->text);
}

static const struct store_session session = {
        .id = "ses_a", .user = "u", .goal = "g", .created_ms = 10, .reserved = 100};

static struct store_run run_row(const char *id)
{
	return (struct store_run){.id = id,
	        .session = "ses_a",
	        .harness = "hello",
	        .prompt = "hi",
	        .prompt_len = 2,
	        .created_ms = 11,
	        .from_seq = 1,
	        .priority = 3};
}

static struct store *open_store(void)
{
	struct store *st = store_open(db, &stats, &e);
	must(st != NULL, "open %s", st ? "" : e.text);
	return st;
}

static struct store_run seen;
static char seen_status[16], seen_prompt[16];
static int nseen;
static void see_run(void *ctx, const struct store_run *r)
{
	(void)ctx;
	seen = *r;
	(void)str_copy(seen_status, sizeof(seen_status), r->status);
	(void)str_copy(seen_prompt, sizeof(seen_prompt), r->prompt);
	seen.id = seen.session = seen.result = NULL; /* borrowed for the call only */
	nseen++;
}

static struct store_session seen_session;
static void see_session(void *ctx, const struct store_session *s)
{
	(void)ctx;
	seen_session = *s;
}

static int nartifacts;
static void see_artifact(void *ctx, size_t n, const struct artifact *a)
{
	(void)ctx;
	nartifacts += n == 0 && strcmp(a->path, "out/a") == 0 && a->bytes == 5;
}

static void write_all(struct store *st)
{
	struct store_run a = run_row("run_a"), b = run_row("run_b");
	static int one = 1, two = 2, three = 3;
	store_add_run(st, &session, &a, "key", "hash", done_, &one);
	store_add_run(st, &session, &b, NULL, NULL, done_, &two);
	store_add_run(st, &session, &a, NULL, NULL, done_, &three); /* the id is taken */
	ok(calls == 0, "nothing is called from within");
	store_drain(st);
	ok(calls == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3, "called in order");
	ok(last_rc == -EEXIST, "one failed");
	ok(store_run(st, "run_b", see_run, NULL, &e) == 0, "the others did not");
	is_str(seen_status, "queued", "queued");
	is_str(seen_prompt, "hi", "with its prompt");
	ok(store_run(st, "run_c", see_run, NULL, &e) == -ENOENT, "an unknown run: %s", e.text);
	store_start_run(st, "run_a", 12);
	char path[] = "out/a";
	struct artifact kept = {.path = path, .bytes = 5, .sha256 = "00"};
	struct store_finish f = {.run = "run_a",
	        .session = "ses_a",
	        .status = "succeeded",
	        .result = "{}",
	        .ended_ms = 20,
	        .backend = "claude",
	        .resume = "r1",
	        .artifacts = &kept,
	        .nartifacts = 1,
	        .settled = 7};
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	store_finish_run(st, &f, fd, done_, NULL);
	store_drain(st);
	ok(last_rc == -EINVAL, "what cannot be synced is not committed");
	ok(store_run(st, "run_a", see_run, NULL, &e) == 0, "run_a");
	is_str(seen_status, "running", "it still runs");
	store_finish_run(st, &f, -1, done_, NULL);
	store_drain(st);
	ok(last_rc == 0, "finished");
	ok(stats.store_errors == 2 && stats.store_commits > 0, "counted");
}

static void read_all(struct store *st)
{
	char id[ID_MAX], hash[65];
	ok(store_run(st, "run_a", see_run, NULL, &e) == 0 && seen.ended_ms == 20 &&
	                seen.priority == 3,
	        "the run is there");
	is_str(seen_status, "succeeded", "with its end");
	ok(store_session(st, "ses_a", see_session, NULL, &e) == 0 && seen_session.reserved == 7 &&
	                seen_session.runs == 2 && !seen_session.gap,
	        "the session, settled");
	ok(store_session_id(st, "u", "g", id, &e) == 0 && strcmp(id, "ses_a") == 0, "by its pair");
	ok(store_session_id(st, "u", "h", id, &e) == -ENOENT, "another pair is another session");
	ok(store_idempotent(st, "u", "key", id, hash) == 0 && strcmp(id, "run_a") == 0 &&
	                strcmp(hash, "hash") == 0,
	        "the key");
	ok(store_idempotent(st, "v", "key", id, hash) == -ENOENT, "is the user's own");
	auto_free char *resume = store_resume(st, "ses_a", "claude");
	is_str(resume, "r1", "the resume id");
	ok(!store_resume(st, "ses_a", "codex"), "per backend");
	ok(store_artifacts(st, "run_a", see_artifact, NULL, &e) == 0 && nartifacts == 1,
	        "the artifact");
	nseen = 0;
	ok(store_unfinished(st, see_run, NULL, &e) == 0 && nseen == 1, "one run is unfinished");
	struct store_run_filter f = {.limit = 10};
	nseen = 0;
	ok(store_runs(st, &f, see_run, NULL, &e) == 0 && nseen == 2, "all runs");
	f.status = "queued";
	nseen = 0;
	ok(store_runs(st, &f, see_run, NULL, &e) == 0 && nseen == 1, "by status");
	f = (struct store_run_filter){.cursor = "run_b", .limit = 10};
	nseen = 0;
	ok(store_runs(st, &f, see_run, NULL, &e) == 0 && nseen == 1, "behind a cursor");
	f = (struct store_run_filter){.user = "nobody", .limit = 10};
	nseen = 0;
	ok(store_runs(st, &f, see_run, NULL, &e) == 0 && nseen == 0, "of nobody");
}

static bool spent_is(struct store *st, const char *id, int64_t day, uint64_t tokens, uint64_t bytes)
{
	struct spending s = {0};
	return store_spent(st, BUDGET_USER, id, day, &s, &e) == 0 && s.sum.tokens == tokens &&
	       s.sum.bytes == bytes && s.unpriced == tokens / 2;
}

static void spend(struct store *st, int64_t day, uint64_t tokens, uint64_t bytes)
{
	const struct store_spent x = {.scope = BUDGET_USER,
	        .id = "ann",
	        .day = day,
	        .spent = {.sum = {.tokens = tokens, .bytes = bytes}, .unpriced = tokens / 2}};
	store_spend(st, &x, 1);
	store_drain(st);
}

static void spending(struct store *st)
{
	ok(spent_is(st, "ann", 7, 0, 0), "nothing is spent where nothing is known");
	spend(st, 7, 100, 5);
	ok(spent_is(st, "ann", 7, 100, 5), "a sum");
	spend(st, 7, 60, 9);
	ok(spent_is(st, "ann", 7, 100, 9), "told less: each stays at its most");
	spend(st, 8, 4, 4);
	ok(spent_is(st, "ann", 7, 100, 9) && spent_is(st, "ann", 8, 4, 4), "by the day");
	spend(st, 9, UINT64_MAX, 0);
	struct spending s;
	ok(store_spent(st, BUDGET_USER, "ann", 9, &s, &e) == 0 && s.sum.tokens == INT64_MAX,
	        "more than a number of the database is the greatest of it");
	store_forget_spent(st, 8);
	store_drain(st);
	ok(spent_is(st, "ann", 7, 0, 0) && spent_is(st, "ann", 8, 4, 4), "old days are forgotten");
}

static void damage(void)
{
	struct stat before, after;
	must(stat(db, &before) == 0, "stat");
	int fd = open(db, O_WRONLY | O_CLOEXEC);
	char junk[4096];
	memset(junk, 'J', sizeof(junk));
	must(fd >= 0 && pwrite(fd, junk, sizeof(junk), 0) == sizeof(junk), "damage");
	close(fd);
	struct store *st = store_open(db, &stats, &e);
	ok(!st && e.code == -EUCLEAN && strstr(e.text, "damaged"), "damage is told: %s", e.text);
	ok(stat(db, &after) == 0 && after.st_size == before.st_size, "and left as it is");
	store_close(st);
	ok(!store_open("/nonexistent/db", &stats, &e), "no such place: %s", e.text);
}

int main(void)
{
	must(mkdtemp(dir) != NULL, "directory");
	log_init("test", LOG_LEVEL_ERR);
	snprintf(db, sizeof(db), "%s/db", dir);
	struct store *st = open_store();
	write_all(st);
	read_all(st);
	spending(st);
	store_close(st);
	st = open_store();
	nartifacts = 0;
	read_all(st);
	store_delete_session(st, "ses_a", done_, NULL);
	store_drain(st);
	ok(store_session(st, "ses_a", see_session, NULL, &e) == -ENOENT &&
	                store_run(st, "run_a", see_run, NULL, &e) == -ENOENT &&
	                store_session_count(st) == 0,
	        "deleted with everything");
	store_close(st);
	int fds = fd_count();
	store_close(open_store());
	ok(fd_count() == fds, "no descriptor is left");
	damage();
	auto_free char *cmd = NULL;
	if (asprintf(&cmd, "rm -rf %s", dir) > 0)
		(void)!system(cmd);
	return done();
}
