/* Directories of sessions, and their end whatever is in them. */
#include "jail/sessions.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char root[] = "/tmp/agentbox-sessions-XXXXXX";

static void mkdir_deep(int at, int depth)
{
	int fd = dup(at);
	for (int i = 0; i < depth && fd >= 0; i++) {
		(void)!mkdirat(fd, "d", 0700);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)!mkdirat(fd, "e", 0700);
		fd_close(fd);
		fd = next;
	}
	fd_close(fd);
}

static bool is_empty(int dir)
{
	return unlinkat(dir, "probe", AT_REMOVEDIR) < 0 && mkdirat(dir, "probe", 0700) == 0 &&
	       unlinkat(dir, "probe", AT_REMOVEDIR) == 0;
}

static int new_dir(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", root, name);
	(void)!mkdir(path, 0755);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int entries(int dir)
{
	struct stat st;
	return fstat(dir, &st) == 0 ? (int)st.st_nlink : -1;
}

static void write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	(void)!write(fd, "keep", 4);
	fd_close(fd);
}

static void test_tree(void)
{
	auto_close int out = new_dir("outside");
	auto_free char *kept = xasprintf("%s/outside/kept", root);
	write_file(kept);
	auto_close int dir = new_dir("tree");
	mkdir_deep(dir, 5000);
	(void)!mkdirat(dir, "locked", 0000);
	(void)!symlinkat("../outside", dir, "link");
	(void)!symlinkat("/", dir, "slash");
	(void)!mknodat(dir, "fifo", S_IFIFO | 0600, 0);
	(void)!linkat(out, "kept", dir, "hard", 0);
	(void)!mkdirat(dir, "deep.0000000000000000", 0700);
	for (int i = 0; i < 300; i++) {
		char name[270];
		memset(name, 'x', 250);
		snprintf(name + 250, sizeof(name) - 250, "%d", i);
		fd_close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	int before = fd_count();
	ok(tree_empty(dir) == 0, "5000 levels, links, a FIFO, long names are removed");
	ok(is_empty(dir) && entries(dir) == 2, "nothing is left");
	ok(access(kept, F_OK) == 0, "what links pointed at is still there");
	ok(fd_count() == before, "no descriptor is left");
}

static int wait_trash(const struct state *s)
{
	struct job j = JOB_NONE;
	struct job_out out;
	struct err e = {0};
	int r = trash_empty(s, &j, &e);
	if (r == 0)
		r = job_end(&j, child_reap(&j.child, 30000), &out, &e);
	if (r < 0)
		printf("# %s\n", e.text);
	return -r;
}

static int opened(const struct state *s, const char *id, int *w, int *h, struct err *e)
{
	auto_close int dir = session_dir(s, id, e);
	return dir < 0 ? dir : session_places(dir, w, h, e);
}

static void test_sessions(const char *name)
{
	auto_free char *path = xasprintf("%s/%s", root, name);
	struct state s;
	struct err e = {0};
	must(state_open(&s, path, &e) == 0, "a state directory %s", e.text);
	char id[ID_MAX];
	id_new("ses", id);
	int w = -1, h = -1;
	must(opened(&s, id, &w, &h, &e) == 0, "a session %s", e.text);
	struct stat st;
	ok(fstat(w, &st) == 0 && st.st_uid == ID_STORE_BASE + ID_INNER_AGENT &&
	                (st.st_mode & 07777) == 0700,
	        "its workspace belongs to the store's id");
	fd_close(openat(w, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	mkdir_deep(h, 40);
	must(fchown(w, ID_STORE_BASE, ID_STORE_BASE + 65534) == 0 && fchmod(w, 0) == 0 &&
	                fchmod(h, 0070) == 0,
	        "given away and closed, as a jail can");
	fd_close(w);
	fd_close(h);
	must(opened(&s, id, &w, &h, &e) == 0, "it is opened again %s", e.text);
	ok(fstat(w, &st) == 0 && st.st_uid == ID_STORE_BASE + ID_INNER_AGENT &&
	                st.st_gid == ID_STORE_BASE + ID_INNER_AGENT && (st.st_mode & 07777) == 0700,
	        "for the agent, who gets into it");
	ok(fstat(h, &st) == 0 && (st.st_mode & 07777) == 0770, "and into its home");
	fd_close(w);
	fd_close(h);
	must(opened(&s, id, &w, &h, &e) == 0, "opened again");
	ok(faccessat(w, "file", F_OK, 0) == 0, "what was written is there");
	fd_close(w);
	fd_close(h);

	ok(session_trash(&s, id, &e) == 0 && trash_waits(&s), "deleted: in the trash");
	ok(session_trash(&s, id, &e) == -ENOENT, "deleted twice: %s", e.text);
	must(opened(&s, id, &w, &h, &e) == 0, "made again meanwhile");
	ok(faccessat(w, "file", F_OK, 0) < 0, "and empty");
	fd_close(w);
	fd_close(h);
	int status = wait_trash(&s);
	ok(status == 0, "the trash is emptied: %s", strerror(status));
	ok(!trash_waits(&s), "nothing is left in it");

	/* A link in the place of a session, of a workspace. */
	must(symlinkat("/etc", s.sessions, "ses_link") == 0, "a link");
	ok(opened(&s, "ses_link", &w, &h, &e) < 0, "is not followed: %s", e.text);
	auto_close int dir = openat(s.sessions, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(renameat(dir, "workspace", dir, "moved") == 0 &&
	                symlinkat("/etc", dir, "workspace") == 0,
	        "a link as workspace");
	ok(opened(&s, id, &w, &h, &e) < 0, "is not followed: %s", e.text);
	state_close(&s);
}

static int count(const void *arg, struct job_out *out, struct err *e)
{
	(void)out;
	return session_adopt(*(const int *)arg, 0, e);
}

/* Nothing of ours stays open in the child that counts: it finds room where we have none. */
static void test_adopt(void)
{
	auto_close int dir = new_dir("adopted");
	must(mkdirat(dir, "a", 0700) == 0, "a directory with one in it");
	struct rlimit before, low;
	must(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit of descriptors");
	low = before;
	low.rlim_cur = 64;
	must(setrlimit(RLIMIT_NOFILE, &low) == 0, "a low one");
	int fds[64], n = 0;
	while (n < 64 && (fds[n] = dup(dir)) >= 0)
		n++;
	for (int i = 0; i < 3; i++) /* socket and pidfd; in the child, for one directory of two */
		fd_close(fds[--n]);
	struct job j = JOB_NONE;
	struct err e = {0};
	const struct job_spec spec = {count, &dir, &dir, 1};
	int r = job_start(&spec, &j, &e);
	while (n > 0)
		fd_close(fds[--n]);
	must(setrlimit(RLIMIT_NOFILE, &before) == 0 && r == 0, "counting begins %s", e.text);
	struct job_out out;
	r = job_end(&j, child_reap(&j.child, -1), &out, &e);
	/* what it ends with is up to the file system, which need not have projects */
	ok(r != -EMFILE && r != -EIO, "the child that counts has no descriptors of ours: %s",
	        r < 0 ? e.text : "counted");
}

static void test_state(void)
{
	auto_free char *path = xasprintf("%s/state", root);
	struct state s, other;
	struct err e = {0};
	must(state_open(&s, path, &e) == 0, "a state directory");
	ok(state_open(&other, path, &e) == -EBUSY, "%s", e.text);
	char pid[32];
	snprintf(pid, sizeof(pid), "pid %d", getpid());
	ok(strstr(e.text, pid) != NULL, "names the holder");
	ok(state_give(&s, 12345, 12345, &e) == 0, "the supervisor's part is given");
	ok(state_give(&s, 12345, 12345, &e) == 0, "twice is fine");
	ok(state_give(&s, 12346, 12346, &e) == -EPERM, "to another: %s", e.text);
	state_close(&s);
	must(chmod(path, 0777) == 0, "others may write");
	ok(state_open(&s, path, &e) == -EPERM, "%s", e.text);
	must(chmod(path, 0700) == 0 && chown(path, 12345, 0) == 0, "another owner");
	ok(state_open(&s, path, &e) == -EPERM, "%s", e.text);
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	must(mkdtemp(root) != NULL, "a directory");
	test_tree();
	test_sessions("state");
	/* a mount namespace whose mounts propagate, which is what systemd makes of the host's */
	must(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) == 0,
	        "mounts that propagate");
	test_sessions("shared");
	test_adopt();
	test_state();
	auto_close int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(tree_empty(dir) == 0 && rmdir(root) == 0, "cleaned up");
	return done();
}
