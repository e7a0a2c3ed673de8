/*
 * Theory of operation: two locks.  The directory of all layers is held, shared, from the look at a
 * name to the link that says who stands on it, and alone by who takes a name or a layer away: what
 * was looked at is still so when it is acted on.  A layer in the making is held by who makes it,
 * and by nobody when that was killed.
 */
#include "jail/layers.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "proto/msg.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE "base"
enum {
	STORE_ID = ID_STORE_BASE + ID_INNER_AGENT,
	LAYER_DIGITS = 32,
	/* A deeper tree is not taken: each level is a descriptor of who counts it. */
	DEPTH_MAX = 512,
	LISTED_MAX = 4096,
};
_Static_assert((int)LAYER_DIGITS < (int)SESSION_NAME, "a layer's name has room");

/* ---- names and locks ---- */

/* An open file of its own, so that the lock is this process's.  fd (owned). */
static int lock_all(const struct state *s, int how, struct err *e)
{
	auto_close int fd = openat(s->snapshots, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, how) < 0)
		return err_errno(e, "snapshots");
	return take_fd(fd);
}

static int read_link(int dir, const char *name, char ret[SESSION_NAME], struct err *e)
{
	char to[SESSION_NAME + 1];
	ssize_t n = readlinkat(dir, name, to, sizeof(to));
	if (n < 0)
		return err_errno(e, "%s", name);
	to[n < SESSION_NAME ? n : 0] = '\0';
	if (n != LAYER_DIGITS || strspn(to, "0123456789abcdef") != LAYER_DIGITS)
		return err_set(e, -EPERM, "%s: its link is none of ours", name);
	(void)str_copy(ret, SESSION_NAME, to);
	return 0;
}

static int layer_of(const struct state *s, const char *name, char ret[SESSION_NAME], struct err *e)
{
	int r = read_link(s->snapshots, name, ret, e);
	return r == -ENOENT ? err_set(e, r,
	                              "there is no snapshot '%s' (remedy: abctl snapshot create "
	                              "%s --from ...)",
	                              name, name)
	       : r < 0      ? err_wrap(e, "snapshot '%s'", name)
	                    : 0;
}

static int open_part(const struct state *s, const char *layer, const char *part, int flags)
{
	char path[SESSION_NAME + 8];
	(void)snprintf(path, sizeof(path), "%s/%s", layer, part);
	return openat(s->snapshots, path, flags | O_NOFOLLOW | O_CLOEXEC);
}

/* A link is replaced as a whole, by a name of its own for each layer. */
static int put_link(int dir, const char *layer, const char *name, unsigned flags, struct err *e)
{
	char made[SESSION_NAME + 8];
	(void)snprintf(made, sizeof(made), ".%s", layer);
	if (unlinkat(dir, made, 0) < 0 && errno != ENOENT)
		return err_errno(e, "%s", made);
	if (symlinkat(layer, dir, made) < 0)
		return err_errno(e, "%s", made);
	if (renameat2(dir, made, dir, name, flags) < 0) {
		int r = err_errno(e, "naming %s", name);
		(void)unlinkat(dir, made, 0);
		return r;
	}
	return 0;
}

/* ---- of a session ---- */

bool layers_has(int dir)
{
	return faccessat(dir, BASE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int layers_choose(const struct state *s, int dir, const char *name, struct err *e)
{
	char layer[SESSION_NAME];
	auto_close int lock = lock_all(s, LOCK_SH, e);
	if (lock < 0)
		return lock;
	int r = layer_of(s, name, layer, e);
	if (r == 0)
		r = put_link(dir, layer, BASE, 0, e);
	/* What is written above it is worth nothing without it, whatever the disk takes first. */
	if (r == 0 && (fsync(dir) < 0 || fsync(s->sessions) < 0))
		r = err_errno(e, "sync of its link");
	return r;
}

int layers_open(const struct state *s, int dir, int *ret, struct err *e)
{
	char layer[SESSION_NAME];
	*ret = -1;
	int r = read_link(dir, BASE, layer, e);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*ret = open_part(s, layer, "tree", O_RDONLY | O_DIRECTORY);
	return *ret < 0 ? err_errno(e, "the snapshot that it stands on") : 0;
}

/* ---- who stands on what ---- */

struct uses {
	char (*layers)[SESSION_NAME]; /* owned; of sessions, in the order of `sessions` */
	char (*sessions)[ID_MAX];     /* owned; "" until its name is found */
	char (*dirs)[SESSION_NAME];   /* owned */
	size_t n, room;
};

static void uses_done(struct uses *u)
{
	free(u->layers);
	free(u->sessions);
	free(u->dirs);
}
#define auto_uses __attribute__((cleanup(uses_done)))

static DIR *open_list(int dir, struct err *e)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		(void)err_errno(e, "reading a directory");
		fd_close(fd);
	}
	return d;
}

static int add_use(struct uses *u, int sessions, const char *name, struct err *e)
{
	char path[SESSION_NAME + 8], layer[SESSION_NAME];
	(void)snprintf(path, sizeof(path), "%.*s/" BASE, SESSION_NAME - 1, name);
	int r = read_link(sessions, path, layer, e);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	if (u->n == u->room) {
		u->room = u->room ? u->room * 2 : 64;
		u->layers = xrealloc(u->layers, u->room, sizeof(*u->layers));
		u->sessions = xrealloc(u->sessions, u->room, sizeof(*u->sessions));
		u->dirs = xrealloc(u->dirs, u->room, sizeof(*u->dirs));
	}
	memcpy(u->layers[u->n], layer, sizeof(layer));
	(void)str_copy(u->dirs[u->n], SESSION_NAME, name);
	u->sessions[u->n++][0] = '\0';
	return 0;
}

/* Links SESSION -> directory beside it. */
static void name_uses(struct uses *u, const struct state *s, DIR *d)
{
	rewinddir(d);
	for (struct dirent *at = readdir(d); at && u->n > 0; at = readdir(d)) {
		char to[SESSION_NAME];
		if (at->d_type != DT_LNK && at->d_type != DT_UNKNOWN)
			continue;
		if (read_link(s->sessions, at->d_name, to, NULL) < 0)
			continue;
		for (size_t i = 0; i < u->n; i++)
			if (strcmp(u->dirs[i], to) == 0)
				(void)str_copy(u->sessions[i], ID_MAX, at->d_name);
	}
}

static int find_uses(const struct state *s, bool names, struct uses *ret, struct err *e)
{
	DIR *d = open_list(s->sessions, e);
	if (!d)
		return e->code;
	int r = 0;
	errno = 0;
	for (struct dirent *at = readdir(d); at && r == 0; at = readdir(d)) {
		if (at->d_name[0] != '.' && at->d_type != DT_LNK)
			r = add_use(ret, s->sessions, at->d_name, e);
		errno = 0;
	}
	if (r == 0 && errno)
		r = err_errno(e, "reading sessions");
	if (r == 0 && names)
		name_uses(ret, s, d);
	closedir(d);
	return r;
}

static uint32_t count_uses(const struct uses *u, const char *layer)
{
	uint32_t n = 0;
	for (size_t i = 0; i < u->n; i++)
		n += strcmp(u->layers[i], layer) == 0;
	return n;
}

/* ---- making one ---- */

void layers_new_done(struct layers_new *n)
{
	fd_close(take_fd(n->tree));
	fd_close(take_fd(n->dir));
}

int layers_free_name(const struct state *s, const char *name, bool replace, struct err *e)
{
	if (replace || faccessat(s->snapshots, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return err_set(e, -EEXIST, "there is a snapshot '%s' already (remedy: --force)", name);
}

int layers_begin(const struct state *s, struct layers_new *ret, struct err *e)
{
	unsigned char bytes[LAYER_DIGITS / 2];
	auto_layers_new struct layers_new n = LAYERS_NEW_NONE;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_errno(e, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(n.layer + 2 * i, 3, "%02x", bytes[i]);
	/* A sweep between these steps would take it. */
	auto_close int lock = lock_all(s, LOCK_SH, e);
	if (lock < 0)
		return lock;
	if (mkdirat(s->snapshots, n.layer, 0700) < 0)
		return err_errno(e, "directory of the snapshot");
	n.dir = open_part(s, n.layer, "", O_RDONLY | O_DIRECTORY);
	if (n.dir < 0 || flock(n.dir, LOCK_EX) < 0 || mkdirat(n.dir, "tree", 0700) < 0)
		return err_errno(e, "directory of the snapshot");
	n.tree = openat(n.dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (n.tree < 0 || fchown(n.tree, STORE_ID, STORE_ID) < 0)
		return err_errno(e, "directory of the snapshot");
	*ret = n;
	ret->dir = take_fd(n.dir);
	ret->tree = take_fd(n.tree);
	return 0;
}

static int count_dir(int at, const char *name, int depth, struct jail_snapshot *f, struct err *e)
{
	if (depth == DEPTH_MAX)
		return err_set(e, -ELOOP, "more than %d levels of directories", DEPTH_MAX);
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = err_errno(e, "reading the snapshot");
		fd_close(fd);
		return r;
	}
	int r = 0;
	errno = 0;
	for (struct dirent *it = readdir(d); it && r == 0; it = readdir(d)) {
		struct stat st;
		if (strcmp(it->d_name, ".") == 0 || strcmp(it->d_name, "..") == 0)
			continue;
		if (fstatat(dirfd(d), it->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			r = err_errno(e, "reading the snapshot");
			break;
		}
		f->files++;
		bool dir = S_ISDIR(st.st_mode);
		f->bytes += (uint64_t)st.st_blocks * 512 / (dir || !st.st_nlink ? 1 : st.st_nlink);
		if (dir)
			r = count_dir(dirfd(d), it->d_name, depth + 1, f, e);
		errno = 0;
	}
	if (r == 0 && errno)
		r = err_errno(e, "reading the snapshot");
	closedir(d);
	return r;
}

static int put_meta(const struct layers_new *n, const struct jail_snapshot *f, struct err *e)
{
	auto_close int fd = openat(n->dir, "meta", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, "meta of the snapshot");
	int r = fd_write_all(fd, f, sizeof(*f));
	return r < 0 ? err_set(e, r, "meta of the snapshot: %s", strerror(-r)) : 0;
}

int layers_land(const struct state *s, const struct layers_new *n, struct jail_snapshot *facts,
        bool replace, struct err *e)
{
	facts->created_ms = clock_wall_ms();
	int r = count_dir(n->tree, ".", 0, facts, e);
	if (r == 0)
		r = put_meta(n, facts, e);
	if (r < 0)
		return r;
	/* Its files, its meta and their directories. */
	if (syncfs(n->tree) < 0)
		return err_errno(e, "the snapshot's files");
	auto_close int lock = lock_all(s, LOCK_EX, e);
	if (lock < 0)
		return lock;
	r = put_link(s->snapshots, n->layer, facts->name, replace ? 0 : RENAME_NOREPLACE, e);
	if (r == -EEXIST)
		return layers_free_name(s, facts->name, false, e);
	return r == 0 && fsync(s->snapshots) < 0 ? err_errno(e, "%s", facts->name) : r;
}

/* ---- taking away ---- */

static int busy(const char *name, const char *layer, const struct uses *u, struct err *e)
{
	char who[160] = "";
	size_t n = 0;
	uint32_t count = count_uses(u, layer);
	for (size_t i = 0; i < u->n && n + ID_MAX < sizeof(who); i++)
		if (strcmp(u->layers[i], layer) == 0)
			n += (size_t)snprintf(who + n, sizeof(who) - n, "%s%s", n ? ", " : "",
			        u->sessions[i][0] ? u->sessions[i] : "one that is being made");
	return err_set(e, -EBUSY,
	        "snapshot '%s' is in use by %u session%s: %s (remedy: abctl session rm, or leave "
	        "it: it is stored once)",
	        name, count, count == 1 ? "" : "s", who);
}

int layers_remove(const struct state *s, const char *name, struct err *e)
{
	char layer[SESSION_NAME];
	auto_uses struct uses u = {.n = 0};
	auto_close int lock = lock_all(s, LOCK_EX, e);
	if (lock < 0)
		return lock;
	int r = layer_of(s, name, layer, e);
	if (r == 0)
		r = find_uses(s, true, &u, e);
	if (r < 0)
		return r;
	if (count_uses(&u, layer))
		return busy(name, layer, &u, e);
	if (unlinkat(s->snapshots, name, 0) < 0 || fsync(s->snapshots) < 0)
		return err_errno(e, "snapshot '%s'", name);
	r = trash_put(s, s->snapshots, layer);
	return r < 0 && r != -ENOENT ? err_set(e, r, "snapshot '%s': %s", name, strerror(-r)) : 0;
}

/* ---- looking at all ---- */

struct listed {
	char layer[SESSION_NAME];
	char name[NAME_MAX_LEN]; /* "": a layer without one */
};

struct listing {
	struct listed *all; /* owned */
	size_t n, room;
};

static struct listed *listing_add(struct listing *l)
{
	if (l->n == l->room) {
		l->room = l->room ? l->room * 2 : 64;
		l->all = xrealloc(l->all, l->room, sizeof(*l->all));
	}
	l->all[l->n] = (struct listed){.layer = ""};
	return &l->all[l->n++];
}

/* What cannot be read is not left out: a sweep would take what has a name. */
static int add_name(const struct state *s, const char *name, struct listing *l, struct err *e)
{
	char layer[SESSION_NAME];
	int r = name_valid(name) ? read_link(s->snapshots, name, layer, e) : -EINVAL;
	if (r == -EINVAL || r == -EPERM || r == -ENOENT) /* no link; none of ours; gone */
		return 0;
	if (r < 0)
		return r;
	struct listed *x = listing_add(l);
	memcpy(x->layer, layer, sizeof(layer));
	(void)str_copy(x->name, sizeof(x->name), name);
	return 0;
}

static int read_names(const struct state *s, struct listing *l, struct err *e)
{
	DIR *d = open_list(s->snapshots, e);
	if (!d)
		return e->code;
	int r = 0;
	errno = 0;
	for (struct dirent *at = readdir(d); at && r == 0; at = readdir(d)) {
		r = add_name(s, at->d_name, l, e);
		errno = 0;
	}
	if (r == 0 && errno)
		r = err_errno(e, "reading snapshots");
	closedir(d);
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

/* 1: of a later agentbox, whose snapshots stay but are not shown. */
static int read_meta(
        const struct state *s, const struct listed *x, struct jail_snapshot *ret, struct err *e)
{
	auto_close int fd = open_part(s, x->layer, "meta", O_RDONLY);
	if (fd < 0)
		return err_errno(e, "snapshot '%s'", x->name);
	ssize_t n = fd_read_full(fd, ret, sizeof(*ret));
	if (n < 0)
		return err_set(e, (int)n, "snapshot '%s': %s", x->name, strerror((int)-n));
	if (n != (ssize_t)sizeof(*ret) || ret->version != JAIL_SNAPSHOT_VERSION)
		return 1;
	(void)str_copy(ret->name, sizeof(ret->name), x->name);
	return 0;
}

static void fill_users(struct jail_snapshot *to, const struct uses *u, const char *layer)
{
	size_t n = 0;
	to->users = count_uses(u, layer);
	memset(to->user, 0, sizeof(to->user));
	for (size_t i = 0; i < u->n && n < ARRAY_LEN(to->user); i++)
		if (strcmp(u->layers[i], layer) == 0 && u->sessions[i][0])
			memcpy(to->user[n++], u->sessions[i], ID_MAX);
}

static int write_list(const struct state *s, const struct listing *l, const char *name,
        const struct uses *u, int fd, struct err *e)
{
	size_t told = 0;
	for (size_t i = 0; i < l->n && told < LISTED_MAX; i++) {
		struct jail_snapshot x;
		if (name[0] && strcmp(name, l->all[i].name) != 0)
			continue;
		int r = read_meta(s, &l->all[i], &x, e);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		fill_users(&x, u, l->all[i].layer);
		r = fd_write_all(fd, &x, sizeof(x));
		if (r < 0)
			return err_set(e, r, "list of snapshots: %s", strerror(-r));
		told++;
	}
	return 0;
}

int layers_list(const struct state *s, const char *name, struct err *e)
{
	auto_uses struct uses u = {.n = 0};
	struct listing l = {.n = 0};
	auto_close int fd = memfd_create("snapshots", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_errno(e, "memfd");
	auto_close int lock = lock_all(s, LOCK_SH, e);
	int r = lock < 0 ? lock : read_names(s, &l, e);
	if (r == 0)
		r = find_uses(s, true, &u, e);
	if (r == 0 && l.n > 1)
		qsort(l.all, l.n, sizeof(*l.all), by_name);
	if (r == 0)
		r = write_list(s, &l, name, &u, fd, e);
	free(l.all);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		r = err_errno(e, "memfd");
	return r < 0 ? r : take_fd(fd);
}

/* ---- left-overs ---- */

static bool named(const struct listing *l, const char *layer)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->all[i].layer, layer) == 0)
			return true;
	return false;
}

static int sweep_one(const struct state *s, const struct uses *u, const char *layer,
        struct layers_left *left, struct err *e)
{
	if (count_uses(u, layer)) {
		left->used++;
		return 0;
	}
	auto_close int dir = open_part(s, layer, "", O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return err_errno(e, "%s", layer);
	if (flock(dir, LOCK_EX | LOCK_NB) < 0) {
		left->locked++;
		return errno == EWOULDBLOCK ? 0 : err_errno(e, "%s", layer);
	}
	int r = trash_put(s, s->snapshots, layer);
	return r < 0 ? err_set(e, r, "%s: %s", layer, strerror(-r)) : 0;
}

static bool is_layer(const struct dirent *at)
{
	return strlen(at->d_name) == LAYER_DIGITS &&
	       strspn(at->d_name, "0123456789abcdef") == LAYER_DIGITS && at->d_type != DT_LNK;
}

static int sweep_all(const struct state *s, const struct listing *names, const struct uses *u,
        struct layers_left *left, struct err *e)
{
	DIR *d = open_list(s->snapshots, e);
	if (!d)
		return e->code;
	int r = 0;
	for (struct dirent *at = readdir(d); at && r == 0; at = readdir(d)) {
		if (at->d_name[0] == '.' && strlen(at->d_name) == LAYER_DIGITS + 1)
			(void)unlinkat(s->snapshots, at->d_name, 0); /* a link without a name */
		else if (is_layer(at) && !named(names, at->d_name))
			r = sweep_one(s, u, at->d_name, left, e);
	}
	closedir(d);
	return r;
}

int layers_sweep(const struct state *s, struct layers_left *ret, struct err *e)
{
	auto_uses struct uses u = {.n = 0};
	struct listing names = {.n = 0};
	*ret = (struct layers_left){.used = 0};
	auto_close int lock = lock_all(s, LOCK_EX, e);
	int r = lock < 0 ? lock : read_names(s, &names, e);
	if (r == 0)
		r = find_uses(s, false, &u, e);
	if (r == 0)
		r = sweep_all(s, &names, &u, ret, e);
	free(names.all);
	return r;
}
