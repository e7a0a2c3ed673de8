#include "abctl/agent_fetch.h"
#include "abctl/agent_unpack.h"
#include "abctl/attach.h"
#include "abctl/fail.h"
#include "abctl/human.h"
#include "abctl/untar.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EXIT_NO_NPM = 90, /* of the script below */
	EXIT_NPM_FAILED = 91,
	LOOK_MS = 200,
	READ_SIZE = 256 << 10,
};
#define PACKAGE_MAX (UINT64_C(1) << 30)

/* One line, then the package.  npm fetches that one archive and runs nothing of it. */
static const char script[] =
        "exec 3>&1 >&2 </dev/null\n"
        "ca=/etc/ssl/certs/ca-certificates.crt\n"
        "[ ! -r $ca ] || export NODE_EXTRA_CA_CERTS=$ca\n"
        "command -v npm >/dev/null && command -v node >/dev/null || exit 90\n"
        "export npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false\n"
        "export npm_config_fetch_retries=2 npm_config_fetch_retry_mintimeout=1000 "
        "npm_config_fetch_retry_maxtimeout=4000\n"
        "[ -z \"$2\" ] || export npm_config_registry=\"$2\" "
        "npm_config_replace_registry_host=always\n"
        "mkdir -p /workspace/p && cd /workspace/p || exit\n"
        "if ! npm pack --ignore-scripts --loglevel error \"$1\" >../out 2>../err; then\n"
        "  sed -n 's/^npm \\(ERR!\\|error\\) code \\([A-Z0-9_]*\\).*/\\2/p' ../err | head -n 1 "
        ">&3\n"
        "  exit 91\n"
        "fi\n"
        "rm -rf \"$HOME/.npm\"\n"
        "echo \"npm $(npm --version) node $(node --version)\" >&3\n"
        "exec cat -- * >&3\n";

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = sig;
}

void agent_fetch_watch(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction act = {.sa_handler = on_signal};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)sigaction(ends[i], &act, NULL);
}

/* ---- commands in jails ---- */

/* In a child: the command's stdin and stdout are these. */
static int attach(
        const struct cli *cli, const char *policy, const char *const *argv, int in, int out)
{
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		return fail_system("stdio of a command: %s", strerror(errno));
	const struct rlimit size = {PACKAGE_MAX, PACKAGE_MAX};
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &size) < 0)
		return fail_system("setting limits: %s", strerror(errno));
	auto_buf struct buf body = BUF_INIT((size_t)LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "argv", '[');
	for (const char *const *arg = argv; *arg; arg++)
		jw_str(&w, NULL, *arg);
	jw_close(&w, ']');
	jw_str(&w, "policy", policy);
	jw_close(&w, '}');
	/* Of a stranger's server or archive, and the terminal is root's. */
	const struct attach_terminal none = {.tame = true};
	const struct cli quiet = {.peer = cli->peer};
	return attach_run(&quiet, "/v1/jails", &body, &none, argv[0]);
}

/* `other` is not for the child: the end of its pipe that must close when its reader goes.  -1:
 * none. */
static pid_t start(const struct cli *cli, const char *policy, const char *const *argv, int in,
        int out, int other)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	fd_close(other);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(attach(cli, policy, argv, in, out));
}

static void show(const struct agent_fetch *f, int file)
{
	struct stat st;
	if (f->progress && fstat(file, &st) == 0 && st.st_size > AGENT_HEAD_MAX)
		fprintf(stderr, "\r%s: fetched %s ", f->agent, human_bytes((uint64_t)st.st_size).s);
}

/* Its exit code; a signal to us is passed on once. */
static int wait_for(const struct agent_fetch *f, pid_t pid, int file)
{
	int status = 0;
	bool told = false;
	for (;;) {
		pid_t r = waitpid(pid, &status, file < 0 ? 0 : WNOHANG);
		if (r == pid || (r < 0 && errno != EINTR))
			break;
		if (stopped && !told)
			told = kill(pid, SIGTERM) == 0;
		if (file < 0)
			continue;
		show(f, file);
		(void)poll(NULL, 0, LOOK_MS);
	}
	if (file >= 0 && f->progress)
		fputs("\r\033[K", stderr);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}

/* ---- fetching ---- */

static int not_fetched(const struct agent_fetch *f, const char *package, int code, const char *said)
{
	const char *registry = f->registry ? f->registry : "its registry";
	if (code == EXIT_NO_NPM)
		return fail_system(
		        "npm and node fetch it, and the root that policy '%s' shows has "
		        "none; remedy, where that is the host's: apt-get install nodejs npm",
		        f->policy);
	if (code != EXIT_NPM_FAILED)
		return fail_system("fetching %s ended with status %d (no room in the jail? "
		                   "more than %s?)",
		        package, code, human_bytes(PACKAGE_MAX).s);
	if (strcmp(said, "E404") == 0 || strcmp(said, "ETARGET") == 0)
		return fail_system("%s has no %s (%s)", registry, package, said);
	if (strncmp(said, "TAR_", 4) == 0 || strncmp(said, "Z_", 2) == 0)
		return fail_system("%s from %s is broken: npm says %s", package, registry, said);
	if (strcmp(said, "E401") == 0 || strcmp(said, "E403") == 0)
		return fail_system("%s refuses %s (%s): one that wants a password is led to by "
		                   "`inject` in policy '%s'",
		        registry, package, said, f->policy);
	return fail_system(
	        "npm could not fetch %s from %s (%s); may policy '%s' reach it (`abctl policy "
	        "explain %s host HOST`)?",
	        package, registry, *said ? said : "no code given", f->policy, f->policy);
}

/* What the jail said first, made harmless: letters, digits, dots, blanks. */
static int read_head(int file, char head[AGENT_HEAD_MAX], off_t *ret_at)
{
	ssize_t n = fd_pread_full(file, head, AGENT_HEAD_MAX - 1, 0);
	if (n < 0)
		return (int)n;
	head[n] = '\0';
	size_t len = strcspn(head, "\n");
	*ret_at = (off_t)len + (head[len] == '\n');
	head[len] = '\0';
	for (char *p = head; *p; p++)
		if (!strchr(" .-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
		            *p))
			*p = '?';
	return 0;
}

int agent_fetch_digest(int file, char ret[DIGEST_INTEGRITY])
{
	static char p[READ_SIZE];
	struct digest *d = digest_integrity_new();
	off_t at = lseek(file, 0, SEEK_CUR);
	ssize_t n = at < 0 ? -errno : 0;
	while (at >= 0 && (n = fd_pread_full(file, p, sizeof(p), at)) > 0) {
		digest_add(d, p, (size_t)n);
		at += n;
	}
	digest_integrity_end(d, ret);
	return n < 0 ? fail_system("reading what was fetched: %s", strerror((int)-n)) : 0;
}

static int check_digest(int file, const char *package, const char *want)
{
	char got[DIGEST_INTEGRITY];
	int code = agent_fetch_digest(file, got);
	if (code || strcmp(got, want) == 0)
		return code;
	return fail_system("%s is not the pinned package: its digest is %s, agent.yaml says %s",
	        package, got, want);
}

int agent_fetch_run(
        struct agent_fetch *f, const char *const *argv, int file, char head[AGENT_HEAD_MAX])
{
	head[0] = '\0';
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = null < 0 ? -1 : start(f->cli, f->policy, argv, null, file, -1);
	if (pid < 0)
		return -fail_system("starting: %s", strerror(errno));
	int code = wait_for(f, pid, file);
	off_t at = 0;
	int r = read_head(file, head, &at);
	if (r == 0 && lseek(file, at, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return -fail_system("reading what was fetched: %s", strerror(-r));
	if (stopped)
		return -fail_system("interrupted");
	return code == EXIT_SYSTEM || code == EXIT_USAGE ? -code : code;
}

/* Into a file without a name, which nobody but this process and its children has. */
int agent_fetch_npm(struct agent_fetch *f, const char *package, int file)
{
	const char *argv[] = {
	        "sh", "-c", script, "install", package, f->registry ? f->registry : "", NULL};
	char head[AGENT_HEAD_MAX];
	int code = agent_fetch_run(f, argv, file, head);
	if (code)
		return code < 0 ? -code : not_fetched(f, package, code, head);
	if (!str_copy(f->npm, sizeof(f->npm), head))
		(void)str_copy(f->npm, sizeof(f->npm), "unknown");
	return 0;
}

/* ---- unpacking ---- */

static int unpacked(
        const struct agent_fetch *f, pid_t gzip, struct confined *u, const char *package)
{
	struct err e = {0};
	int r = confined_end(u, &e);
	bool over = r < 0 && r != -EBADMSG; /* what is no archive may be gzip's to tell */
	if (over)
		(void)kill(gzip, SIGKILL); /* its jail ends with its connection */
	int code = wait_for(f, gzip, -1);
	if (stopped)
		return fail_system("interrupted");
	if (over)
		return fail_system("%s: %s", package, e.text);
	if (code == EXIT_SYSTEM || code == EXIT_USAGE)
		return code;
	if (code == 127)
		return fail_system(
		        "gzip unpacks it, and the root that policy 'offline' shows has none");
	if (code == 1 || (code && r == 0))
		return fail_system("%s: gzip says that it is broken (status %d)", package, code);
	return r < 0 ? fail_system("%s: %s", package, e.text) : 0;
}

int agent_fetch_unpack(struct agent_fetch *f, const char *package, int file, int tree,
        const struct agent_take *takes, size_t ntakes)
{
	static const char *const argv[] = {"gzip", "-dc", NULL};
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_system("pipe: %s", strerror(errno));
	pid_t gzip = start(f->cli, "offline", argv, file, ends[1], ends[0]);
	fd_close(ends[1]);
	struct confined u;
	struct err e = {0};
	int r = gzip < 0 ? err_errno(&e, "fork")
	                 : agent_unpack_start(&u, tree, ends[0], takes, ntakes, f->most, &e);
	fd_close(ends[0]);
	if (r == 0)
		return unpacked(f, gzip, &u, package);
	if (gzip > 0) {
		(void)kill(gzip, SIGTERM);
		(void)wait_for(f, gzip, -1);
	}
	return fail_system("%s", e.text);
}

int agent_fetch(struct agent_fetch *f, const char *package, const char *integrity, int tree,
        const struct agent_take *takes, size_t ntakes)
{
	auto_close int file = openat(f->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		return fail_system("making a file for %s: %s", package, strerror(errno));
	int code = agent_fetch_npm(f, package, file);
	if (code == 0)
		code = check_digest(file, package, integrity);
	return code ? code : agent_fetch_unpack(f, package, file, tree, takes, ntakes);
}
