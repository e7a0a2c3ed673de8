/* What survives: restart, groups, failures apart, damage told and left. */
#include "supervisor/store.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/db.h"
#include "supervisor/stats.h"
#include "supervisor/store_sql.h"
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void checkouts(struct store *st)
{
	auto_free char *asked = store_checkout(st, "run_b", &e);
	is_str(asked, "{\"url\":\"x\"}", "what a run asks to be checked out");
	ok(!store_checkout(st, "run_a", &e), "not any more when it has ended");
	struct store_repo x = {0};
	ok(store_repo(st, "ses_a", &x, &e) == -ENOENT, "a session without a checkout");
	char source[] = "x", base[] = "1", other[] = "2", ref[] = "main";
	const struct store_repo one = {source, base, ref}, two = {source, other, ref};
	store_set_repo(st, "ses_a", &one, NULL, NULL);
	store_set_repo(st, "ses_a", &two, NULL, NULL);
	store_drain(st);
	ok(store_repo(st, "ses_a", &x, &e) == 0 && strcmp(x.source, "x") == 0 &&
	                strcmp(x.base, "2") == 0 && strcmp(x.ref, "main") == 0,
	        "one with it");
	store_repo_done(&x);
}

static void see_talk(void *ctx, const struct store_talk *x)
{
	buf_printf(ctx, "%s %s %s;", x->backend, x->id, x->run);
}

static void write_all(struct store *st)
{
	struct store_run a = run_row("run_a"), b = run_row("run_b");
	a.repo = b.repo = "{\"url\":\"x\"}";
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
	        .asked_repo = true,
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
	checkouts(st);
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
	char upto[ID_MAX] = "";
	auto_free char *resume = store_resume(st, "ses_a", "claude", upto);
	is_str(resume, "r1", "the resume id");
	is_str(upto, "run_a", "and the run up to which it goes");
	ok(!store_resume(st, "ses_a", "codex", upto), "per backend");
	auto_buf struct buf talks = BUF_INIT(1024);
	ok(store_talks(st, "ses_a", see_talk, &talks, &e) == 0, "all of a session");
	is_str(talks.p, "claude r1 run_a;", "are those");
	const struct store_talk brought[] = {{"pi", "r3", ""}, {"claude", "r2", ""}};
	store_take_talks(st, "ses_b", brought, ARRAY_LEN(brought), NULL, NULL);
	store_drain(st);
	buf_clear(&talks);
	ok(store_talks(st, "ses_b", see_talk, &talks, &e) == 0, "those that were brought");
	is_str(talks.p, "claude r2 ;pi r3 ;", "in their places");
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

static void see_delivery(void *ctx, const struct store_delivery *x)
{
	char *out = ctx;
	size_t n = strlen(out);
	snprintf(out + n, 256 - n, "%s/%s@%llu%s ", x->webhook, x->run, (unsigned long long)x->seq,
	        x->over ? "!" : "");
	if (strcmp(x->user, "u") != 0 || strcmp(x->goal, "g") != 0 ||
	        strcmp(x->harness, "hello") != 0)
		strcat(out, "(of whom?)");
}

static const char *owed(struct store *st)
{
	static char out[320];
	out[0] = '\0';
	store_drain(st);
	return store_deliveries(st, see_delivery, out, &e) < 0 ? e.text : out;
}

/* What webhooks are to be told comes and goes with the run. */
static void deliveries(void)
{
	const struct store_webhooks hooks = {.n = 2, .names = {"a", "b"}};
	struct store *st = open_store();
	struct store_run c = run_row("run_c"), again = run_row("run_c");
	c.webhooks = again.webhooks = &hooks;
	again.from_seq = 50;
	c.from_seq = 5;
	store_add_run(st, &session, &c, NULL, NULL, done_, NULL);
	store_add_run(st, &session, &again, NULL, NULL, done_, NULL);
	is_str(owed(st), "a/run_c@5 b/run_c@5 ", "a run and who is to be told of it");
	store_delivered(st, "b", "run_c", 9);
	is_str(owed(st), "a/run_c@5 b/run_c@9 ", "one is further than the other");
	struct store_finish f = {.run = "run_c",
	        .session = "ses_a",
	        .status = "failed",
	        .result = "{}",
	        .ended_ms = 20,
	        .backend = "exec"};
	store_finish_run(st, &f, -1, done_, NULL);
	(void)owed(st);
	store_close(st);
	st = open_store();
	is_str(owed(st), "a/run_c@5! b/run_c@9! ", "that the run has ended changes nothing");
	store_delivered_all(st, "a", "run_c");
	is_str(owed(st), "b/run_c@9! ", "all is told");
	store_delete_session(st, "ses_a", done_, NULL);
	is_str(owed(st), "", "the session takes them along");
	store_close(st);
}

/* ---- kept artifacts ---- */

static ino_t synced[128];
static int nsynced, sync_fails;
static pthread_mutex_t sync_lock = PTHREAD_MUTEX_INITIALIZER;

static int note_sync(int fd, long call)
{
	struct stat st;
	pthread_mutex_lock(&sync_lock);
	bool fails = sync_fails && --sync_fails == 0;
	if (fstat(fd, &st) == 0 && nsynced < (int)ARRAY_LEN(synced))
		synced[nsynced++] = st.st_ino;
	pthread_mutex_unlock(&sync_lock);
	errno = EIO;
	return fails ? -1 : (int)syscall(call, fd);
}

/* In place of the library's: a disk whose syncing is seen, and can fail. */
int fdatasync(int fd)
{
	return note_sync(fd, SYS_fdatasync);
}
int fsync(int fd)
{
	return note_sync(fd, SYS_fsync);
}

static bool was_synced(int dir_fd, const char *name)
{
	struct stat st;
	bool found = false;
	bool there = fstatat(dir_fd, name, &st, 0) == 0;
	for (int i = 0; there && i < nsynced && !found; i++)
		found = synced[i] == st.st_ino;
	return found;
}

static void kept_artifacts(void)
{
	enum { FILES = 70 };
	char run[ID_MAX], name[ID_MAX + 32];
	int root = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC), missed = 0;
	id_new("run", run);
	must(root >= 0 && mkdirat(root, run, 0700) == 0, "a run's directory");
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/%d", run, i);
		fd_close(openat(root, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	struct store *st = open_store();
	int fds = fd_count();
	calls = nsynced = 0;
	store_sync_artifacts(st, root, run, FILES, done_, NULL);
	store_drain(st);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/%d", run, i);
		missed += !was_synced(root, name);
	}
	ok(calls == 1 && last_rc == 0 && missed == 0, "each kept file is synced");
	ok(was_synced(root, run) && was_synced(root, "."), "and that it is there");
	sync_fails = 40;
	store_sync_artifacts(st, root, run, FILES, done_, NULL);
	store_drain(st);
	ok(calls == 2 && last_rc == -EIO, "what the disk does not take is told");
	store_sync_artifacts(st, root, run, FILES + 1, done_, NULL);
	store_drain(st);
	ok(calls == 3 && last_rc == -ENOENT, "so is what is not there");
	ok(fd_count() == fds, "no descriptor is left");
	store_close(st);
	ok(artifacts_remove(root, run, &e) == 0, "gone");
	fd_close(root);

	struct artifacts_result r = {.files = xnew(struct artifact), .nfiles = 1};
	r.files[0].path = xstrdup("out/a");
	artifacts_lose(&r, "why");
	ok(r.nfiles == 0 && r.nskipped == 1 && strcmp(r.skipped[0].path, "out/a") == 0 &&
	                strcmp(r.skipped[0].reason, "why") == 0,
	        "what is lost is named");
	artifacts_result_done(&r);
}

/* ---- artifacts in a bucket ---- */

static struct {
	int n, pending, deleting;
	size_t last;
	bool told, gone_here;
	char error[32], place[32];
} objects_seen;

static void see_object(void *ctx, const struct store_object *x)
{
	(void)ctx;
	objects_seen.n++;
	objects_seen.pending += x->state == OBJECT_PENDING;
	objects_seen.deleting += x->state == OBJECT_DELETING;
	objects_seen.last = x->n;
	objects_seen.told = x->told;
	objects_seen.gone_here = x->gone_here;
	if (x->error)
		(void)str_copy(objects_seen.error, sizeof(objects_seen.error), x->error);
	if (x->place)
		(void)str_copy(objects_seen.place, sizeof(objects_seen.place), x->place);
}

static int due(struct store *st, enum object_state state, int64_t now)
{
	memset(&objects_seen, 0, sizeof(objects_seen));
	return store_objects_due(st, state, now, 10, see_object, NULL, &e) == 0 ? objects_seen.n
	                                                                        : -1;
}

static int untold(struct store *st)
{
	memset(&objects_seen, 0, sizeof(objects_seen));
	return store_objects_untold(st, see_object, NULL, &e) == 0 ? objects_seen.n : -1;
}

static void in_a_bucket(void)
{
	struct store *st = open_store();
	char one[] = "out/a", two[] = "out/b";
	struct artifact kept[] = {{.path = one, .bytes = 5}, {.path = two, .bytes = 6}};
	struct store_run run = run_row("run_o");
	struct store_finish f = {.run = "run_o",
	        .session = "ses_a",
	        .status = "succeeded",
	        .result = "{}",
	        .ended_ms = 20,
	        .backend = "claude",
	        .artifacts = kept,
	        .nartifacts = 2,
	        .place = "here"};
	store_add_run(st, &session, &run, NULL, NULL, done_, NULL);
	store_finish_run(st, &f, -1, done_, NULL);
	store_drain(st);
	ok(due(st, OBJECT_PENDING, 19) == 0 && due(st, OBJECT_PENDING, 20) == 2, "both are due");
	is_str(objects_seen.place, "here", "to be put there");
	ok(store_objects_pending(st) == 2, "and counted");
	ok(untold(st) == 0, "nothing is at an end");
	struct store_object x = {
	        .run = "run_o", .state = OBJECT_PENDING, .due_ms = 50, .failures = 1};
	x.error = "later";
	store_object_set(st, &x, OBJECT_PENDING, done_, NULL);
	x = (struct store_object){.run = "run_o", .n = 1, .state = OBJECT_DONE, .gone_here = true};
	x.place = "there";
	store_object_set(st, &x, OBJECT_PENDING, done_, NULL);
	x.state = OBJECT_FAILED;
	store_object_set(st, &x, OBJECT_PENDING, done_, NULL);
	store_drain(st);
	ok(due(st, OBJECT_PENDING, 49) == 0 && store_objects_next(st, OBJECT_PENDING, 0) == 50,
	        "one waits");
	ok(due(st, OBJECT_PENDING, 50) == 1 && objects_seen.last == 0, "which is due then");
	is_str(objects_seen.error, "later", "and says why");
	memset(&objects_seen, 0, sizeof(objects_seen));
	ok(store_objects(st, "run_o", see_object, NULL, &e) == 0 && objects_seen.n == 2 &&
	                objects_seen.last == 1 && objects_seen.gone_here,
	        "what is done does not become another thing");
	is_str(objects_seen.place, "there", "where it was put");
	x = (struct store_object){.run = "run_o", .state = OBJECT_FAILED, .error = "no"};
	store_object_set(st, &x, OBJECT_PENDING, done_, NULL);
	store_drain(st);
	ok(untold(st) == 1, "the run is at its end");
	store_objects_told(st, "run_o", -1, done_, NULL);
	store_drain(st);
	ok(untold(st) == 0, "and told");
	store_gone(st, "run_o", STORE_GONE_ARTIFACTS, done_, NULL);
	store_drain(st);
	ok(due(st, OBJECT_DELETING, INT64_MAX) == 2, "what retention takes is to be deleted");
	store_drop_run(st, "run_o", done_, NULL);
	store_delete_session(st, "ses_a", done_, NULL);
	store_object_drop(st, "run_o", 0, done_, NULL);
	store_drain(st);
	ok(due(st, OBJECT_DELETING, INT64_MAX) == 1 && objects_seen.last == 1,
	        "also when run and session are gone");
	store_close(st);
}

/* ---- other versions ---- */

static char old_db[80];

static void version_of(struct db *d, char ret[32])
{
	must(db_scalar(d, "PRAGMA user_version", ret, 32, &e) == 0, "its version");
}

/* As an agentbox of that version has left it, with what the first one could know. */
static void make_old(size_t version)
{
	static const char rows[] =
	        "INSERT INTO sessions(id, user, goal, created_ms, used_ms)"
	        " VALUES('ses_o', 'u', 'g', 10, 20);"
	        "INSERT INTO runs(id, session, harness, status, prompt, params, result, priority,"
	        " created_ms, started_ms, ended_ms, from_seq) VALUES('run_o', 'ses_o', 'hello',"
	        " 'succeeded', 'hi', '{}', '{\"status\":\"succeeded\"}', 3, 11, 12, 13, 1);"
	        "INSERT INTO runs(id, session, harness, status, prompt, priority, created_ms,"
	        " from_seq) VALUES('run_p', 'ses_o', 'hello', 'queued', 'later', 0, 14, 5);"
	        "INSERT INTO artifacts(run, n, path, bytes, sha256)"
	        " VALUES('run_o', 0, 'out/a', 5, 'x');"
	        "INSERT INTO idempotency(user, key, run, hash) VALUES('u', 'k', 'run_o', 'h');"
	        "INSERT INTO resumes(session, backend, resume)"
	        " VALUES('ses_o', 'claude', 'conversation');";
	static unsigned made;
	snprintf(old_db, sizeof(old_db), "%s/old-%u", dir, made++);
	struct db *d = db_open(old_db, true, &e);
	must(d && db_migrate(d, store_migrations, version, &e) == 0, "version %zu", version);
	must(db_exec(d, rows, "rows", &e) == 0, "its rows: %s", e.text);
	db_close(d);
}

static void old_one(size_t version)
{
	char version_now[32], run[ID_MAX], hash[65];
	make_old(version);
	struct store *st = store_open(old_db, &stats, &e);
	must(st != NULL, "version %zu is taken: %s", version, st ? "" : e.text);
	nseen = nartifacts = 0;
	ok(store_run(st, "run_o", see_run, NULL, &e) == 0 && nseen == 1 && seen.priority == 3 &&
	                seen.created_ms == 11 && seen.started_ms == 12 && seen.ended_ms == 13 &&
	                strcmp(seen_status, "succeeded") == 0 && strcmp(seen_prompt, "hi") == 0,
	        "version %zu: a run is as it was", version);
	ok(!seen.pipeline && !seen.parent && !seen.trace && seen.step == 0,
	        "version %zu: what it did not know is nothing", version);
	ok(store_unfinished(st, see_run, NULL, &e) == 0 && nseen == 2 &&
	                strcmp(seen_status, "queued") == 0,
	        "version %zu: one that waited waits", version);
	ok(store_session(st, "ses_o", see_session, NULL, &e) == 0 && seen_session.runs == 2 &&
	                seen_session.used_ms == 20 && !seen_session.pinned,
	        "version %zu: its session", version);
	ok(store_artifacts(st, "run_o", see_artifact, NULL, &e) == 0 && nartifacts == 1,
	        "version %zu: its artifact", version);
	ok(store_idempotent(st, "u", "k", run, hash) == 0 && strcmp(run, "run_o") == 0,
	        "version %zu: its key", version);
	auto_free char *resume = store_resume(st, "ses_o", "claude", run);
	/* Up to which run that goes is known since the third: of older ones it is all there were.
	 */
	ok(resume && strcmp(resume, "conversation") == 0 &&
	                strcmp(run, version < 3 ? "run_p" : "") == 0,
	        "version %zu: its conversation", version);
	struct store_run more = run_row("run_q");
	struct store_session s = {
	        .id = "ses_o", .user = "u", .goal = "g", .created_ms = 10, .reserved = 9};
	more.session = "ses_o";
	more.trace = "00-a";
	calls = 0;
	store_add_run(st, &s, &more, NULL, NULL, done_, NULL);
	store_drain(st);
	ok(calls == 1 && last_rc == 0, "version %zu: and it is written on", version);
	store_close(st);
	struct db *d = db_open(old_db, false, &e);
	must(d != NULL, "open");
	version_of(d, version_now);
	ok(strtoul(version_now, NULL, 10) == STORE_VERSIONS, "version %zu is now %s", version,
	        version_now);
	db_close(d);
}

/* What is not taken stays as it is. */
static void refused(const char *sql, size_t version, const char *word)
{
	char before[32], after[32];
	make_old(version);
	struct db *d = db_open(old_db, true, &e);
	must(d && db_exec(d, sql, "spoil", &e) == 0, "spoilt: %s", e.text);
	version_of(d, before);
	db_close(d);
	struct store *st = store_open(old_db, &stats, &e);
	ok(!st && strstr(e.text, word), "refused: %s", st ? "" : e.text);
	store_close(st);
	d = db_open(old_db, false, &e);
	must(d != NULL, "open");
	version_of(d, after);
	is_str(after, before, "its version");
	db_close(d);
}

static void versions(void)
{
	char newer[64];
	for (size_t i = 1; i <= STORE_VERSIONS; i++)
		old_one(i);
	snprintf(newer, sizeof(newer), "PRAGMA user_version = %d", STORE_VERSIONS + 1);
	refused(newer, STORE_VERSIONS, "newer agentbox");
	/* A migration that fails is not half done. */
	refused("CREATE TABLE keys(other TEXT)", 4, "create the tables");
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
	deliveries();
	versions();
	kept_artifacts();
	in_a_bucket();
	damage();
	auto_free char *cmd = NULL;
	if (asprintf(&cmd, "rm -rf %s", dir) > 0)
		(void)!system(cmd);
	return done();
}
