/*
 * Hooks of root's that are commands: each event is the standard input of a process, in a job.
 * Exit code 0 has taken it, 100 never will; anything else is asked again, by the supervisor.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/root_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* At once: those of the supervisor before may be there still. */
	COMMANDS_MAX = 2 * JAIL_HOOKS,
	NEVER = 100,     /* exit code: it is no use to ask again */
	STATUS_OK = 200, /* of HTTP: the same words as those of a receiver */
	STATUS_NEVER = 422,
	SAID = 1024, /* of what it prints */
};

struct hook_command {
	struct list link; /* in daemon.hook_commands */
	struct daemon *d;
	struct job job;
	struct watch ended;
	struct webhook hook;
	char id[JAIL_HOOK_ID];
	uint64_t delivery;
	int64_t begun_ms;
	int body; /* owned until the job has it */
};

struct outcome {
	int status;
	uint32_t n;
	char said[SAID];
};
_Static_assert(sizeof(struct outcome) <= JOB_BYTES, "it is what a job says");

static int work_run(const void *arg, struct job_out *out, struct err *e)
{
	const struct hook_command *x = arg;
	struct outcome o = {0};
	auto_free char *id = xasprintf("AGENTBOX_EVENT_ID=%s", x->id);
	auto_free char *name = xasprintf("AGENTBOX_HOOK=%s", x->hook.name);
	const char *const env[] = {id, name, NULL};
	const struct root_command c = {.field = x->hook.command,
	        .nargs = x->hook.nargs,
	        .env = env,
	        .uid = ID_HOOKS,
	        .stdin_fd = x->body,
	        .until_ms = x->begun_ms + (int64_t)x->hook.timeout_ms};
	(void)lseek(x->body, 0, SEEK_SET); /* whoever gave it may have read */
	int n = root_command(&c, o.said, sizeof(o.said), &o.status, e);
	if (n < 0)
		return n;
	o.n = (uint32_t)n;
	memcpy(out->bytes, &o, sizeof(o));
	out->size = sizeof(o);
	return 0;
}

/* ---- its end ---- */

static void free_command(struct hook_command *x)
{
	poller_remove(&x->d->poller, &x->ended);
	reaper_give(&x->d->reaper, &x->job.child, "");
	job_forget(&x->job);
	fd_close(x->body);
	list_remove(&x->link);
	free(x);
}

/* One line for people, whatever it printed. */
static void first_line(const struct outcome *o, char *to, size_t size)
{
	size_t n = 0;
	for (; n < o->n && n < sizeof(o->said) && n + 1 < size && o->said[n] != '\n'; n++)
		to[n] = o->said[n] >= ' ' && o->said[n] < 127 ? o->said[n] : '?';
	to[n] = '\0';
}

static void judge(const struct hook_command *x, const struct outcome *o, struct jail_hooked *m)
{
	char how[32], said[96];
	bool done = WIFEXITED(o->status);
	child_status_text(o->status, how);
	first_line(o, said, sizeof(said));
	m->status = done && WEXITSTATUS(o->status) == 0       ? STATUS_OK
	            : done && WEXITSTATUS(o->status) == NEVER ? STATUS_NEVER
	                                                      : 0;
	(void)snprintf(m->reason, sizeof(m->reason), "%s%s%.90s", how, said[0] ? ": " : "", said);
	if (m->status != STATUS_OK || o->n)
		log_info("hook %s, event %s: %s", x->hook.name, x->id, m->reason);
}

/* A supervisor that was not the asker does not know the number, and asks again. */
static void tell(struct hook_command *x, int r, const struct job_out *out, const struct err *e)
{
	struct jail_hooked m = {.head.type = JAIL_HOOKED,
	        .delivery = x->delivery,
	        .took_ms = (uint32_t)(clock_mono_ms() - x->begun_ms)};
	struct outcome o;
	if (r == 0 && out->size == sizeof(o)) {
		memcpy(&o, out->bytes, sizeof(o));
		judge(x, &o, &m);
	} else {
		(void)snprintf(m.reason, sizeof(m.reason), "%.120s", e->text);
		log_info("hook %s, event %s: %s", x->hook.name, x->id, m.reason);
	}
	service_send(&x->d->supervisor, &m, sizeof(m), NULL, 0);
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct hook_command *x = container_of(w, struct hook_command, ended);
	int status = child_reap_watched(&x->job.child, &x->d->poller, w);
	if (status == -ETIME)
		return;
	auto_job_out struct job_out out = JOB_OUT_NONE;
	struct err e = {0};
	int r = job_end(&x->job, status, &out, &e);
	tell(x, r, &out, &e);
	free_command(x);
}

/* ---- its beginning ---- */

int hook_commands_begin(struct daemon *d, const struct jail_hook *asked, int body, struct err *e)
{
	unsigned n = 0;
	list_for_each (at, &d->hook_commands, struct hook_command, link)
		n++;
	if (n >= COMMANDS_MAX) {
		fd_close(body);
		return err_set(e, -EAGAIN, "%u commands of hooks run already", n);
	}
	struct hook_command *x = xnew(struct hook_command);
	*x = (struct hook_command){.d = d,
	        .job = JOB_NONE,
	        .hook = d->policies->set->config.webhooks[asked->hook],
	        .delivery = asked->delivery,
	        .begun_ms = clock_mono_ms(),
	        .body = body};
	memcpy(x->id, asked->id, sizeof(x->id)); /* checked: it ends */
	list_append(&d->hook_commands, &x->link);
	const struct job_spec spec = {work_run, x, &x->body, 1};
	int r = job_start(&spec, &x->job, e);
	if (r == 0)
		r = poller_add(&d->poller, &x->ended, x->job.child.pidfd, EPOLLIN, on_ended, e);
	fd_close(take_fd(x->body));
	if (r < 0)
		free_command(x);
	return r;
}

void hook_commands_done(struct daemon *d)
{
	list_for_each (x, &d->hook_commands, struct hook_command, link)
		free_command(x);
}
