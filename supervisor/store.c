/*
 * Theory of operation.  The loop thread builds a job - a list of statements
 * with copied parameters - and puts it on `queue`.  The writer takes the whole
 * queue, fdatasyncs the descriptors in it all at once, runs each job in a savepoint and
 * commits once.  Finished jobs go to `finished`, the eventfd wakes the loop, and
 * their done() is called there.  Only the writer touches `db` after the start, only
 * the loop thread touches `reader`.
 */
#include "supervisor/store.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/stats.h"
#include "supervisor/store_private.h"
#include "supervisor/syncs.h"

#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	LARGE_BYTES = 256 << 10,
	LATER_MS = 20,   /* without anything to write, until what nobody waits for is synced */
	LATER_MOST = 64, /* of those: descriptors that are held */
};

/* ---- the queue ---- */

void store_submit(struct store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	list_append(&st->queue, &j->link);
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
}

/* ---- the writer thread ---- */

static bool is_large(const struct step *s)
{
	for (size_t i = 0; i < s->nparams; i++)
		if (s->params[i].type != 'i' && s->params[i].n >= LARGE_BYTES)
			return true;
	return false;
}

static int run_write(struct store *st, enum write w, const struct step *step, struct err *e)
{
	if (step && is_large(step))
		st->large = true;
	return db_run(st->db, w, step ? step->params : NULL, step ? step->nparams : 0, e);
}

static void run_job(struct store *st, struct job *j)
{
	if (list_empty(&j->steps))
		return;
	j->rc = run_write(st, W_SAVEPOINT, NULL, &j->err);
	list_for_each (s, &j->steps, struct step, link)
		if (j->rc == 0)
			j->rc = run_write(st, s->stmt, s, &j->err);
	if (j->rc < 0)
		(void)run_write(st, W_UNDO, NULL, NULL); /* the first error counts */
	struct err e;
	if (run_write(st, W_RELEASE, NULL, &e) < 0 && j->rc == 0) {
		j->rc = e.code;
		j->err = e;
	}
}

/* All of them at once.  What is to be committed with one that fails is not. */
static void sync_group(struct store *st, struct list *jobs)
{
	size_t n = 0;
	list_for_each (j, jobs, struct job, link)
		n += j->sync_fd >= 0;
	auto_free struct sync_item *items = xcalloc(n + 1, sizeof(*items));
	n = 0;
	list_for_each (j, jobs, struct job, link)
		if (j->sync_fd >= 0)
			items[n++].fd = j->sync_fd;
	if (n)
		syncs_run(st->syncs, items, n);
	n = 0;
	list_for_each (j, jobs, struct job, link)
		if (j->sync_fd >= 0 && (j->rc = items[n++].rc) < 0)
			err_set(&j->err, j->rc, "sync of the event log: %s", strerror(-j->rc));
	list_for_each (j, jobs, struct job, link)
		if (j->kept.n)
			j->rc = artifacts_sync(
			        j->kept.root_fd, j->kept.run, j->kept.n, st->syncs, &j->err);
}

static bool wants_transaction(const struct list *jobs)
{
	list_for_each (j, jobs, struct job, link)
		if (!list_empty(&j->steps))
			return true;
	return false;
}

/* A failed commit fails the jobs that had something in it; a sync stands by itself. */
static void fail_group(struct list *jobs, int rc, const struct err *e)
{
	list_for_each (j, jobs, struct job, link)
		if (j->rc == 0 && !list_empty(&j->steps)) {
			j->rc = rc;
			j->err = *e;
		}
}

static void run_group(struct store *st, struct list *jobs)
{
	struct err e;
	sync_group(st, jobs);
	bool transaction = wants_transaction(jobs);
	int rc = transaction ? run_write(st, W_BEGIN, NULL, &e) : 0;
	if (rc < 0)
		fail_group(jobs, rc, &e);
	list_for_each (j, jobs, struct job, link)
		if (j->rc == 0 && !j->copy_to)
			run_job(st, j);
	if (rc == 0 && transaction)
		rc = run_write(st, W_COMMIT, NULL, &e);
	list_for_each (j, jobs, struct job, link)
		if (j->copy_to)
			store_copy_begin(st, j);
	if (rc == 0)
		return;
	if (db_in_transaction(st->db))
		(void)run_write(st, W_ROLLBACK, NULL, NULL); /* the commit's error counts */
	fail_group(jobs, rc, &e);
}

/* A row of megabytes is as many pages of SQLite's, and what is kept lies behind them. */
static void give_memory_back(struct store *st)
{
	st->large = false;
	pthread_mutex_unlock(&st->lock);
	(void)malloc_trim(0);
	pthread_mutex_lock(&st->lock);
}

/* What is to be written now, and apart from it what nobody waits for. */
static void take_queue(struct store *st, struct list *group)
{
	list_init(group);
	list_for_each (j, &st->queue, struct job, link) {
		list_remove(&j->link);
		list_append(j->later ? &st->later : group, &j->link);
		st->nlater += j->later;
	}
}

static void publish(struct store *st, struct list *group)
{
	uint64_t one = 1;
	list_for_each (d, group, struct job, link) {
		st->errors += d->rc < 0;
		list_remove(&d->link);
		list_append(&st->finished, &d->link);
	}
	if (!list_empty(&st->finished))                       /* else a copy that goes on */
		(void)!write(st->wake_fd, &one, sizeof(one)); /* cannot fail but by overflow */
}

static void write_group(struct store *st, struct list *group)
{
	bool commits = !list_empty(group);
	int64_t begun = clock_mono_us();
	pthread_mutex_unlock(&st->lock);
	run_group(st, group);
	int64_t took = clock_mono_us() - begun;
	struct job *copied = st->copying ? store_copy_go_on(st) : NULL;
	if (copied)
		list_append(group, &copied->link);
	pthread_mutex_lock(&st->lock);
	st->commits += commits;
	if (commits)
		stats_observe(&st->took, took);
	publish(st, group);
}

/* Something else may come that somebody waits for. */
static void sync_later(struct store *st)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LATER_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	if (st->nlater < LATER_MOST && !st->closing && list_empty(&st->queue))
		(void)pthread_cond_timedwait(&st->work, &st->lock, &until);
	if (st->nlater < LATER_MOST && !list_empty(&st->queue))
		return;
	struct list group;
	list_init(&group);
	list_for_each (j, &st->later, struct job, link) {
		list_remove(&j->link);
		list_append(&group, &j->link);
	}
	st->nlater = 0;
	write_group(st, &group);
}

static void *writer(void *arg)
{
	struct store *st = arg;
	pthread_mutex_lock(&st->lock);
	for (;;) {
		if (list_empty(&st->queue) && st->large)
			give_memory_back(st);
		while (list_empty(&st->queue) && !st->nlater && !st->closing && !st->copying)
			pthread_cond_wait(&st->work, &st->lock);
		if (list_empty(&st->queue) && !st->nlater && (!st->copying || st->closing))
			break;
		struct list group;
		st->busy = true;
		take_queue(st, &group);
		if (!list_empty(&group) || st->copying)
			write_group(st, &group);
		if (st->nlater && (!st->copying || st->nlater >= LATER_MOST))
			sync_later(st);
		st->busy = false;
		pthread_cond_broadcast(&st->idle);
	}
	pthread_mutex_unlock(&st->lock);
	return NULL;
}

/* ---- completions, on the loop thread ---- */

static void finish_jobs(struct store *st)
{
	struct list mine;
	list_init(&mine);
	pthread_mutex_lock(&st->lock);
	list_for_each (j, &st->finished, struct job, link) {
		list_remove(&j->link);
		list_append(&mine, &j->link);
	}
	st->stats->store_commits = st->commits;
	st->stats->store_errors = st->errors;
	st->stats->commit = st->took;
	pthread_mutex_unlock(&st->lock);
	while (!list_empty(&mine)) {
		struct job *j = list_entry(mine.next, struct job, link);
		list_remove(&j->link);
		if (j->done)
			j->done(j->ctx, j->rc, j->rc < 0 ? &j->err : NULL);
		else if (j->rc < 0)
			log_err("%s", j->err.text);
		store_job_free(j);
	}
}

static void woken(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct store *st = container_of(op, struct store, wake);
	if (res < 0)
		return;
	uint64_t n = 0;
	(void)!read(st->wake_fd, &n, sizeof(n)); /* EAGAIN: another turn was first */
	loop_poll(st->loop, &st->wake, st->wake_fd, POLLIN, false, woken);
	finish_jobs(st);
}

void store_attach(struct store *st, struct loop *l)
{
	st->loop = l;
	loop_poll(l, &st->wake, st->wake_fd, POLLIN, false, woken);
}

void store_drain(struct store *st)
{
	for (;;) {
		pthread_mutex_lock(&st->lock);
		while (st->busy || !list_empty(&st->queue) || st->nlater)
			pthread_cond_wait(&st->idle, &st->lock);
		bool more = !list_empty(&st->finished);
		pthread_mutex_unlock(&st->lock);
		if (!more)
			return;
		finish_jobs(st); /* may queue more */
	}
}

/* ---- life ---- */

/* A new boot after an unclean end means a power cut: what the page cache held is gone. */
static int mark_start(struct store *st, struct err *e)
{
	char clean[8] = "", boot[64] = "";
	auto_free char *now = NULL;
	size_t n;
	int rc = db_scalar(
	        st->db, "SELECT value FROM meta WHERE key='clean'", clean, sizeof(clean), e);
	if (rc == 0)
		rc = db_scalar(
		        st->db, "SELECT value FROM meta WHERE key='boot'", boot, sizeof(boot), e);
	if (rc < 0)
		return rc;
	if (file_slurp("/proc/sys/kernel/random/boot_id", 64, &now, &n) < 0)
		now = xstrdup("unknown");
	now[strcspn(now, "\n")] = '\0';
	bool unclean = boot[0] && strcmp(clean, "1") != 0;
	if (unclean) {
		char verdict[256];
		rc = db_scalar(st->db, "PRAGMA quick_check(1)", verdict, sizeof(verdict), e);
		if (rc == 0 && strcmp(verdict, "ok") != 0)
			return err_set(e, -EUCLEAN,
			        "the state database is damaged (%.80s); it is left as it is: "
			        "restore"
			        " it from a backup, or move supervisor/db* away to begin anew",
			        verdict);
	}
	const struct db_param boot_now[] = {db_t("boot"), db_t(now)};
	const struct db_param not_clean[] = {db_t("clean"), db_t("0")};
	if (rc == 0)
		rc = db_run(st->db, W_BEGIN, NULL, 0, e);
	if (rc == 0 && unclean && strcmp(boot, now) != 0)
		rc = db_run(st->db, W_POWER_CUT, NULL, 0, e);
	if (rc == 0)
		rc = db_run(st->db, W_META, boot_now, 2, e);
	if (rc == 0)
		rc = db_run(st->db, W_META, not_clean, 2, e);
	return rc < 0 ? rc : db_run(st->db, W_COMMIT, NULL, 0, e);
}

static int open_all(struct store *st, const char *path, struct err *e)
{
	st->db = db_open(path, true, e);
	if (!st->db)
		return e->code;
	int rc = db_exec(st->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL", "WAL", e);
	if (rc == 0)
		rc = db_migrate(st->db, store_migrations, STORE_VERSIONS, e);
	if (rc == 0)
		rc = db_prepare(st->db, store_write_sql, W_COUNT, e);
	if (rc == 0)
		rc = mark_start(st, e);
	if (rc < 0)
		return rc;
	st->reader = db_open(path, false, e);
	return st->reader ? db_prepare(st->reader, store_read_sql, R_COUNT, e) : e->code;
}

static void release(struct store *st)
{
	if (st->copying) { /* who asked for it has gone with us */
		db_copy_free(st->copy);
		store_job_free(st->copying);
	}
	db_close(st->reader);
	db_close(st->db);
	syncs_free(st->syncs);
	fd_close(st->wake_fd);
	pthread_mutex_destroy(&st->lock);
	pthread_cond_destroy(&st->work);
	pthread_cond_destroy(&st->idle);
	free(st);
}

struct store *store_open(const char *path, struct stats *stats, struct err *e)
{
	struct store *st = xnew(struct store);
	st->stats = stats;
	list_init(&st->queue);
	list_init(&st->finished);
	list_init(&st->later);
	pthread_mutex_init(&st->lock, NULL);
	pthread_cond_init(&st->work, NULL);
	pthread_cond_init(&st->idle, NULL);
	st->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	st->syncs = syncs_new();
	int rc = st->wake_fd < 0 ? err_errno(e, "eventfd") : open_all(st, path, e);
	if (rc == 0 && (rc = pthread_create(&st->thread, NULL, writer, st)) != 0)
		rc = err_set(e, -rc, "start the store's thread");
	if (rc < 0) {
		release(st);
		return NULL;
	}
	st->threaded = true;
	return st;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	store_drain(st);
	struct job *j = store_job(NULL, NULL);
	store_job_add(j, W_META, "tt", "clean", "1");
	store_submit(st, j);
	store_drain(st);
	pthread_mutex_lock(&st->lock);
	st->closing = true;
	pthread_cond_signal(&st->work);
	pthread_mutex_unlock(&st->lock);
	if (st->threaded)
		pthread_join(st->thread, NULL);
	release(st);
}
