#include "jail/upgrade.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/handover.h"
#include "jail/snapshots.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the memfd is, for the program that goes on.  Wiped with the rest of the environment. */
#define HANDOVER_VARIABLE "AGENTBOX_HANDOVER"

enum {
	WAIT_MS = 2000, /* for workers to end and egress to read: milliseconds */
	KILL_MS = 2000, /* for what was killed then to be gone */
	LOOK_MS = 5,
	SAID_MAX = 8 << 10,
	ARGV_MAX = 64,
	ENV_MAX = POLICY_EXPOSED + 5,
};

static void on_alarm(struct alarm *a);

void upgrade_init(struct daemon *d)
{
	d->upgrade.program = -1;
	alarm_init(&d->upgrade.alarm, on_alarm);
}

void upgrade_done(struct daemon *d)
{
	alarm_clear(&d->upgrade.alarm);
	fd_close(take_fd(d->upgrade.program));
}

int upgrade_know_self(struct daemon *d, struct err *e)
{
	return stat("/proc/self/exe", &d->upgrade.file) < 0 ? err_errno(e, "/proc/self/exe") : 0;
}

bool upgrade_due(const struct daemon *d)
{
	return program_changed(d->programs.self, &d->upgrade.file);
}

bool upgrade_waits(const struct daemon *d)
{
	return d->upgrade.program >= 0;
}

/* ---- trying it ---- */

/* The last line that it wrote, which is what stopped it. */
static const char *last_line(struct buf *said)
{
	while (said->len > 0 && said->p[said->len - 1] == '\n')
		said->p[--said->len] = '\0';
	if (said->len == 0)
		return "it gives no reason";
	const char *line = strrchr(said->p, '\n');
	line = line ? line + 1 : said->p;
	const char *name = "agentboxd: error: "; /* whose words they are is told already */
	return strncmp(line, name, strlen(name)) == 0 ? line + strlen(name) : line;
}

static int cannot(const struct daemon *d, int r, struct err *e)
{
	(void)err_wrap(e, "%s cannot take over, everything stays as it is", d->programs.self);
	return r;
}

int upgrade_try(const struct daemon *d, int program, int memfd, struct err *e)
{
	/* 3 and 4 there.  By descriptor: what was tried is what will run. */
	const int fds[] = {memfd, program};
	const char *argv[ARGV_MAX + 3];
	size_t n = 0;
	for (; d->options->argv[n]; n++) {
		if (n == ARGV_MAX)
			return err_set(e, -E2BIG, "more than %d arguments", ARGV_MAX);
		argv[n] = d->options->argv[n];
	}
	argv[n++] = "--check-handover";
	argv[n++] = "3";
	argv[n] = NULL;
	const struct child_spec spec = {
	        .path = "/proc/self/fd/4", .argv = argv, .fds = fds, .nfds = ARRAY_LEN(fds)};
	auto_buf struct buf said = BUF_INIT(SAID_MAX);
	int status = child_run(&spec, UPGRADE_TRY_MS, &said, e);
	if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	char how[32];
	child_status_text(status, how);
	int r = status < 0 ? err_not_theirs(e, status)
	                   : err_set(e, -EIO, "%s: %.120s", how, last_line(&said));
	return cannot(d, r, e);
}

static int may_begin(const struct daemon *d, struct err *e)
{
	const char *self = d->programs.self;
	if (upgrade_waits(d))
		return err_set(e, -EBUSY, "%s is taking over already", self);
	/* opening alone is a moment */
	unsigned working = laters_working(&d->laters) + snapshots_working(d);
	if (working > 0)
		return err_set(e, -EBUSY,
		        "%s cannot take over now: the files of %u sessions are being made ready; "
		        "try again when they are",
		        self, working);
	return 0;
}

int upgrade_prepare(const struct daemon *d, int *ret_program, int *ret_memfd, struct err *e)
{
	int r = may_begin(d, e);
	if (r < 0)
		return r;
	auto_close int program = open(d->programs.self, O_PATH | O_CLOEXEC);
	if (program < 0)
		return err_errno(e, "%s", d->programs.self);
	int memfd = handover_write(d, e);
	if (memfd < 0)
		return cannot(d, memfd, e);
	*ret_program = take_fd(program);
	*ret_memfd = memfd;
	return 0;
}

int upgrade_begin(struct daemon *d, int program, struct err *e)
{
	auto_close int tried = program;
	int r = may_begin(d, e); /* things go on while it is tried */
	if (r == 0)
		d->upgrade.program = take_fd(tried);
	return r;
}

/* ---- the exec ---- */

/* What was told to them and they have not read is not carried over. */
static bool egress_is_behind(const struct daemon *d)
{
	bool behind = service_running(&d->egress) && outbox_waits(&d->egress.outbox);
	for (int i = 0; i < EGRESS_PLACES; i++)
		behind |= service_running(&d->drains[i]) && outbox_waits(&d->drains[i].outbox);
	return behind;
}

static const char *in_motion(const struct daemon *d)
{
	if (egress_is_behind(d))
		return "egress does not read what is sent to it";
	/* The next one would not know them. */
	return d->reaper.count > 0 || reload_runs(d) || !list_empty(&d->deletes) ||
	                       jails_have_children(&d->jails)
	               ? "a child that was killed does not end; its disk may hang"
	               : NULL;
}

struct environment {
	char *v[ENV_MAX]; /* owned, NULL-terminated */
	size_t n;
};

static void environment_done(struct environment *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->v[i]);
}

/* What a start reads from its environment, which was wiped. */
static void environment_make(const struct daemon *d, int memfd, struct environment *env)
{
	env->v[env->n++] = xasprintf(HANDOVER_VARIABLE "=%d", memfd);
	if (d->notify.len > 0)
		env->v[env->n++] = xasprintf("NOTIFY_SOCKET=%s", d->notify.path);
	if (d->notify.watchdog_us > 0)
		env->v[env->n++] =
		        xasprintf("WATCHDOG_USEC=%llu", (unsigned long long)d->notify.watchdog_us);
	if (d->credentials)
		env->v[env->n++] = xasprintf("CREDENTIALS_DIRECTORY=%s", d->credentials);
	for (size_t i = 0; d->exposed[i]; i++)
		env->v[env->n++] = xstrdup(d->exposed[i]);
}

/* Returns only where it failed. */
static int replace(struct daemon *d, struct err *e)
{
	auto_close int memfd = handover_write(d, e);
	if (memfd < 0)
		return memfd;
	struct environment env = {.n = 0};
	environment_make(d, memfd, &env);
	handover_keep(d, true);
	(void)fcntl(memfd, F_SETFD, 0);
	(void)execveat(d->upgrade.program, "", (char *const *)(uintptr_t)d->options->argv, env.v,
	        AT_EMPTY_PATH);
	int r = err_errno(e, "exec");
	handover_keep(d, false);
	environment_done(&env);
	return r;
}

/* The next supervisor tells whoever waits for it. */
static void give_up(struct daemon *d, const char *why)
{
	struct err e;
	(void)err_set(
	        &e, -EIO, "%s does not take over, this one goes on: %s", d->programs.self, why);
	log_err("%s", e.text);
	(void)str_copy(d->upgrade.why, sizeof(d->upgrade.why), e.text);
	upgrade_done(d); /* the supervisor's next start waits for no more than that */
	daemon_empty_trash(d);
	snapshots_sweep(d);
}

static void on_alarm(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, upgrade.alarm);
	if (d->stopping)
		return;
	const char *why = in_motion(d);
	int64_t left = d->upgrade.until_ms - clock_mono_ms();
	if (why && left > 0) {
		if (left <= KILL_MS)
			jails_kill_children(&d->jails);
		alarm_set(&d->poller, a, LOOK_MS);
		return;
	}
	if (why) {
		give_up(d, why);
		return;
	}
	/* Its clients are cut; those that come wait in the backlog, which is carried over. */
	service_stop(&d->listener_service);
	service_done(&d->listener_service);
	pool_empty(&d->pool);
	d->former_policies = d->policies->memfd;
	log_info("%s takes over from here, with %u jails", d->programs.self, d->jails.count);
	struct err e;
	(void)replace(d, &e);
	give_up(d, e.text);
	d->former_policies = -1;
	d->listener_service.stopping = false;
	if (peers_follow_listen(d, &e) < 0)
		log_err("%s", e.text);
}

void upgrade_go_on(struct daemon *d)
{
	daemon_leave_trash(d);
	snapshots_done(d);
	hook_commands_done(d);
	d->upgrade.until_ms = clock_mono_ms() + WAIT_MS + KILL_MS;
	alarm_set(&d->poller, &d->upgrade.alarm, 0);
}

/* ---- after it ---- */

int upgrade_take_over(struct daemon *d, struct err *e)
{
	const char *text = getenv(HANDOVER_VARIABLE);
	if (!text)
		return 0;
	auto_close int memfd = (int)strtol(text, NULL, 10);
	(void)prctl(PR_SET_NAME, "agentboxd", 0, 0, 0); /* exec by descriptor leaves its number */
	int r = handover_read(memfd, d, e);
	if (r < 0)
		return err_wrap(e, "taking over from another agentboxd");
	closer_stop(&d->closer); /* has ended at the exec; the next one is started as ever */
	state_resume(&d->state, d->options->state);
	if (d->listener.dev)
		d->listener.path = xstrdup(d->options->socket);
	return 1;
}
