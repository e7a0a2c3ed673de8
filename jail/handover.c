/*
 * Theory of operation: a head, then records.  A record is one struct, as its
 * table of members says: for each member its name, its size and its bytes.
 * A reader accepts a record whose members are those of its own table, no one
 * less, no one more, each of the same size; order does not matter.  What changes
 * its meaning and not its name or size needs another VERSION.
 */
#include "jail/handover.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/daemon.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { VERSION = 1, NAME_BYTES = 24 };
/* A jail is 4 KiB, the leases 80 KiB. */
enum { BYTES_MAX = 16 << 20 };

enum kind { BYTES, FDS };

struct member {
	char name[NAME_BYTES];
	size_t at, size;
	enum kind kind;
};

#define MEMBER_(type, member, kind)                                                                \
	{                                                                                          \
#member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member),     \
		        kind                                                                       \
	}
#define M(type, member) MEMBER_(type, member, BYTES)
#define F(type, member) MEMBER_(type, member, FDS) /* one int or more; -1: none */

static const struct member of_daemon[] = {
        F(daemon, listener.fd),
        M(daemon, listener.ino),
        M(daemon, listener.dev),
        M(daemon, listener.ctime),
        F(daemon, remote.fd),
        M(daemon, remote.address),
        F(daemon, remote.pair),
        F(daemon, state.dir),
        F(daemon, state.lock),
        F(daemon, state.sessions),
        F(daemon, state.trash),
        F(daemon, state.snapshots),
        F(daemon, leases.fd),
        M(daemon, leases.next),
        M(daemon, leases.count),
        M(daemon, leases.held),
        F(daemon, tree.dirfd),
        F(daemon, tree.workers),
        M(daemon, tree.controllers),
        M(daemon, tree.path),
        M(daemon, tree.missing),
        M(daemon, tree.io_device),
        M(daemon, generation),
        F(daemon, secrets),
        F(daemon, former_policies),
        M(daemon, closer.pid),
        M(daemon, pool.kept),
        M(daemon, pool.nkept),
        M(daemon, pool.cgroups),
        M(daemon, pool.serial),
        M(daemon, jails.serial),
        M(daemon, former),
};

static const struct member of_service[] = {
        M(service, child.pid),
        F(service, child.pidfd),
        F(service, sock),
        M(service, started_ms),
        M(service, file),
};

static const struct member of_jail[] = {
        M(jail, id),
        M(jail, state),
        M(jail, killed),
        M(jail, orphaned),
        M(jail, reaped),
        M(jail, l.pid),
        F(jail, l.pidfd),
        F(jail, l.control),
        M(jail, user),
        M(jail, budget),
        M(jail, outlets),
        M(jail, veil),
        M(jail, keeps),
        M(jail, tokens),
        M(jail, spent),
        M(jail, l.policy_flags),
        M(jail, l.nproc),
        M(jail, l.layers),
        M(jail, l.fallback),
        M(jail, l.make_us),
        M(jail, l.rss_peak_bytes),
        M(jail, l.cpu_us),
        M(jail, base),
        M(jail, policy),
        M(jail, flags),
        M(jail, session),
        M(jail, run),
        M(jail, program),
        M(jail, resting),
        M(jail, claimed),
        F(jail, kept),
        M(jail, exited),
        M(jail, gone),
        M(jail, how),
        M(jail, end),
        M(jail, made_ms),
        M(jail, limits_met),
        M(jail, execs),
        M(jail, exits),
        M(jail, egress_bytes),
        M(jail, has_egress),
        M(jail, events_lost),
        M(jail, disk.method),
        F(jail, disk.workspace),
        F(jail, disk.home),
        F(jail, disk.tree),
        M(jail, disk.memory), /* the kit's, and the state's: under the same numbers */
        M(jail, disk.state),
        M(jail, disk.project),
        M(jail, disk.bytes),
        M(jail, disk.inodes),
        M(jail, disk.used_bytes),
        M(jail, disk.peak_bytes),
        M(jail, disk.peak_inodes),
        M(jail, disk.left_bytes),
        M(jail, disk.above),
        M(jail, disk.told),
};

static const struct member of_kit[] = {
        M(kit, base),
        F(kit, userns),
        F(kit, idmap),
        F(kit, netns),
        F(kit, ipcns),
        F(kit, utsns),
        F(kit, mntns),
        F(kit, listeners),
        F(kit, ports.fd),
        M(kit, ports.n),
        M(kit, ports.port),
        F(kit, authority),
        F(kit, mounts),
        M(kit, limits),
        F(kit, cgroup.dirfd),
        F(kit, cgroup.events),
        M(kit, cgroup.name),
};

static const struct member of_event[] = {
        M(kept_event, m),
};

enum record { DAEMON, EGRESS, DRAIN, JAIL, KIT, EVENT, RECORDS };

static const struct {
	const char *name;
	const struct member *members;
	uint32_t n;
} records[RECORDS] = {
        [DAEMON] = {"agentboxd", of_daemon, ARRAY_LEN(of_daemon)},
        [EGRESS] = {"egress", of_service, ARRAY_LEN(of_service)},
        [DRAIN] = {"former egress", of_service, ARRAY_LEN(of_service)},
        [EVENT] = {"event", of_event, ARRAY_LEN(of_event)},
        [JAIL] = {"jail", of_jail, ARRAY_LEN(of_jail)},
        [KIT] = {"kit", of_kit, ARRAY_LEN(of_kit)}, /* of the jail before it */
};

/* ---- the bytes ---- */

static const char magic[8] = "ABXhand";

struct head {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of the whole */
};

struct record_head {
	uint32_t record; /* enum record */
	uint32_t members;
};

struct member_head {
	char name[NAME_BYTES];
	uint32_t size;
	uint32_t pad;
};

/* ---- all that is carried ---- */

typedef void visit_fn(void *ctx, enum record record, const void *what);

static void visit(const struct daemon *d, visit_fn *fn, void *ctx)
{
	fn(ctx, DAEMON, d);
	if (service_running(&d->egress))
		fn(ctx, EGRESS, &d->egress);
	for (int i = 0; i < EGRESS_PLACES; i++)
		if (service_running(&d->drains[i]))
			fn(ctx, DRAIN, &d->drains[i]);
	list_for_each (k, &d->events, struct kept_event, link)
		fn(ctx, EVENT, k);
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		const struct jail *j = d->jails.slots[i];
		if (!j)
			continue;
		fn(ctx, JAIL, j);
		fn(ctx, KIT, j->l.kit);
	}
}

static void put(void *ctx, enum record record, const void *what)
{
	struct buf *b = ctx;
	const struct record_head head = {record, records[record].n};
	(void)buf_put(b, &head, sizeof(head)); /* the buffer remembers that it failed */
	for (uint32_t i = 0; i < records[record].n; i++) {
		const struct member *m = &records[record].members[i];
		struct member_head h = {.size = (uint32_t)m->size};
		memcpy(h.name, m->name, sizeof(h.name));
		(void)buf_put(b, &h, sizeof(h));
		(void)buf_put(b, (const char *)what + m->at, m->size);
	}
}

int handover_write(const struct daemon *d, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(BYTES_MAX);
	struct head head = {.version = VERSION};
	memcpy(head.magic, magic, sizeof(head.magic));
	(void)buf_put(&b, &head, sizeof(head));
	visit(d, put, &b);
	if (b.failed)
		return err_set(e, b.failed, "what is carried over: %s", strerror(-b.failed));
	head.size = (uint32_t)b.len;
	memcpy(b.p, &head, sizeof(head));
	int fd = fd_sealed_memfd("handover", b.p, b.len);
	return fd < 0 ? err_set(e, fd, "what is carried over: %s", strerror(-fd)) : fd;
}

static void set_cloexec(void *ctx, enum record record, const void *what)
{
	const int *flag = ctx;
	for (uint32_t i = 0; i < records[record].n; i++) {
		const struct member *m = &records[record].members[i];
		const int *fds = (const void *)((const char *)what + m->at);
		for (size_t k = 0; m->kind == FDS && k < m->size / sizeof(int); k++)
			if (fds[k] >= 0)
				(void)fcntl(fds[k], F_SETFD, *flag); /* open: cannot fail */
	}
}

void handover_keep(const struct daemon *d, bool keep)
{
	int flag = keep ? 0 : FD_CLOEXEC;
	visit(d, set_cloexec, &flag);
}

/* ---- reading ---- */

struct in {
	const char *p; /* what is left */
	size_t n;
};

static int take_bytes(struct in *in, void *to, size_t n, struct err *e)
{
	if (in->n < n)
		return err_set(e, -EBADMSG, "what is carried over is cut short");
	if (to)
		memcpy(to, in->p, n);
	in->p += n;
	in->n -= n;
	return 0;
}

static int find_member(enum record record, const struct member_head *h, struct err *e)
{
	for (uint32_t i = 0; i < records[record].n; i++) {
		const struct member *m = &records[record].members[i];
		if (strncmp(m->name, h->name, sizeof(h->name)) == 0 && m->size == h->size)
			return (int)i;
	}
	return err_set(e, -EPROTO, "this program does not know '%.24s' of %u bytes (%s)", h->name,
	        h->size, records[record].name);
}

static int check_fds(const struct member *m, const void *where, struct err *e)
{
	const int *fds = where;
	for (size_t k = 0; m->kind == FDS && k < m->size / sizeof(int); k++)
		if (fds[k] != -1 && (fds[k] < 3 || fcntl(fds[k], F_GETFD) < 0))
			return err_set(e, -EBADF, "%s: descriptor %d is not open", m->name, fds[k]);
	return 0;
}

/* `to` NULL: only looked at. */
static int take_record(struct in *in, enum record record, uint32_t n, void *to, struct err *e)
{
	uint64_t seen = 0;
	_Static_assert(ARRAY_LEN(of_jail) <= 64 && ARRAY_LEN(of_daemon) <= 64, "bits of seen");
	for (uint32_t i = 0; i < n; i++) {
		struct member_head h = {0};
		int r = take_bytes(in, &h, sizeof(h), e);
		int at = r < 0 ? r : find_member(record, &h, e);
		if (at < 0)
			return at;
		const struct member *m = &records[record].members[at];
		void *where = to ? (char *)to + m->at : NULL;
		seen |= (uint64_t)1 << at;
		r = take_bytes(in, where, m->size, e);
		if (r == 0 && where)
			r = check_fds(m, where, e);
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < records[record].n; i++)
		if (!(seen >> i & 1))
			return err_set(e, -EPROTO, "this program wants '%s' (%s), which is missing",
			        records[record].members[i].name, records[record].name);
	return 0;
}

static int take_head(struct in *in, struct err *e)
{
	struct head head = {0};
	size_t all = in->n;
	int r = take_bytes(in, &head, sizeof(head), e);
	if (r < 0)
		return r;
	if (memcmp(head.magic, magic, sizeof(magic)) != 0)
		return err_set(e, -EBADMSG, "not what an agentboxd leaves");
	if (head.version != VERSION)
		return err_set(e, -EPROTO,
		        "it is carried over in version %u, this program knows version %d",
		        head.version, VERSION);
	return head.size == all ? 0 : err_set(e, -EBADMSG, "what is carried over is cut short");
}

/* Both texts that others compare, and the slot. */
static int check_jail(const struct daemon *d, const struct jail *j, struct err *e)
{
	bool text = memchr(j->policy, '\0', sizeof(j->policy)) &&
	            memchr(j->session, '\0', sizeof(j->session)) &&
	            memchr(j->run, '\0', sizeof(j->run)) &&
	            memchr(j->l.kit->cgroup.name, '\0', sizeof(j->l.kit->cgroup.name));
	if (!text || j->l.kit->ports.n > POLICY_PORTS || j->state > JAILS_DEAD ||
	        d->jails.slots[j->id % LIMIT_JAILS])
		return err_set(e, -EBADMSG, "jail %llu is damaged", (unsigned long long)j->id);
	return 0;
}

/* The jail's record is followed by its kit's. */
static int take_jail(struct in *in, uint32_t n, struct daemon *d, struct err *e)
{
	struct jail *j = d ? jails_blank(&d->jails) : NULL;
	struct kit *k = d ? kit_blank(&d->tree, &d->closer) : NULL;
	int r = take_record(in, JAIL, n, j, e);
	struct record_head h = {0};
	if (r == 0)
		r = take_bytes(in, &h, sizeof(h), e);
	if (r == 0 && h.record != KIT)
		r = err_set(e, -EBADMSG, "a jail without its kit");
	if (r == 0)
		r = take_record(in, KIT, h.members, k, e);
	if (!d)
		return r;
	j->l.stdio = (struct launch_stdio)LAUNCH_STDIO_NONE;
	j->l.kit = k;
	if (r == 0)
		r = check_jail(d, j, e);
	if (r < 0) { /* the process ends, and its descriptors with it */
		free(k);
		free(j);
		return r;
	}
	jails_resume(j);
	return 0;
}

static int take_drain(struct in *in, uint32_t n, struct daemon *d, struct err *e)
{
	for (int i = 0; d && i < EGRESS_PLACES; i++)
		if (!service_running(&d->drains[i]))
			return take_record(in, DRAIN, n, &d->drains[i], e);
	return d ? err_set(e, -EPROTO, "more than %d former egress", EGRESS_PLACES)
	         : take_record(in, DRAIN, n, NULL, e);
}

static int take_event(struct in *in, uint32_t n, struct daemon *d, struct err *e)
{
	struct kept_event k = {.link = {NULL, NULL}};
	int r = take_record(in, EVENT, n, &k, e);
	if (r == 0 && d)
		peers_keep_event(d, &k.m);
	return r;
}

static int take_all(struct in *in, struct daemon *d, struct err *e)
{
	int r = take_head(in, e);
	while (r == 0 && in->n > 0) {
		struct record_head h = {0};
		r = take_bytes(in, &h, sizeof(h), e);
		if (r < 0)
			return r;
		if (h.record == JAIL)
			r = take_jail(in, h.members, d, e);
		else if (h.record == DAEMON)
			r = take_record(in, DAEMON, h.members, d, e);
		else if (h.record == EGRESS)
			r = take_record(in, EGRESS, h.members, d ? &d->egress : NULL, e);
		else if (h.record == DRAIN)
			r = take_drain(in, h.members, d, e);
		else if (h.record == EVENT)
			r = take_event(in, h.members, d, e);
		else
			r = err_set(e, -EPROTO, "this program does not know record %u", h.record);
	}
	return r;
}

int handover_read(int memfd, struct daemon *d, struct err *e)
{
	struct stat st;
	if (fstat(memfd, &st) < 0)
		return err_errno(e, "what is carried over");
	if (!S_ISREG(st.st_mode) || st.st_size > BYTES_MAX)
		return err_set(e, -EBADMSG, "not what an agentboxd leaves");
	size_t n = (size_t)st.st_size;
	auto_free char *bytes = xcalloc(1, n + 1);
	if (fd_pread_full(memfd, bytes, n, 0) != (ssize_t)n)
		return err_set(e, -EIO, "what is carried over cannot be read");
	struct in in = {bytes, n};
	return take_all(&in, d, e);
}

int handover_check(int memfd, struct err *e)
{
	return handover_read(memfd, NULL, e);
}
