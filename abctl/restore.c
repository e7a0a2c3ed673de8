#include "abctl/restore.h"

#include "abctl/confined.h"
#include "abctl/untar.h"
#include "base/digest.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/mem.h"

#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10, FILES_MAX = 50000000 };
#define FILE_BYTES_MAX (UINT64_C(8) << 30)
#define BYTES_MAX      (UINT64_C(1) << 44)

/* ---- the archive, in the confined process ---- */

struct reading {
	int from;           /* borrowed */
	struct digest *sum; /* owned, until the archive's own is read */
	char want[DIGEST_TEXT];
	char said[DIGEST_TEXT];
	size_t nsaid;
	bool about, db, whole; /* these files were there */
	bool digest;           /* what comes is that file */
	int file;              /* owned, or -1: it is only summed up */
};

static bool numeral(const char *p)
{
	size_t n = strspn(p, "0123456789");
	return n > 0 && n < 10 && p[n] == '\0';
}

static bool id_of(const char *p, size_t n, const char *kind)
{
	char id[ID_MAX];
	if (n >= sizeof(id))
		return false;
	memcpy(id, p, n);
	id[n] = '\0';
	return id_valid(id, kind);
}

/* What a backup may have besides the first and the last file. */
static bool known(const char *name)
{
	static const char events[] = "events/", artifacts[] = "artifacts/", end[] = ".jsonl";
	size_t n = strlen(name);
	if (strcmp(name, "db") == 0)
		return true;
	if (strncmp(name, events, sizeof(events) - 1) == 0 && n > sizeof(end) - 1 &&
	        strcmp(name + n - (sizeof(end) - 1), end) == 0)
		return id_of(name + sizeof(events) - 1,
		        n - (sizeof(events) - 1) - (sizeof(end) - 1), "ses");
	const char *slash = strrchr(name, '/');
	return strncmp(name, artifacts, sizeof(artifacts) - 1) == 0 && numeral(slash + 1) &&
	       id_of(name + sizeof(artifacts) - 1, (size_t)(slash - name) - (sizeof(artifacts) - 1),
	               "run");
}

static int make_parents(const char *name, struct err *e)
{
	char dir[UNTAR_NAME_MAX + 1];
	for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(p - name), name);
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return err_errno(e, "making %s", dir);
	}
	return 0;
}

static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	struct reading *r = ctx;
	(void)executable;
	if (r->whole)
		return err_set(e, -EBADMSG, "the backup goes on behind its end");
	r->digest = strcmp(name, "DIGEST") == 0;
	if (r->digest) {
		digest_end(take(r->sum), r->want);
		return 0;
	}
	digest_add(r->sum, name, strlen(name) + 1);
	if (!r->about) {
		r->about = strcmp(name, "agentbox-backup.json") == 0;
		return r->about ? 0 : err_set(e, -EBADMSG, "this is no backup of agentbox");
	}
	if (!known(name))
		return err_set(e, -EBADMSG, "the backup has a file '%.100s', which none has", name);
	r->db |= strcmp(name, "db") == 0;
	if (make_parents(name, e) < 0)
		return e->code;
	r->file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return r->file < 0 ? err_errno(e, "making %s", name) : 0;
}

static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	struct reading *r = ctx;
	if (r->digest) {
		if (n > sizeof(r->said) - 1 - r->nsaid)
			return err_set(e, -EBADMSG, "the backup's digest is none");
		memcpy(r->said + r->nsaid, p, n);
		r->nsaid += n;
		return 0;
	}
	digest_add(r->sum, p, n);
	int rc = r->file < 0 ? 0 : fd_write_all(r->file, p, n);
	return rc < 0 ? err_set(e, rc, "writing it: %s", strerror(-rc)) : 0;
}

static int on_end(void *ctx, struct err *e)
{
	struct reading *r = ctx;
	r->whole = r->digest;
	if (r->digest && (r->nsaid != DIGEST_TEXT - 1 || !digest_same(r->want, r->said)))
		return err_set(e, -EBADMSG, "the backup is damaged: its digest is another");
	int rc = r->file < 0 ? 0 : close(r->file);
	r->file = -1;
	return rc < 0 ? err_errno(e, "writing it") : 0;
}

static int read_all(void *ctx, struct err *e)
{
	static const struct untar_calls calls = {.file = on_file, .data = on_data, .end = on_end};
	struct reading *r = ctx;
	struct untar *t = untar_new(&calls, r);
	untar_allow(t, BYTES_MAX, FILES_MAX);
	static char p[READ_SIZE];
	for (;;) {
		ssize_t n = read(r->from, p, sizeof(p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "reading the backup");
		int rc = n ? untar_feed(t, p, (size_t)n, e) : untar_end(t, e);
		if (rc < 0)
			return rc;
		if (n == 0)
			break;
	}
	if (!r->whole || !r->db)
		return err_set(e, -EBADMSG, "the backup is not whole: its end is missing");
	return 0;
}

/* ---- the directory ---- */

/* As agentboxd wants it: what may be there before its first start, and its lock. */
static int check_state(int dir, struct err *e)
{
	static const char *const may[] = {
	        "agents", "sessions", "snapshots", "supervisor", "trash", "lost+found"};
	char other[DIR_NAME_SHOWN];
	if (faccessat(dir, "agentboxd.lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	int r = dir_stranger(dir, may, ARRAY_LEN(may), other);
	if (r > 0)
		return err_set(e, -ENOTEMPTY,
		        "it is not empty and no state directory of agentboxd ('%s' is there)",
		        other);
	return r < 0 ? err_set(e, r, "reading it: %s", strerror(-r)) : 0;
}

static int lock_state(int dir, struct err *e)
{
	int fd = openat(dir, "agentboxd.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, "agentboxd.lock");
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	int r = errno == EWOULDBLOCK ? err_set(e, -EBUSY, "an agentboxd uses it: stop that first")
	                             : err_errno(e, "flock");
	close(fd);
	return r;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

/* Of a restore that failed or was killed; nobody but root gets there. */
static void remove_part(const char *state)
{
	auto_free char *path = xasprintf("%s/supervisor.part", state);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int make_part(int dir, uint32_t uid, uint32_t gid, struct err *e)
{
	if (unlinkat(dir, "supervisor", AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_set(e, -ENOTEMPTY,
		        "it holds a state already (supervisor/): name another directory, or move "
		        "that away");
	if (mkdirat(dir, "supervisor.part", 0700) < 0)
		return err_errno(e, "supervisor.part");
	auto_close int fd =
	        openat(dir, "supervisor.part", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchown(fd, uid, gid) < 0)
		return err_errno(e, "supervisor.part");
	return take_fd(fd);
}

static int fill(int dir, int from, struct err *e)
{
	const struct passwd *pw = getpwnam("agentbox-supervisor");
	uint32_t uid = pw ? pw->pw_uid : ID_SUPERVISOR, gid = pw ? pw->pw_gid : ID_SUPERVISOR;
	auto_close int part = make_part(dir, uid, gid, e);
	if (part < 0)
		return part;
	struct reading r = {.from = from, .sum = digest_new(), .file = -1};
	const struct confined_spec spec = {.tree = part,
	        .uid = uid,
	        .gid = gid,
	        .file_max = FILE_BYTES_MAX,
	        .work = read_all,
	        .ctx = &r};
	struct confined c;
	int rc = confined_start(&c, &spec, e);
	if (rc == 0)
		rc = confined_end(&c, e);
	digest_free(r.sum);
	if (rc < 0)
		return rc;
	if (syncfs(part) < 0 || renameat(dir, "supervisor.part", dir, "supervisor") < 0 ||
	        fsync(dir) < 0)
		return err_errno(e, "supervisor");
	return 0;
}

int restore_state(int from, const char *state, struct err *e)
{
	struct stat st;
	if (mkdir(state, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make it");
	auto_close int dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_errno(e, "open it");
	if (st.st_uid != 0 || (st.st_mode & 022))
		return err_set(
		        e, -ENOTEMPTY, "it must belong to root and be writable for nobody else");
	int rc = check_state(dir, e);
	auto_close int lock = rc < 0 ? -1 : lock_state(dir, e);
	if (rc == 0 && lock < 0)
		rc = lock;
	if (rc < 0)
		return rc;
	remove_part(state);
	rc = fill(dir, from, e);
	if (rc < 0)
		remove_part(state);
	return rc;
}
