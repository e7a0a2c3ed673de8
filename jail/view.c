#include "jail/view.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/merge.h"
#include "jail/mounts.h"
#include "jail/userns.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

#define MNT       "/mnt/"
#define WORKSPACE "/workspace/"

static void add(struct view *v, int mount, const char *target, bool strict)
{
	assert(v->n < ENTER_MOUNTS);
	v->mounts[v->n++] = (struct enter_mount){.fd = mount, .target = target, .strict = strict};
}

static int own(struct view *v, int fd)
{
	assert(v->nowned < ENTER_MOUNTS);
	v->owned[v->nowned++] = fd;
	return fd;
}

static void allow(struct view *v, const char *path, enum landlock_may may, bool optional)
{
	assert(v->nrules < ENTER_RULES);
	v->rules[v->nrules++] =
	        (struct landlock_rule){.path = path, .may = may, .optional = optional};
}

void view_done(struct view *v)
{
	for (size_t i = 0; i < v->nowned; i++)
		fd_close(v->owned[i]);
	v->nowned = v->n = 0;
	overlay_done(&v->overlay);
}

/* ---- the session's directories and the agent ---- */

static int add_session(struct view *v, const struct kit *k, int dir, const int *ready,
        enum kit_mount instead, const char *target, struct err *e)
{
	if (dir < 0) {
		add(v, k->mounts[instead], target, false);
		return 0;
	}
	if (ready) {
		int r = mounts_finish(*ready, MOUNTS_NSD, k->idmap, e);
		if (r < 0)
			return err_wrap(e, "%s", target);
		add(v, *ready, target, false);
		return 0;
	}
	int mount = mounts_clone(dir, "", MOUNTS_NSD, k->idmap, e);
	if (mount < 0)
		return err_wrap(e, "%s", target);
	add(v, own(v, mount), target, false);
	return 0;
}

/* The workspace's own part, the kit's or the session's, and what it stands on. */
static int add_merged(struct view *v, const struct launch_spec *spec, struct err *e)
{
	const struct kit *k = spec->kit;
	struct merge m = {.lower = *spec->lower,
	        .upper = k->mounts[KIT_WORKSPACE],
	        .idmap = k->idmap,
	        .mntns = spec->root->mntns,
	        .id = k->base + ID_INNER_AGENT};
	int r = 0;
	if (spec->workspace < 0) {
		r = merge_prepare(m.upper, m.id, e);
	} else if (spec->session_mounts) {
		m.upper = spec->session_mounts[1];
		r = mounts_finish(m.upper, MOUNTS_NSD, k->idmap, e);
	} else {
		m.upper = mounts_clone(spec->workspace, "", MOUNTS_NSD, k->idmap, e);
		r = m.upper < 0 ? m.upper : 0;
	}
	int mount = r < 0 ? r : merge_mount(&m, e);
	if (spec->workspace >= 0 && !spec->session_mounts)
		fd_close(m.upper);
	if (mount < 0)
		return err_wrap(e, "/workspace");
	add(v, own(v, mount), "/workspace", false);
	return 0;
}

static int add_agent(struct view *v, int dir, struct err *e)
{
	if (dir < 0)
		return 0;
	int mount = mounts_clone(dir, "", MOUNTS_RO, -1, e);
	if (mount < 0)
		return err_wrap(e, "/opt/agent");
	add(v, own(v, mount), "/opt/agent", false);
	return 0;
}

/* ---- places for binds ---- */

static int open_below(int dir, const char *name, uint64_t flags)
{
	return fd_openat2(dir, name, O_PATH | O_NOFOLLOW | flags,
	        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* One directory; a new one belongs to `owner`.  Its O_PATH fd or -errno. */
static int make_dir(int at, const char *name, uint32_t owner, struct err *e)
{
	bool made = mkdirat(at, name, 0755) == 0;
	if (!made && errno != EEXIST)
		return err_errno(e, "place for a bind: %s", name);
	auto_close int fd = open_below(at, name, O_DIRECTORY);
	if (fd < 0)
		return err_set(e, fd, "place for a bind: %s: %s", name, strerror(-fd));
	if (made && fchownat(fd, "", owner, owner, AT_EMPTY_PATH) < 0)
		return err_errno(e, "place for a bind: owner of %s", name);
	return take_fd(fd);
}

static int make_file(int at, const char *name, uint32_t owner, struct err *e)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool made = fd >= 0;
	fd_close(fd);
	auto_close int place = open_below(at, name, 0);
	struct stat st;
	if (place < 0)
		return err_set(e, place, "place for a bind: %s: %s", name, strerror(-place));
	if (fstat(place, &st) < 0)
		return err_errno(e, "place for a bind: %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EEXIST, "place for a bind: %s is no regular file", name);
	if (made && fchownat(place, "", owner, owner, AT_EMPTY_PATH) < 0)
		return err_errno(e, "place for a bind: owner of %s", name);
	return 0;
}

/* mkdir -p below `top`, the last component as a file if the source is one. */
static int make_place(int top, const char *path, bool file, uint32_t owner, struct err *e)
{
	auto_close int at = fcntl(top, F_DUPFD_CLOEXEC, 0);
	if (at < 0)
		return err_errno(e, "place for a bind");
	for (const char *name = path; *name;) {
		size_t n = strcspn(name, "/");
		auto_free char *part = xstrndup(name, n);
		bool last = name[n] == '\0';
		if (!n || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
			return err_set(
			        e, -EINVAL, "place for a bind: '%s' is not normalised", path);
		if (last && file)
			return make_file(at, part, owner, e);
		int next = make_dir(at, part, owner, e);
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
		name += n + !last;
	}
	return 0;
}

/* ---- binds ---- */

/* A source that belongs to somebody shows as the agent's, and what the agent writes there is
 * theirs; host root's stays unmapped, as nobody's. */
static int clone_bind(
        const struct kit *k, const struct launch_bind *b, const struct stat *st, struct err *e)
{
	uint64_t attrs = b->writable ? MOUNTS_NSD : MOUNTS_RO;
	if (st->st_uid == 0)
		return mounts_clone(b->source, "", attrs, -1, e);
	uint32_t agent = k->base + ID_INNER_AGENT;
	const struct userns_map uids = {st->st_uid, agent, 1};
	const struct userns_map gids = {st->st_gid ? st->st_gid : st->st_uid, agent, 1};
	auto_close int idmap = userns_make(&uids, &gids, true, e);
	if (idmap < 0)
		return idmap;
	int mount = mounts_clone(b->source, "", attrs, idmap, e);
	if (mount < 0 && !b->writable) /* to read, what others may read is enough */
		mount = mounts_clone(b->source, "", attrs, -1, e);
	return mount;
}

static int place_of(const struct launch_spec *spec, int mnt, const struct launch_bind *b, bool file,
        struct err *e)
{
	if (strncmp(b->target, MNT, strlen(MNT)) == 0)
		return make_place(mnt, b->target + strlen(MNT), file, 0, e);
	if (strncmp(b->target, WORKSPACE, strlen(WORKSPACE)) != 0)
		return err_set(
		        e, -EINVAL, "bind target '%s' is not below /mnt or /workspace", b->target);
	if (spec->lower) /* a place in its own part would hide what it stands on */
		return err_set(e, -EOPNOTSUPP,
		        "the session stands on a snapshot (remedy: a target below /mnt)");
	bool stored = spec->workspace >= 0;
	return make_place(stored ? spec->workspace : spec->kit->mounts[KIT_WORKSPACE],
	        b->target + strlen(WORKSPACE), file,
	        (stored ? ID_STORE_BASE : spec->kit->base) + ID_INNER_AGENT, e);
}

static int add_bind(struct view *v, const struct launch_spec *spec, int mnt,
        const struct launch_bind *b, struct err *e)
{
	struct stat st;
	if (fstat(b->source, &st) < 0)
		return err_errno(e, "bind source");
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "bind source is neither a directory nor a file");
	int r = place_of(spec, mnt, b, S_ISREG(st.st_mode), e);
	int mount = r < 0 ? r : clone_bind(spec->kit, b, &st, e);
	if (mount < 0)
		return mount;
	add(v, own(v, mount), b->target, true);
	allow(v, b->target, b->writable ? LANDLOCK_OWN : LANDLOCK_RUN, false);
	return 0;
}

static int add_binds(struct view *v, const struct launch_spec *spec, struct err *e)
{
	if (spec->nbinds == 0)
		return 0;
	if (spec->nbinds > JAIL_BINDS)
		return err_set(e, -E2BIG, "more than %d binds", JAIL_BINDS);
	/* 256 inodes: eight targets of 256 bytes have at most that many components between them
	 * that anyone writes down. */
	static const char *const options[] = {
	        "size", "64k", "nr_inodes", "256", "mode", "0755", NULL};
	int mnt = mounts_new("tmpfs", MOUNTS_NSD, options, e);
	if (mnt < 0)
		return mnt;
	add(v, own(v, mnt), "/mnt", false);
	for (size_t i = 0; i < spec->nbinds; i++) {
		int r = add_bind(v, spec, mnt, &spec->binds[i], e);
		if (r < 0)
			return err_wrap(e, "bind on %s", spec->binds[i].target);
	}
	return mounts_restrict(mnt, MOUNT_ATTR_RDONLY, e);
}

/* ---- the same to Landlock ---- */

static void allow_all(struct view *v, const struct policy *p)
{
	static const struct landlock_rule every_jail[] = {
	        {"/", LANDLOCK_LIST, false},
	        {"/usr", LANDLOCK_RUN, true},
	        {"/bin", LANDLOCK_RUN, true}, /* a link on a merged-usr system, as the next six */
	        {"/sbin", LANDLOCK_RUN, true},
	        {"/lib", LANDLOCK_RUN, true},
	        {"/lib32", LANDLOCK_RUN, true},
	        {"/lib64", LANDLOCK_RUN, true},
	        {"/libx32", LANDLOCK_RUN, true},
	        {"/opt", LANDLOCK_RUN, false},
	        {"/etc", LANDLOCK_READ, false},
	        {"/proc", LANDLOCK_READ, false},
	        {"/dev", LANDLOCK_DEVICES, false},
	        {"/dev/shm", LANDLOCK_KEEP, false},
	        {"/run", LANDLOCK_KEEP, false},
	        {"/tmp", LANDLOCK_OWN, false},
	        {"/home/agent", LANDLOCK_OWN, false},
	        {"/workspace", LANDLOCK_OWN, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(every_jail); i++)
		allow(v, every_jail[i].path, every_jail[i].may, every_jail[i].optional);
	for (size_t i = 0; overlay_wanted(p) && overlay_tree(i); i++)
		allow(v, overlay_tree(i), LANDLOCK_OWN, true);
	for (uint32_t i = 0; i < p->nmounts; i++)
		allow(v, p->mounts[i].target, p->mounts[i].writable ? LANDLOCK_OWN : LANDLOCK_RUN,
		        p->mounts[i].optional);
}

int view_make(const struct launch_spec *spec, struct view *ret, struct err *e)
{
	const struct kit *k = spec->kit;
	struct view v = {.n = 0, .nowned = 0};
	allow_all(&v, spec->policy);
	int r = overlay_make(spec->policy, k, &v.overlay, e);
	if (r < 0)
		return r;
	const int *ready = spec->session_mounts;
	r = add_session(&v, k, spec->home, ready, KIT_HOME, "/home/agent", e);
	if (r == 0 && spec->lower)
		r = add_merged(&v, spec, e);
	else if (r == 0)
		r = add_session(&v, k, spec->workspace, ready ? ready + 1 : NULL, KIT_WORKSPACE,
		        "/workspace", e);
	if (r == 0)
		r = add_agent(&v, spec->agent, e);
	if (r == 0)
		r = add_binds(&v, spec, e);
	if (r < 0) {
		view_done(&v);
		return r;
	}
	*ret = v;
	return 0;
}
