/* What agentboxd does around its start: secrets, the control socket, children, what is swept. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/child.h"
#include "jail/layout.h"
#include "jail/listen.h"
#include "jail/secrets.h"
#include "jail/sweep.h"
#include "proto/egress.h"
#include "tests/t.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char root[] = "/tmp/agentbox-start-XXXXXX";

static char *below(const char *name)
{
	return xasprintf("%s/%s", root, name);
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	auto_free char *path = below(name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)!write(fd, text, strlen(text));
	(void)!fchmod(fd, mode);
}

/* ---- secrets ---- */

static const char *value_of(int fd, const char *name)
{
	static struct egress_secret s;
	for (off_t at = 0; fd_pread_full(fd, &s, sizeof(s), at) == (ssize_t)sizeof(s);
	        at += (off_t)sizeof(s)) {
		if (strcmp(s.name, name) == 0) {
			s.value[s.len < sizeof(s.value) ? s.len : sizeof(s.value) - 1] = '\0';
			return s.value;
		}
	}
	return NULL;
}

static void list_secret(
        struct policy_set *set, const char *name, uint32_t source, const char *where)
{
	struct secret_def *d = &set->config.secrets[set->config.nsecrets++];
	strcpy(d->name, name);
	d->source = source;
	strcpy(d->where, where);
}

static void list_command(struct policy_set *set, const char *name, const char *script)
{
	struct secret_def *d = &set->config.secrets[set->config.nsecrets++];
	strcpy(d->name, name);
	d->source = SECRET_COMMAND;
	d->nargs = 3;
	memcpy(d->where, "/bin/sh\0-c", 11);
	strcpy(d->where + 11, script);
}

static void test_commands(void)
{
	auto_free struct policy_set *set = xcalloc(1, sizeof(*set) + sizeof(struct policy));
	struct secrets_places places = {.dir = root, .previous = -1};
	auto_buf struct buf missing = BUF_INIT(4096), troubles = BUF_INIT(4096);
	struct err e = {0};
	char want[64];
	places.troubles = &troubles;
	set->count = 1;
	setenv("T_ENV", "value-e", 1);
	list_command(set, "WHO", "echo $(id -u) $(id -g) $(grep CapPrm /proc/self/status)");
	list_command(set, "CLEAN", "echo ${T_ENV:-clean}; echo loud >&2");
	list_command(set, "FAILS", "echo half; exit 3");
	list_command(set, "LENGTHY", "head -c 5000 /dev/zero | tr '\\0' x");
	list_command(set, "TWO", "echo one; echo two");
	auto_close int fd = secrets_load(set, &places, &missing, &e);
	must(fd >= 0, "loaded %s", e.text);
	snprintf(want, sizeof(want), "%u %u CapPrm:", ID_SECRETS, ID_SECRETS);
	ok(strncmp(value_of(fd, "WHO"), want, strlen(want)) == 0 &&
	                strstr(value_of(fd, "WHO"), "0000000000000000"),
	        "a command has an id of its own and no capability: %s", value_of(fd, "WHO"));
	is_str(value_of(fd, "CLEAN"), "clean", "and a clean environment");
	ok(!value_of(fd, "FAILS") && !value_of(fd, "LENGTHY") && !value_of(fd, "TWO"),
	        "what fails, is too long or two lines is no value");
	ok(strstr(troubles.p,
	           "secret FAILS: its command ended with exit code 3: it has no value") &&
	                strstr(troubles.p, "secret LENGTHY: ") && strstr(troubles.p, "TWO: ") &&
	                !strstr(troubles.p, "half"),
	        "which is said, without what it printed");

	set->config.nsecrets = 0;
	buf_clear(&troubles);
	places.previous = fd;
	list_command(set, "WHO", "exit 1");
	list_command(set, "CLEAN", "echo new");
	auto_close int again = secrets_load(set, &places, &missing, &e);
	must(again >= 0, "loaded again");
	ok(value_of(again, "WHO") && strstr(troubles.p, "exit code 1: its last value stays"),
	        "a command that fails: its last value stays, which is said");
	is_str(value_of(again, "CLEAN"), "new", "others are new");
	places.files_only = true;
	auto_close int files = secrets_load(set, &places, &missing, &e);
	must(files >= 0, "loaded for the files' sake");
	is_str(value_of(files, "CLEAN"), "clean", "commands are not run then");

	set->config.nsecrets = 0;
	buf_clear(&troubles);
	places.files_only = false;
	list_command(set, "CLEAN", "sleep 3456 & sleep 3456");
	int64_t began = clock_mono_ms();
	auto_close int late = secrets_load(set, &places, &missing, &e);
	int64_t took = clock_mono_ms() - began;
	ok(late >= 0 && took >= SECRETS_COMMANDS_MS && took < 4 * SECRETS_COMMANDS_MS,
	        "one that does not end is waited for a while: %lld ms", (long long)took);
	ok(strstr(troubles.p, "did not end in time"), "said");
	bool left = true; /* what is dead may wait to be collected by others */
	for (int i = 0; left && i < 100; i++, usleep(50000))
		left = system("pgrep -U 536805381 -r R,S,D,T >/dev/null") == 0;
	ok(!left, "nothing of it is left");
	_Static_assert(ID_SECRETS == 536805381, "whose processes are looked for");
	unsetenv("T_ENV");
}

static void test_secrets(void)
{
	auto_free struct policy_set *set = xcalloc(1, sizeof(*set) + sizeof(struct policy));
	set->count = 1;
	auto_free char *a = below("a"), *loose = below("loose"), *none = below("none");
	write_file("a", "value-a\r\n", 0600);
	write_file("loose", "value", 0666);
	write_file("UNLISTED", "value-u\n", 0600);
	write_file("cred", "value-c", 0400);
	write_file("TWO", "one\ntwo\n", 0600);
	write_file("readable", "value", 0640);
	auto_free char *readable = below("readable");
	list_secret(set, "READABLE", SECRET_FILE, readable);
	list_secret(set, "A", SECRET_FILE, a);
	list_secret(set, "LOOSE", SECRET_FILE, loose);
	list_secret(set, "NONE", SECRET_FILE, none);
	list_secret(set, "FROM_ENV", SECRET_ENV, "T_ENV");
	list_secret(set, "CRED", SECRET_CREDENTIAL, "cred");
	list_secret(set, "UP", SECRET_CREDENTIAL, "../a");
	static const char *const unlisted[] = {"UNLISTED", "IN_ENV", "TWO", "A", ""};
	for (size_t i = 0; i < ARRAY_LEN(unlisted); i++)
		strcpy(set->policies[0].inject[set->policies[0].ninject++].secret, unlisted[i]);
	setenv("T_ENV", "value-e", 1);
	setenv("IN_ENV", "value-i", 1);
	setenv("NONE", "not asked for", 1);

	struct secrets_places places = {.dir = root, .credentials = root, .previous = -1};
	auto_buf struct buf missing = BUF_INIT(4096);
	struct err e = {0};
	auto_close int fd = secrets_load(set, &places, &missing, &e);
	must(fd >= 0, "loaded %s", e.text);
	is_str(value_of(fd, "A"), "value-a", "a file, without its line end");
	is_str(value_of(fd, "FROM_ENV"), "value-e", "a variable");
	is_str(value_of(fd, "CRED"), "value-c", "a credential");
	is_str(value_of(fd, "UNLISTED"), "value-u", "an unlisted one, by file");
	is_str(value_of(fd, "IN_ENV"), "value-i", "an unlisted one, by variable");
	ok(!value_of(fd, "LOOSE"), "not from a file that others may write");
	ok(!value_of(fd, "READABLE") && strstr(missing.p, "may be read by others") &&
	                strstr(missing.p, "chmod go= it"),
	        "nor from one that others may read");
	ok(!value_of(fd, "NONE"), "a listed one has no second place");
	ok(!value_of(fd, "UP"), "a credential's name is no path");
	ok(!value_of(fd, "TWO"), "two lines are no header value");
	ok(missing.p && strstr(missing.p, "LOOSE: ") && strstr(missing.p, "NONE: ") &&
	                !strstr(missing.p, "value"),
	        "what is missing is named, no value is");
	int seals = fcntl(fd, F_GET_SEALS);
	ok((seals & F_SEAL_WRITE) && (seals & F_SEAL_SHRINK), "sealed");

	char *block = environ[0];
	size_t len = strlen(block);
	environment_wipe();
	ok(len > 0 && !getenv("T_ENV") && block[0] == '\0' && block[len - 1] == '\0',
	        "the environment is wiped");
	places.previous = fd;
	auto_close int again = secrets_load(set, &places, &missing, &e);
	must(again >= 0, "loaded again");
	is_str(value_of(again, "FROM_ENV"), "value-e", "a variable's value is carried over");
	is_str(value_of(again, "IN_ENV"), "value-i", "an unlisted one too");
}

/* ---- the control socket ---- */

static void test_listen(void)
{
	struct listener l = LISTENER_NONE, other = LISTENER_NONE;
	struct err e = {0};
	auto_free char *path = below("run/agentbox.sock"), *file = below("file");
	must(listen_make(&l, path, 4242, &e) == 0, "made, with its directory %s", e.text);
	struct stat st;
	ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0660 && st.st_gid == 4242,
	        "mode 0660 and the group");
	ok(listen_make(&other, path, 0, &e) == -EADDRINUSE, "%s", e.text);
	fd_close(take_fd(l.fd)); /* as if it had been killed */
	ok(listen_make(&other, path, 0, &e) == 0, "a dead one is replaced");
	listen_close(&l);
	ok(access(path, F_OK) == 0, "the dead one does not take the new one along");
	listen_close(&other);
	ok(access(path, F_OK) < 0, "closed: removed");
	write_file("file", "x", 0600);
	ok(listen_make(&l, file, 0, &e) == -EEXIST, "%s", e.text);
	char lengthy[200];
	memset(lengthy, 'x', sizeof(lengthy));
	lengthy[0] = '/';
	lengthy[sizeof(lengthy) - 1] = '\0';
	ok(listen_make(&l, lengthy, 0, &e) == -ENAMETOOLONG, "%s", e.text);
	setenv("LISTEN_PID", "1", 1);
	setenv("LISTEN_FDS", "1", 1);
	ok(listen_inherited(&l, &e) == 0, "LISTEN_FDS of another process");
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "2", 1);
	ok(listen_inherited(&l, &e) == -EINVAL, "%s", e.text);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
}

/* ---- children ---- */

static int run(const char *script, const int *fds, int nfds, bool no_network, uid_t shut_in,
        char *out, size_t n)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"EXTRA=yes", NULL};
	const struct child_spec spec = {.path = "/bin/sh",
	        .argv = argv,
	        .env = env,
	        .fds = fds,
	        .nfds = nfds,
	        .stderr_fd = ends[1],
	        .no_network = no_network,
	        .shut_in = shut_in,
	        .uid = shut_in,
	        .reads_all = shut_in};
	struct child c = CHILD_NONE;
	struct err e = {0};
	int r = child_start(&spec, &c, &e);
	fd_close(ends[1]);
	if (r < 0)
		printf("# %s\n", e.text);
	ssize_t k = r < 0 ? 0 : fd_read_full(ends[0], out, n - 1);
	out[k < 0 ? 0 : k] = '\0';
	fd_close(ends[0]);
	return r < 0 ? r : child_reap(&c, 20000);
}

static void test_child(void)
{
	char out[4096];
	setenv("SECRET", "hush", 1);
	int s = run("env | sort >&2", NULL, 0, false, 0, out, sizeof(out));
	if (!ok(WIFEXITED(s) && strstr(out, "EXTRA=yes") && strstr(out, "PATH=") &&
	                    !strstr(out, "SECRET"),
	            "the environment is PATH and what was given"))
		printf("# status %#x, said: %.1000s\n", s, out);
	int a = open("/etc/hostname", O_RDONLY | O_CLOEXEC), b = open("/", O_RDONLY | O_CLOEXEC);
	int open_here = open("/", O_RDONLY); /* not even close-on-exec */
	/* Crossed over: each sits on the other's place. */
	int x = fcntl(a, F_DUPFD, 30), y = fcntl(b, F_DUPFD, 3);
	const int fds[] = {x, y};
	s = run("ls -l /proc/self/fd | grep -o '[0-9]* -> .*' >&2", fds, 2, false, 0, out,
	        sizeof(out));
	ok(strstr(out, "3 -> /etc/hostname") && strstr(out, "4 -> /\n") && !strstr(out, "6 -> ") &&
	                strstr(out, "0 -> /dev/null"),
	        "descriptors are at 3 and 4 and nowhere else");
	printf("# %.300s\n", out);
	fd_close(open_here);
	fd_close(a);
	fd_close(b);
	fd_close(x);
	fd_close(y);
	s = run("cat /proc/net/dev >&2", NULL, 0, true, 0, out, sizeof(out));
	ok(strstr(out, "lo:") && !strstr(out, "eth"), "without a network: lo alone");
	s = run("cd /; echo * proc/* >&2; ls /proc/self/root/ >&2; cat /proc/1/status >&2 || echo "
	        ">x",
	        NULL, 0, false, 4242, out, sizeof(out));
	printf("# %.300s\n", out);
	ok(strstr(out, " usr") && strstr(out, " proc/self") && strstr(out, "\nusr\n") &&
	                !strstr(out, "etc") && !strstr(out, "home") && !strstr(out, "root ") &&
	                !strstr(out, "Pid:"),
	        "shut in: the host's programs, itself, and nothing else");
	ok(strstr(out, "Read-only"), "which it cannot change");
	s = run("cat /proc/self/status /proc/self/net/dev >&2", NULL, 0, false, 4242, out,
	        sizeof(out));
	ok(strstr(out, "CapEff:\t0000000000000002") && strstr(out, "Uid:\t4242\t4242\t4242\t4242"),
	        "as somebody else, with the capability to read");
	ok(strstr(out, "lo:") && !strstr(out, "eth"), "without a network");
	struct child c = CHILD_NONE;
	struct err e = {0};
	const char *const argv[] = {"x", NULL};
	const struct child_spec spec = {.path = "/nonexistent", .argv = argv, .stderr_fd = -1};
	ok(child_start(&spec, &c, &e) == -ENOENT, "%s", e.text);
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "nothing is left to reap");
}

/* ---- sweeping ---- */

static void test_sweep(void)
{
	char x[32], y[32];
	sweep_tree_name("/var/lib/agentbox", x);
	sweep_tree_name("/var/lib/agentbox2", y);
	ok(strcmp(x, y) != 0 && strncmp(x, "agentbox-", 9) == 0, "a subtree for each state: %s", x);
	auto_free char *state = below("st ate");
	auto_free char *sessions = below("st ate/sessions"), *one = below("st ate/sessions/ses_1");
	auto_free char *two = below("st ate/sessions/ses_1/in");
	(void)!mkdir(state, 0700);
	(void)!mkdir(sessions, 0700);
	must(mount("t", sessions, "tmpfs", 0, "size=64k") == 0, "the administrator's disk");
	(void)!mkdir(one, 0700);
	must(mount("t", one, "tmpfs", 0, "size=64k") == 0, "a leftover");
	(void)!mkdir(two, 0700);
	must(mount("t", two, "tmpfs", 0, "size=64k") == 0, "a leftover inside a leftover");
	struct err e = {0};
	ok(sweep_mounts(state, &e) == 2, "two are cleared %s", e.text);
	ok(sweep_mounts(state, &e) == 0, "no more");
	ok(umount(sessions) == 0, "the administrator's disk was left alone");
	ok(sweep_loops(state, &e) == 0, "no loop device");
	(void)!rmdir(sessions);
	(void)!rmdir(state);
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	must(mkdtemp(root) != NULL, "a directory");
	test_commands();
	test_secrets();
	test_listen();
	test_child();
	test_sweep();
	auto_free char *rm = xasprintf("rm -rf %s", root);
	ok(system(rm) == 0, "cleaned up");
	return done();
}
