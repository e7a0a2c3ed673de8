/*
 * What the supervisor asked for and the broker let through: each operation gets
 * checked fields and turns them into descriptors and jails.  Paths are made
 * here, from root's words and checked names, and opened without following what
 * others could have put there.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "jail/checkup.h"
#include "jail/daemon.h"
#include "jail/given.h"
#include "jail/keeps.h"
#include "jail/mounts.h"
#include "jail/purses.h"
#include "jail/sessions.h"
#include "jail/snapshots.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the directories of one jail ---- */

struct places {
	struct disk disk;            /* workspace and home of a session */
	const struct closer *closer; /* borrowed: of the disk */
	int agent;
	int sources[JAIL_BINDS];
	struct launch_bind binds[JAIL_BINDS];
};

static void places_init(struct places *p, const struct closer *closer)
{
	p->closer = closer;
	p->disk = (struct disk)DISK_NONE;
	p->agent = -1;
	for (int i = 0; i < JAIL_BINDS; i++)
		p->sources[i] = -1;
}

static void places_done(struct places *p)
{
	disk_done(&p->disk, p->closer);
	fd_close(p->agent);
	for (int i = 0; i < JAIL_BINDS; i++)
		fd_close(p->sources[i]);
}
#define auto_places __attribute__((cleanup(places_done)))

static int open_beneath(int dir, const char *path, uint64_t flags)
{
	return fd_openat2(dir, path, O_PATH | flags,
	        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Root's path, which may go over links: they are root's too.  What lies below it may not. */
static int open_bind(const struct policy_bindable *from, const struct jail_bind *b, struct err *e)
{
	auto_close int root = open(from->source, O_PATH | O_CLOEXEC);
	if (root < 0)
		return err_errno(e, "bind %s", from->source);
	auto_close int fd = b->below[0] ? open_beneath(root, b->below, 0) : take_fd(root);
	if (fd < 0)
		return err_set(e, fd, "bind %.100s below %.80s: %s", b->below, from->source,
		        fd == -ELOOP ? "a link is in the way" : strerror(-fd));
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "bind %s", b->below);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EACCES, "bind %.100s below %.80s: neither file nor directory",
		        b->below, from->source);
	return take_fd(fd);
}

static int open_binds(struct places *p, const struct broker_make *m, struct err *e)
{
	for (uint32_t i = 0; i < m->nbinds; i++) {
		const struct jail_bind *b = &m->binds[i];
		int fd = open_bind(&m->policy->bindable[b->index], b, e);
		if (fd < 0)
			return fd;
		p->sources[i] = fd;
		p->binds[i] = (struct launch_bind){
		        .source = fd, .target = b->target, .writable = b->writable};
	}
	return 0;
}

static int open_agent(const struct daemon *d, const char *name, struct err *e)
{
	const char *agents = d->options->agents;
	auto_close int dir = open(agents, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && errno != ENOENT)
		return err_errno(e, "agent '%s': %s", name, agents);
	int r = dir < 0 ? 0 : root_owned(dir, agents, e);
	if (r < 0)
		return r;
	auto_close int fd = dir < 0 ? -ENOENT : open_beneath(dir, name, O_DIRECTORY);
	if (fd == -ENOENT)
		return err_set(e, -ENOEXEC,
		        "agent '%s' is not installed: no %s/%s; remedy: abctl agent install %s",
		        name, agents, name, name);
	if (fd < 0)
		return err_set(e, fd, "agent '%s': %s", name, strerror(-fd));
	r = root_owned(fd, name, e);
	return r < 0 ? r : take_fd(fd);
}

static bool session_in_use(struct daemon *d, const char *session)
{
	return jails_with_session(&d->jails, session) || laters_has(&d->laters, session) ||
	       deletes_has(d, session) || snapshots_has(d, session);
}

/* An agent that only waits for another run is in nobody's way.  True: the session's jail is on its
 * way out. */
static bool make_room(struct daemon *d, const char *session)
{
	struct jail *j = jails_with_session(&d->jails, session);
	if (!j || laters_has(&d->laters, session) || deletes_has(d, session))
		return false;
	if (j->state == JAILS_LIVE && j->resting)
		jails_kill(j);
	return j->state == JAILS_DYING;
}

static int use_opened(struct disks_opened *o, struct disk *ret, const struct policy *policy)
{
	if (o->without.code < 0)
		log_warn("%s; policy '%s' only warns", o->without.text, policy->name);
	*ret = o->disk;
	return 0;
}

static int open_session(struct daemon *d, struct disk *ret, const struct broker_make *m,
        struct broker_call *c, struct err *e)
{
	struct disks_opened opened;
	int r = laters_outcome(&d->laters, &opened, e);
	if (r != 0)
		return r < 0 ? r : use_opened(&opened, ret, m->policy);
	bool leaves = make_room(d, m->session);
	/* Two jails with different owners' maps on one workspace: nobody asks for that. */
	if (!leaves && session_in_use(d, m->session))
		return err_set(e, -EBUSY, "session %s is in use", m->session);
	if (laters_full(&d->laters))
		return err_set(e, -EAGAIN, "%d sessions are being made ready already", LIMIT_JAILS);
	struct disks_ask ask = {.limits = m->limits,
	        .ceiling = m->policy->limits,
	        .promised = jails_promised(&d->jails),
	        .may_be_lost = m->policy->flags & POLICY_VOLATILE,
	        .required = m->policy->required & LAYER_BIT(LAYER_LIMIT_DISK)};
	(void)str_copy(ask.session, sizeof(ask.session), m->session);
	(void)str_copy(ask.snapshot, sizeof(ask.snapshot), m->snapshot ? m->snapshot : "");
	(void)str_copy(ask.template, sizeof(ask.template), m->template ? m->template : "");
	struct disks_job job = DISKS_JOB_NONE;
	/* What was killed and still works on its files is no reason to refuse. */
	r = leaves || reaper_holds(&d->reaper, m->session)
	            ? disks_job_wait(&job, &ask)
	            : disks_session(&d->disks, &ask, &opened, &job, e);
	if (r != -EINPROGRESS)
		return r < 0 ? r : use_opened(&opened, ret, m->policy);
	r = laters_add(&d->laters, m->asked, take_fd(c->exec_fd), &job, e);
	return r < 0 ? r : -EINPROGRESS;
}

static int open_places(struct daemon *d, struct places *p, const struct broker_make *m,
        struct broker_call *c, struct err *e)
{
	int r = open_binds(p, m, e);
	if (r < 0)
		return r;
	if (m->agent) {
		p->agent = open_agent(d, m->agent, e);
		if (p->agent < 0)
			return p->agent;
	}
	return m->session ? open_session(d, &p->disk, m, c, e) : 0;
}

/* ---- making ---- */

static void give_stdio(struct broker_call *c, struct launch_stdio *s)
{
	const int all[] = {s->in, s->out, s->err};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i] >= 0)
			c->fds[c->nfds++] = all[i];
	*s = (struct launch_stdio)LAUNCH_STDIO_NONE;
}

static int launch_with(struct daemon *d, const struct broker_make *m, const struct places *p,
        const struct template *root, const int *mounts, const struct launch_program *program,
        struct launched *ret, struct err *e)
{
	struct kit *kit;
	int r = pool_take(&d->pool, m->policy_index, &kit, e);
	if (r < 0)
		return r;
	uint32_t base = kit->base;
	const struct launch_spec spec = {.policy = m->policy,
	        .limits = &m->limits,
	        .root = root,
	        .kit = kit,
	        .workspace = p->disk.workspace,
	        .home = p->disk.home,
	        .lower = p->disk.lower >= 0 ? &p->disk.lower : NULL,
	        .session_mounts = mounts,
	        .disk_held = p->disk.method != JAIL_DISK_NONE,
	        .agent = p->agent,
	        .binds = p->binds,
	        .nbinds = m->nbinds,
	        .init_memfd = d->init,
	        .program = program->memfd >= 0 ? program : NULL};
	r = launch_jail(&spec, ret, e);
	struct err kept;
	if (r < 0 && pool_end_lease(&d->pool, base, &kept) < 0)
		log_warn("%s", kept.text);
	return r;
}

static int launch(struct daemon *d, const struct broker_make *m, const struct places *p,
        const struct launch_program *program, struct launched *ret, struct err *e)
{
	static const char *const names[] = {"home", "workspace"};
	const struct template *root;
	int mounts[ARRAY_LEN(names)] = {-1, -1};
	bool own = p->disk.tree >= 0; /* a file system that is mounted nowhere yet */
	int r = policies_root(d->policies, m->policy_index, &root, e);
	if (r == 0 && own)
		r = mounts_split(p->disk.tree, root->mntns, names, ARRAY_LEN(names), mounts, e);
	if (r < 0)
		r = err_not_theirs(e, r);
	if (r == 0)
		r = launch_with(d, m, p, root, own ? mounts : NULL, program, ret, e);
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		fd_close(mounts[i]);
	return r;
}

/* What was launched without it, because what it cannot write is to be so first. */
static int start_program(
        struct jail *j, const struct launch_program *p, struct launch_stdio *ret, struct err *e)
{
	int r = keeps_apply(j->l.kit->mntns, &j->keeps, e);
	if (r < 0)
		return r;
	r = launch_exec(&j->l, p, ret, e);
	if (r == 0)
		jails_asked(j);
	return r;
}

static int op_make(void *ctx, const struct broker_make *m, struct broker_call *c, struct err *e)
{
	struct daemon *d = ctx;
	int64_t begun = clock_mono_us();
	if (jails_full(&d->jails))
		return err_set(e, -EAGAIN, "%d jails are there already", LIMIT_JAILS);
	int r = host_require(&d->host, m->policy, e);
	if (r < 0)
		return r;
	auto_places struct places places;
	places_init(&places, &d->closer);
	r = open_places(d, &places, m, c, e);
	if (r < 0)
		return r;
	struct launched l = {.pid = -1};
	auto_close int given = -1;
	if (m->flags & JAIL_MAKE_SECRETS)
		given = r =
		        given_open(d->secrets, m->policy, &m->asked->outlets, &c->reply.veil, e);
	if (r < 0)
		return r;
	const struct launch_program program = {
	        .exec = 1, .memfd = c->exec_fd, .flags = m->flags, .acp = d->acp, .given = given};
	const struct launch_program none = {.memfd = -1};
	bool after = m->asked->keeps.n > 0 && c->exec_fd >= 0;
	c->reply.pooled = d->pool.depth[m->policy_index] > 0;
	r = launch(d, m, &places, after ? &none : &program, &l, e);
	if (r < 0)
		return r;
	assert(l.kit);
	fd_close(take_fd(places.disk.lower)); /* the jail's mounts hold it */
	struct launch_stdio stdio = l.stdio;
	l.stdio = (struct launch_stdio)LAUNCH_STDIO_NONE;
	struct jail *j;
	if (places.disk.workspace < 0)
		disk_in_memory(&places.disk, l.kit->mounts[KIT_HOME], l.kit->mounts[KIT_WORKSPACE],
		        &m->limits);
	r = jails_add(&d->jails, &l, &places.disk, &j, e);
	if (r < 0) {
		launch_stdio_close(&stdio);
		return r;
	}
	j->flags = m->flags;
	j->execs = c->exec_fd >= 0 && !after ? 1 : 0;
	(void)str_copy(j->policy, sizeof(j->policy), m->policy->name);
	(void)str_copy(j->session, sizeof(j->session), m->session ? m->session : "");
	(void)str_copy(j->run, sizeof(j->run), m->run ? m->run : "");
	memcpy(j->user, m->asked->purse.user, sizeof(j->user));
	j->budget = m->asked->purse.run;
	j->outlets = m->asked->outlets;
	j->veil = c->reply.veil;
	purses_told(&d->ledger, &m->asked->purse, j->session, m->policy);
	j->keeps = m->asked->keeps;
	r = after ? start_program(j, &program, &stdio, e) : 0;
	if (r == 0 && m->run && j->execs)
		r = jails_keep_program(j, &stdio, e);
	if (r == 0)
		r = peers_tell_jail(d, j, e);
	if (r < 0) {
		launch_stdio_close(&stdio);
		jails_discard(j);
		return r;
	}
	give_stdio(c, &stdio);
	c->reply.jail = j->id;
	c->reply.exec = j->execs;
	c->reply.layers = j->l.layers & ~d->host.disproved;
	c->reply.fallback = j->l.fallback & ~d->host.disproved;
	c->reply.base_uid = j->base;
	c->reply.disk = (uint32_t)j->disk.method;
	c->reply.make_us = clock_mono_us() - begun;
	return 0;
}

/* ---- the others ---- */

static int find_live(struct daemon *d, uint64_t id, struct jail **ret, struct err *e)
{
	int r = jails_find(&d->jails, id, ret, e);
	if (r < 0)
		return r;
	if ((*ret)->state != JAILS_LIVE)
		return err_set(e, -ESRCH, "jail %llu has ended", (unsigned long long)id);
	return 0;
}

static int op_hello(void *ctx, struct broker_call *c, struct err *e)
{
	(void)e;
	const struct daemon *d = ctx;
	(void)str_copy(c->reply.version, sizeof(c->reply.version), AGENTBOX_VERSION);
	c->reply.since_ms = d->since_ms;
	const char *agents = d->options->agents;
	if (agents[0] == '/' && strlen(agents) < sizeof(c->reply.agents))
		(void)str_copy(c->reply.agents, sizeof(c->reply.agents), agents);
	memcpy(c->reply.stays, d->upgrade.why, sizeof(c->reply.stays));
	daemon_became_ready(ctx);
	return 0;
}

static int op_exec(void *ctx, const struct jail_exec *m, struct broker_call *c, struct err *e)
{
	struct jail *j;
	int r = find_live(ctx, m->jail, &j, e);
	if (r < 0)
		return r;
	if ((m->flags & JAIL_MAKE_PROGRAM) && (!j->run[0] || j->program))
		return err_set(e, -EINVAL, "jail %llu is no run's, or has its program already",
		        (unsigned long long)m->jail);
	if (j->resting && !(m->flags & JAIL_MAKE_PROGRAM))
		return err_set(
		        e, -ESRCH, "jail %llu waits for another run", (unsigned long long)m->jail);
	const struct daemon *d = ctx;
	auto_close int given = -1;
	if (m->flags & JAIL_MAKE_SECRETS) {
		int at = policy_find(d->policies->set, j->policy);
		if (at < 0)
			return err_set(e, -EACCES, "policy '%s' is not there any more", j->policy);
		given = r = given_open(
		        d->secrets, &d->policies->set->policies[at], &j->outlets, &j->veil, e);
		if (r < 0)
			return r;
	}
	const struct launch_program program = {.exec = j->execs + 1,
	        .memfd = c->exec_fd,
	        .flags = m->flags & ~(uint32_t)JAIL_MAKE_PROGRAM,
	        .acp = d->acp,
	        .given = given};
	struct launch_stdio stdio = LAUNCH_STDIO_NONE;
	if (m->flags & JAIL_MAKE_PROGRAM) {
		r = start_program(j, &program, &stdio, e);
	} else {
		r = launch_exec(&j->l, &program, &stdio, e);
		if (r == 0)
			jails_asked(j);
	}
	if (r < 0)
		return r;
	if (m->flags & JAIL_MAKE_PROGRAM)
		r = jails_keep_program(j, &stdio, e);
	if (r < 0) {
		jails_kill(j); /* what it would say is lost with its ends */
		launch_stdio_close(&stdio);
		return r;
	}
	give_stdio(c, &stdio);
	c->reply.jail = j->id;
	c->reply.exec = j->execs;
	c->reply.base_uid = j->base;
	c->reply.veil = j->veil;
	return 0;
}

static int op_signal(void *ctx, const struct jail_signal *m, struct err *e)
{
	struct jail *j;
	int r = find_live(ctx, m->jail, &j, e);
	if (r < 0)
		return r;
	if (m->exec < 1 || m->exec > j->execs)
		return err_set(e, -ENOENT, "jail %llu has no program %llu",
		        (unsigned long long)m->jail, (unsigned long long)m->exec);
	/* The holder of the master has set the new size; programs are told by this signal. */
	int sig = m->sig == JAIL_SIGNAL_RESIZE ? SIGWINCH : m->sig;
	return launch_signal(&j->l, m->exec, sig, e);
}

static int op_kill(void *ctx, uint64_t jail, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = jails_find(&d->jails, jail, &j, e);
	if (r == 0)
		jails_kill(j);
	return r;
}

static int op_worker(void *ctx, uint64_t jail, struct broker_call *c, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = jails_find(&d->jails, jail, &j, e);
	if (r < 0)
		return r;
	int fd = jails_worker(j, d->worker, e);
	if (fd < 0)
		return fd;
	c->fds[c->nfds++] = fd;
	c->reply.jail = jail;
	return 0;
}

static int op_release(void *ctx, uint64_t jail, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = jails_find(&d->jails, jail, &j, e);
	return r < 0 ? r : jails_release(j, e);
}

static int op_session_delete(void *ctx, const char *session, struct broker_call *c, struct err *e)
{
	struct daemon *d = ctx;
	if (session_in_use(d, session) || reaper_holds(&d->reaper, session))
		return err_set(e, -EBUSY, "session %s is in use", session);
	return deletes_begin(d, session, c->reply.head.req, e);
}

static int op_snapshot(
        void *ctx, const struct jail_snapshot_ask *m, struct broker_call *c, struct err *e)
{
	return snapshots_begin(ctx, m, c->reply.head.req, e);
}

static int op_doctor(void *ctx, struct broker_call *c, struct err *e)
{
	(void)e;
	const struct daemon *d = ctx;
	c->reply.layers = d->host.layers;
	c->reply.fallback = d->host.fallback;
	c->reply.selftest_us = d->host.selftest_us;
	(void)str_copy(c->reply.unproven, sizeof(c->reply.unproven), d->host.unproven);
	struct checkup now;
	checkup_read("/", d->host.layers & LAYER_BIT(LAYER_LIMIT_CPU), &now);
	memcpy(c->reply.check_state, now.state, sizeof(now.state));
	memcpy(c->reply.check_found, now.found, sizeof(now.found));
	for (int i = 0; i < LAYER_COUNT; i++) {
		(void)str_copy(c->reply.detail[i], sizeof(c->reply.detail[i]), d->host.detail[i]);
		(void)str_copy(c->reply.remedy[i], sizeof(c->reply.remedy[i]), d->host.remedy[i]);
	}
	return 0;
}

static int op_stats(void *ctx, uint64_t jail, struct broker_call *c, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = jails_find(&d->jails, jail, &j, e);
	if (r < 0)
		return r;
	jails_use(j, &c->reply);
	c->reply.jail = jail;
	return 0;
}

/* ---- between two runs ---- */

/* A former egress may still send for the run, and what clients started may have left something:
 * then the jail ends with its run. */
static int op_rest(void *ctx, uint64_t jail, struct broker_call *c, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = find_live(d, jail, &j, e);
	if (r < 0)
		return r;
	if (!j->run[0] || j->execs > 1 || j->exited)
		return err_set(e, -EBUSY, "jail %llu has or had more than the program of a run",
		        (unsigned long long)jail);
	for (int i = 0; i < EGRESS_PLACES; i++)
		if (service_running(&d->drains[i]))
			return err_set(e, -EBUSY, "a former egress finishes what is open");
	if (!j->resting && jails_rest(j, c->reply.head.req))
		return -EINPROGRESS;
	jails_use(j, &c->reply);
	c->reply.jail = jail;
	return 0;
}

static int op_claim(void *ctx, const struct jail_claim *m, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = find_live(d, m->jail, &j, e);
	if (r < 0)
		return r;
	int index = policy_find(d->policies->set, j->policy);
	if (!j->resting || j->rest_waits || !j->program || j->exited || index < 0 ||
	        strcmp(j->session, m->session) != 0)
		return err_set(e, -EPERM, "jail %llu does not wait for a run of that session",
		        (unsigned long long)m->jail);
	purses_told(&d->ledger, &m->purse, j->session, &d->policies->set->policies[index]);
	jails_claim(j, m);
	r = peers_tell_jail(d, j, e);
	if (r < 0)
		jails_kill(j);
	return r;
}

static int op_reload(void *ctx, struct broker_call *c, struct err *e)
{
	return reload_request(ctx, c->reply.head.req, e);
}

/* Root's word of now decides, and what the jail was made with: a listener of egress answers as the
 * jail's own way out, to whoever connects. */
static int op_socket(void *ctx, const struct jail_socket *m, struct broker_call *c, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = find_live(d, m->jail, &j, e);
	if (r < 0)
		return r;
	if (j->resting)
		return err_set(
		        e, -ESRCH, "jail %llu waits for another run", (unsigned long long)m->jail);
	int at = policy_find(d->policies->set, j->policy);
	const struct policy *p = at < 0 ? NULL : &d->policies->set->policies[at];
	if (!p || !policy_inbound(p, m->port))
		return err_set(e, -EACCES, "policy '%s' has no `ports: [%u]`", j->policy, m->port);
	if (net_ports_have(&j->l.kit->ports, m->port))
		return err_set(e, -EACCES, "port %u of jail %llu is agentbox-egress's", m->port,
		        (unsigned long long)j->id);
	int fd = net_connect(j->l.kit->netns, m->port, m->v6, e);
	if (fd < 0)
		return fd;
	c->fds[c->nfds++] = fd;
	c->reply.jail = j->id;
	return 0;
}

/* Egress says what has come of it; nobody waits here. */
static int op_hook(void *ctx, const struct jail_hook *m, struct broker_call *c, struct err *e)
{
	struct daemon *d = ctx;
	int body = take_fd(c->exec_fd);
	const struct daemon_config *config = &d->policies->set->config;
	bool command = m->hook != JAIL_HOOK_TRACES && config->webhooks[m->hook].nargs;
	return command ? hook_commands_begin(d, m, body, e) : peers_tell_hook(d, m, body, e);
}

static int op_object(void *ctx, const struct jail_object *m, struct broker_call *c, struct err *e)
{
	return peers_tell_object(ctx, m, take_fd(c->exec_fd), e);
}

/* ---- for the next supervisor ---- */

/* Those that are there: how many, or -errno and none. */
static int dup_stdio(const struct launch_stdio *s, int fds[3])
{
	const int kept[] = {s->in, s->out, s->err};
	int n = 0;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		int fd = kept[i] < 0 ? -1 : fd_dup(kept[i]);
		if (fd < 0 && kept[i] >= 0) {
			int r = -errno;
			while (n > 0)
				fd_close(fds[--n]);
			return r;
		}
		if (fd >= 0)
			fds[n++] = fd;
	}
	return n;
}

static void tell_found(struct daemon *d, const struct jail *j)
{
	struct jail_found m = {.head.type = JAIL_FOUND,
	        .jail = j->id,
	        .exec = j->program,
	        .flags = (j->program ? FOUND_EXEC : 0) | (j->exited ? FOUND_EXITED : 0) |
	                 (j->gone ? FOUND_GONE : 0) | (j->claimed ? FOUND_CLAIMED : 0),
	        .layers = j->l.layers,
	        .fallback = j->l.fallback,
	        .disk = (uint32_t)j->disk.method,
	        .limits_met = j->limits_met,
	        .disk_bytes = j->disk.bytes,
	        .disk_inodes = j->disk.inodes,
	        .disk_left = j->disk.left_bytes,
	        .age_ms = clock_mono_ms() - j->made_ms,
	        .gone = j->end,
	        .veil = j->veil};
	memcpy(m.run, j->run, sizeof(m.run));
	memcpy(m.session, j->session, sizeof(m.session));
	memcpy(m.policy, j->policy, sizeof(m.policy));
	if (j->exited)
		m.exited = peers_exited(j, &j->how);
	int fds[3], n = dup_stdio(&j->kept, fds);
	if (n < 0)
		log_err("jail %llu: its stdio: %s", (unsigned long long)j->id, strerror(-n));
	m.flags |= j->kept.in >= 0 ? FOUND_STDIN : 0;
	service_send(&d->supervisor, &m, sizeof(m), fds, n > 0 ? n : 0);
}

static int op_adopt(void *ctx, struct broker_call *c, struct err *e)
{
	struct daemon *d = ctx;
	(void)e;
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		const struct jail *j = d->jails.slots[i];
		if (j && j->run[0] && !j->orphaned)
			tell_found(d, j);
	}
	peers_tell_kept(d);
	c->reply.former = d->former;
	daemon_adopted(d);
	return 0;
}

/* The end we keep would hold the pipe open. */
static int op_stdin_end(void *ctx, uint64_t jail, struct err *e)
{
	struct jail *j;
	struct daemon *d = ctx;
	int r = jails_find(&d->jails, jail, &j, e);
	if (r == 0)
		fd_close(take_fd(j->kept.in));
	return r;
}

const struct broker_ops requests_ops = {
        .hello = op_hello,
        .make = op_make,
        .exec = op_exec,
        .signal = op_signal,
        .kill = op_kill,
        .worker = op_worker,
        .release = op_release,
        .session_delete = op_session_delete,
        .doctor = op_doctor,
        .stats = op_stats,
        .reload = op_reload,
        .adopt = op_adopt,
        .stdin_end = op_stdin_end,
        .socket = op_socket,
        .rest = op_rest,
        .claim = op_claim,
        .snapshot = op_snapshot,
        .hook = op_hook,
        .object = op_object,
};
