#include "jail/sessions.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/mounts.h"
#include "jail/projects.h"
#include "jail/shut.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STORE_ID = ID_STORE_BASE + ID_INNER_AGENT };
enum { RANDOM_DIGITS = 32 };
_Static_assert((int)RANDOM_DIGITS < (int)SESSION_NAME && (int)ID_MAX <= (int)SESSION_NAME,
        "either name has room");

/* ---- opening ---- */

static int open_below(int dir, const char *name)
{
	return fd_openat2(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
	        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* Whatever a jail left of it: inner root may give it away, and the agent may close it.  The next
 * run's agent gets into it all the same. */
static int make_agents(int fd, const char *name, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", name);
	bool jails = st.st_uid - ID_STORE_BASE < ID_BLOCK;
	/* root's: just made, or made by a daemon that died before the next line. */
	if (st.st_uid != 0 && !jails)
		return err_set(e, -EPERM, "%s belongs to uid %u, not to %d", name, st.st_uid,
		        (int)STORE_ID);
	if ((st.st_uid != STORE_ID || st.st_gid != STORE_ID) && fchown(fd, STORE_ID, STORE_ID) < 0)
		return err_errno(e, "chown %s", name);
	if ((st.st_mode & S_IRWXU) != S_IRWXU && fchmod(fd, (st.st_mode & 07777) | S_IRWXU) < 0)
		return err_errno(e, "chmod %s", name);
	return 0;
}

/* The parent is root's and 0700, so nobody can put another thing under this name meanwhile. */
static int open_store_dir(int parent, const char *name, struct err *e)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "mkdir %s", name);
	auto_close int fd = open_below(parent, name);
	if (fd < 0)
		return err_set(e, fd, "%s: %s", name, strerror(-fd));
	int r = make_agents(fd, name, e);
	return r < 0 ? r : take_fd(fd);
}

/* ---- names: a link SESSION -> directory beside it, made before that ---- */

int session_name(const struct state *s, const char *id, char ret[SESSION_NAME], struct err *e)
{
	char to[SESSION_NAME + 1];
	ssize_t n = readlinkat(s->sessions, id, to, sizeof(to));
	if (n < 0 && errno == EINVAL) { /* made before directories had names of their own */
		(void)str_copy(ret, SESSION_NAME, id);
		return 0;
	}
	if (n < 0)
		return err_errno(e, "session %s", id);
	to[n < SESSION_NAME ? n : 0] = '\0';
	if (n != RANDOM_DIGITS || strspn(to, "0123456789abcdef") != RANDOM_DIGITS)
		return err_set(e, -EPERM, "session %s: its link is none of ours", id);
	(void)str_copy(ret, SESSION_NAME, to);
	return 0;
}

static int make_name(const struct state *s, const char *id, char ret[SESSION_NAME], struct err *e)
{
	unsigned char bytes[RANDOM_DIGITS / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_errno(e, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return symlinkat(ret, s->sessions, id) < 0 ? err_errno(e, "session %s", id) : 0;
}

int session_dir(const struct state *s, const char *id, struct err *e)
{
	char name[SESSION_NAME];
	int r = session_name(s, id, name, e);
	if (r == -ENOENT)
		r = make_name(s, id, name, e);
	if (r < 0)
		return r;
	if (mkdirat(s->sessions, name, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "session %s", id);
	auto_close int dir = open_below(s->sessions, name);
	if (dir < 0)
		return err_set(e, dir, "session %s: %s", id, strerror(-dir));
	r = root_owned(dir, id, e);
	return r < 0 ? r : take_fd(dir);
}

int session_places(int dir, int *ret_workspace, int *ret_home, struct err *e)
{
	auto_close int workspace = open_store_dir(dir, "workspace", e);
	if (workspace < 0)
		return workspace;
	auto_close int home = open_store_dir(dir, "home", e);
	if (home < 0)
		return home;
	*ret_workspace = take_fd(workspace);
	*ret_home = take_fd(home);
	return 0;
}

/* ---- removing ---- */

int trash_put(const struct state *s, int dir, const char *name)
{
	/* A session of the same name may be made and deleted again before the trash is empty. */
	uint64_t salt = 0;
	(void)!getrandom(&salt, sizeof(salt), 0);
	char to[SESSION_NAME + ID_MAX + 24];
	snprintf(to, sizeof(to), "%s.%016llx", name, (unsigned long long)salt);
	return renameat2(dir, name, s->trash, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* The directory first: while it is there its name is. */
int session_trash(const struct state *s, const char *id, struct err *e)
{
	char name[SESSION_NAME];
	int r = session_name(s, id, name, NULL);
	if (r == -EPERM) /* whatever that is */
		(void)str_copy(name, sizeof(name), id);
	if (r == 0 || r == -EPERM)
		r = trash_put(s, s->sessions, name);
	bool linked = (r == 0 || r == -ENOENT) && strcmp(name, id) != 0;
	if (linked && unlinkat(s->sessions, id, 0) < 0 && errno != ENOENT)
		r = -errno;
	return r == -ENOENT ? err_set(e, r, "session %s has no files", id)
	       : r < 0      ? err_set(e, r, "session %s: %s", id, strerror(-r))
	                    : 0;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

bool trash_waits(const struct state *s)
{
	int fd = openat(s->trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		return false;
	}
	bool waits = false;
	for (struct dirent *at = readdir(d); at && !waits; at = readdir(d))
		waits = !is_dot(at->d_name);
	closedir(d);
	return waits;
}

/* Deeper directories are moved up to the top and emptied from there: an agent can nest a hundred
 * thousand levels, and neither our stack nor our descriptors may depend on that. */
enum { TREE_DEPTH = 16 };

struct sweep {
	int top;        /* borrowed: where too deep directories go */
	uint64_t names; /* given so far */
	uint64_t moved; /* directories, so far */
	int error;      /* first -errno */
};

static void note(struct sweep *w)
{
	if (!w->error)
		w->error = -errno;
}

static void empty_dir(struct sweep *w, int dir, int depth);

static void move_up(struct sweep *w, int dir, const char *name)
{
	for (;;) {
		char to[40];
		snprintf(to, sizeof(to), "deep.%016llx", (unsigned long long)w->names++);
		if (renameat2(dir, name, w->top, to, RENAME_NOREPLACE) == 0) {
			w->moved++;
			return;
		}
		if (errno != EEXIST) {
			note(w);
			return;
		}
	}
}

static void remove_entry(struct sweep *w, int dir, const char *name, int depth)
{
	if (unlinkat(dir, name, 0) == 0)
		return;
	if (errno != EISDIR && errno != EPERM) {
		note(w);
		return;
	}
	if (depth == TREE_DEPTH) {
		move_up(w, dir, name);
		return;
	}
	auto_close int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		note(w);
		return;
	}
	empty_dir(w, fd, depth + 1);
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0)
		note(w);
}

static void empty_dir(struct sweep *w, int dir, int depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		note(w);
		fd_close(fd);
		return;
	}
	errno = 0; /* the end and an error look the same but for this */
	for (struct dirent *at = readdir(d); at; at = readdir(d)) {
		if (!is_dot(at->d_name))
			remove_entry(w, dirfd(d), at->d_name, depth);
		errno = 0;
	}
	if (errno)
		note(w);
	closedir(d);
}

int tree_empty(int dir)
{
	struct sweep w = {.top = dir};
	/* Again while directories were moved to the top during the pass. */
	for (uint64_t before = ~(uint64_t)0; before != w.moved;) {
		before = w.moved;
		w.error = 0;
		empty_dir(&w, dir, 0);
	}
	return w.error;
}

/* ---- in a child (job.h) ---- */

static int keep_two_capabilities(void)
{
	const uint32_t keep = 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{.effective = keep, .permitted = keep}, {0}};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &h, d) < 0 ? -errno : 0;
}

/* Afterwards the trash is the root of the only mount there is. */
static int shut_in(const struct state *s, struct err *e)
{
	auto_free char *at = xasprintf("%s/trash", s->path);
	/* Before unshare: afterwards s->trash is a mount of another namespace, and not cloned.
	 * Private like all mounts_clone makes. */
	auto_close int tree = mounts_clone(s->trash, "", MOUNTS_NSD, -1, e);
	return tree < 0 ? tree : shut_tree(tree, at, e);
}

static int empty_confined(const void *arg, struct job_out *out, struct err *e)
{
	const struct state *s = arg;
	(void)out;
	int r = shut_in(s, e);
	if (r < 0)
		return r;
	fd_close(s->trash); /* its ".." leads out */
	auto_close int top = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return err_errno(e, "own root");
	r = keep_two_capabilities();
	if (r == 0)
		r = tree_empty(top);
	return r < 0 ? err_set(e, r, "%s", strerror(-r)) : 0;
}

int trash_empty(const struct state *s, struct job *ret, struct err *e)
{
	const struct job_spec spec = {empty_confined, s, &s->trash, 1};
	return job_start(&spec, ret, e);
}

/* ---- in the child that counts what is there for a project ---- */

/* A tree that is deeper than this cannot be taken over: each level is a descriptor. */
enum { ADOPT_DEPTH = 512 };

static int adopt_entry(int dir, const char *name, uint32_t project, int depth);

static int adopt_dir(int dir, uint32_t project, int depth)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = -errno;
		fd_close(fd);
		return r;
	}
	int r = 0;
	for (struct dirent *at = readdir(d); at && r == 0; at = readdir(d))
		if (!is_dot(at->d_name))
			r = adopt_entry(dirfd(d), at->d_name, project, depth);
	closedir(d);
	return r;
}

/* Nothing of the session runs: nothing changes between look and open.  Links and special files
 * cannot be marked (before Linux 6.17) and take no blocks to speak of. */
static int adopt_entry(int dir, const char *name, uint32_t project, int depth)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	if (depth == ADOPT_DEPTH)
		return -ELOOP;
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = projects_mark(fd, project);
	return r == 0 && S_ISDIR(st.st_mode) ? adopt_dir(fd, project, depth + 1) : r;
}

int session_adopt(int dir, uint32_t project, struct err *e)
{
	int r = keep_two_capabilities();
	if (r == 0)
		r = adopt_dir(dir, project, 0);
	if (r == 0)
		r = projects_mark(dir, project);
	return r < 0 ? err_set(e, r, "%s", strerror(-r)) : 0;
}
