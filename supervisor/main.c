/*
 * agentbox-supervisor: the unprivileged brain.
 *
 * The order of life: ring (disabled, restricted) and directory watches as root;
 * privileges away for good; store and its thread; filter; ring enabled; HELLO.
 * agentboxd answers with the policies, and with them come the limits and the
 * socket's group; it is asked what the host has, and what an earlier supervisor
 * has left: serving begins then.
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/privs.h"
#include "proto/build.h"
#include "proto/children.h"
#include "supervisor/ahead.h"
#include "supervisor/api.h"
#include "supervisor/arguments.h"
#include "supervisor/audit.h"
#include "supervisor/daemon.h"
#include "supervisor/evict.h"
#include "supervisor/egress_feed.h"
#include "supervisor/eventlog.h"
#include "supervisor/exec_wait.h"
#include "supervisor/filter.h"
#include "supervisor/frames.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/hub.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/apikeys.h"
#include "supervisor/loop.h"
#include "supervisor/machine.h"
#include "supervisor/orders.h"
#include "supervisor/policies.h"
#include "supervisor/retention.h"
#include "supervisor/runs.h"
#include "supervisor/sessions.h"
#include "supervisor/space.h"
#include "supervisor/store.h"
#include "supervisor/uploads.h"
#include "supervisor/visit.h"
#include "supervisor/traces.h"
#include "supervisor/webhooks.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* LARGE_BYTES: a buffer as large as a line, a prompt or an answer goes back to the host. */
enum { RING_ENTRIES = 1024, EXIT_SYSTEM = 111, LARGE_BYTES = 256 << 10 };

/* ---- the parts ---- */

static int open_watches(struct daemon *d, struct err *e)
{
	int bundled = openat(CHILD_SHARE, "harnesses", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (bundled < 0)
		return err_errno(e, "the bundled harnesses");
	int agents = openat(bundled, "agents", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int dirs[HARNESSES_DIRS] = {bundled, CHILD_HARNESS_DIRS, CHILD_HARNESS_DIRS + 1,
	        CHILD_HARNESS_DIRS + 2, CHILD_HARNESS_DIRS + 3};
	d->harnesses = harnesses_new(dirs, HARNESSES_DIRS, agents, &d->stats, e);
	return d->harnesses ? 0 : e->code;
}

/* Of the state directory, which is the working directory. */
static int open_dir(const char *name, struct err *e)
{
	if (mkdirat(CHILD_STATE, name, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "state: make %s", name);
	int fd = openat(CHILD_STATE, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_errno(e, "state: open %s", name) : fd;
}

static int open_state(struct daemon *d, struct err *e)
{
	int events = open_dir("events", e);
	d->artifacts_fd = events < 0 ? -1 : open_dir("artifacts", e);
	d->journals_fd = d->artifacts_fd < 0 ? -1 : open_dir("journals", e);
	if (d->journals_fd < 0)
		return e->code;
	d->store = store_open("db", &d->stats, e);
	if (!d->store)
		return e->code;
	d->space = space_new(d->loop, CHILD_STATE, &orders_space, d);
	d->machine = machine_new();
	d->audit = audit_new(open_dir("audit", e), AUDIT_FILE, e);
	d->keys = apikeys_new(d);
	if (!d->audit || apikeys_load(d->keys, e) < 0)
		return e->code;
	d->hub = hub_new(d->loop);
	d->frames = frames_new();
	d->log = eventlog_new(events, d->loop, d->hub, d->store, &d->stats);
	d->egress = egress_feed_new();
	d->policies = policies_new();
	d->webhooks = webhooks_new(d);
	d->traces = traces_new(d);
	d->uploads = uploads_new(d);
	d->sessions = sessions_new(d);
	d->keeper = keeper_new(d);
	d->retention = retention_new(d);
	int ahead = open_dir("ahead", e);
	if (ahead < 0)
		return ahead;
	d->ahead = ahead_new(d, ahead);
	d->runs = runs_new(d);
	d->execs = exec_waits_new(d, api_session_exec_again);
	d->visits = visits_new(d);
	d->evict = evict_new(d);
	list_init(&d->inbounds);
	d->jails = jails_new(d, CHILD_CONTROL, &orders_calls);
	harnesses_checker(d->harnesses, orders_check_harness, d);
	harnesses_load(d->harnesses);
	return 0;
}

static int start(struct daemon *d, const struct arguments *c, struct err *e)
{
	umask(0077);
	d->loop = loop_new(RING_ENTRIES, e);
	if (!d->loop)
		return e->code;
	int rc = open_watches(d, e);
	if (rc == 0 && fchdir(CHILD_STATE) < 0)
		rc = err_errno(e, "state directory");
	if (rc == 0)
		rc = privs_drop(c->uid, c->gid, e);
	if (rc == 0)
		rc = open_state(d, e);
	if (rc == 0)
		rc = filter_enter(e);
	if (rc == 0)
		rc = loop_enable(d->loop, e);
	if (rc < 0)
		return rc;
	store_attach(d->store, d->loop);
	harnesses_watch(d->harnesses, d->loop);
	jails_start(d->jails);
	return 0;
}

/* The answers go first, then what they were about is made durable. */
static void end(struct daemon *d)
{
	struct err e;
	http_free(d->http);
	if (eventlog_sync_all(d->log, &e) < 0)
		log_err("%s", e.text);
	store_close(d->store);
}

/* By itself glibc raises both with every large buffer that is freed, up to 64 MiB, and gives each
 * thread a heap, of which the one besides this has a copy of what it writes. */
static void keep_no_memory(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE_BYTES);
	(void)mallopt(M_ARENA_MAX, 1);
}

int main(int argc, char **argv)
{
	static struct daemon d;
	struct arguments c;
	struct err e;
	keep_no_memory();
	log_init("agentbox-supervisor", LOG_LEVEL_INFO);
	int asked = build_check(argc, argv, &e);
	if (asked > 0)
		return 0;
	if (asked < 0 || arguments_parse(argc, argv, &c, &e) < 0) {
		log_err("%s", e.text);
		return 100;
	}
	log_init("agentbox-supervisor", c.log_level);
	log_use(c.log_format, 0);
	/* Writes to what has gone, and beyond a file size limit, are errors where they happen.
	 * SIGTERM to the whole group is agentboxd's to hear; it then says JAIL_STOP. */
	static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT, SIGHUP};
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (start(&d, &c, &e) < 0 || loop_run(d.loop, &e) < 0) {
		log_err("%s", e.text);
		return EXIT_SYSTEM;
	}
	end(&d);
	return d.failed ? EXIT_SYSTEM : 0;
}
