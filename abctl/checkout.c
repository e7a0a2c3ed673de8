/*
 * Theory of operation.  git has a repository of our own in a temporary directory, with the objects
 * of the directory's as an alternate and a copy of its index, so that of the directory's
 * configuration only where it is and what it excludes is asked; that runs nothing.  The bundle goes
 * into a file without a name and, when it is whole, through a command in the session into its
 * workspace.
 */
#include "abctl/checkout.h"

#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/session_exec.h"
#include "abctl/start.h"
#include "base/buf.h"
#include "base/embed.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUNDLE_DIR  ".agentbox-repo"
#define BUNDLE_PATH BUNDLE_DIR "/bundle"

enum { EXIT_SAID = 1 /* of the program: it has said why */ };

EMBED(make_bundle, "abctl/checkout.sh")

void checkout_done(struct checkout *c)
{
	free(take(c->url));
	free(take(c->bundle));
	free(take(c->ref));
}

/* ---- a child ---- */

static int exit_of(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}

static bool stdio(int in, int out)
{
	return dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0;
}

/* A file without a name in the directory for such. */
static int nameless(void)
{
	const char *dir = getenv("TMPDIR");
	auto_free char *path = xasprintf("%s/abctl-XXXXXX", dir && *dir ? dir : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

/* Writes it to `to`. */
static int bundle(const char *dir, const char *ref, bool dirty, int to)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0) {
		if (stdio(null, to))
			execl("/bin/sh", "sh", "-c", make_bundle, "abctl-repo", dir, ref,
			        dirty ? "1" : "0", (char *)NULL);
		_exit(EXIT_SYSTEM);
	}
	if (pid < 0)
		return fail_system("fork: %s", strerror(errno));
	int code = exit_of(pid);
	return code == 0           ? 0
	       : code == EXIT_SAID ? EXIT_SYSTEM
	                           : fail_system("git of %s ended with status %d", dir, code);
}

/* ---- into the workspace ---- */

static int put(const struct cli *cli, const char *session, const char *policy)
{
	static const char *const argv[] = {
	        "sh", "-c", "umask 077 && mkdir -p " BUNDLE_DIR " && exec cat >" BUNDLE_PATH, NULL};
	const struct session_command c = {
	        .argv = argv, .policy = policy, .name = "sh", .quiet = true};
	return session_exec(cli, session, &c);
}

/* In a child, whose stdin is the bundle. */
static int upload(const struct cli *cli, const char *session, const char *policy, int bundle_fd)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (lseek(bundle_fd, 0, SEEK_SET) < 0)
		return fail_system("the bundle: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		_exit(stdio(bundle_fd, null) ? put(cli, session, policy) : EXIT_SYSTEM);
	if (pid < 0)
		return fail_system("fork: %s", strerror(errno));
	int code = exit_of(pid);
	return code == 0             ? 0
	       : code == EXIT_SYSTEM ? code
	                             : fail_system("the bundle is not in the session's workspace: "
	                                           "writing it ended with status %d",
	                                       code);
}

/* ---- the session ---- */

static int make_session(const struct cli *cli, const char *pair, char **ret)
{
	const char *slash = strchr(pair, '/');
	auto_free char *user = xstrndup(pair, (size_t)(slash - pair));
	return session_make(cli, user, slash + 1, ret);
}

/* *ret is owned; NULL: root's default. */
static int policy_of(const struct cli *cli, const char *harness, char **ret)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/harnesses/");
	url_encode(&path, harness);
	if (path.failed)
		return fail_usage("'%.64s...' is no harness's name", harness);
	auto_json struct json *j = NULL;
	int r = query_get(cli, path.p, &j);
	const char *policy = json_str(j, "policy", NULL);
	*ret = policy ? xstrdup(policy) : NULL;
	return r;
}

static int has_checkout(const struct cli *cli, const char *session, bool *ret)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, session);
	auto_json struct json *j = NULL;
	int r = query_get(cli, path.p, &j);
	*ret = json_get(j, "repo") != NULL;
	return r;
}

static int bring_dir(
        const struct cli *cli, const struct checkout_ask *a, const char *dir, const char *ref)
{
	auto_free char *session = NULL, *policy = NULL;
	bool there = false;
	int r = start_session_check(a->session);
	if (r == 0)
		r = policy_of(cli, a->harness, &policy);
	if (r == 0)
		r = make_session(cli, a->session, &session);
	if (r == 0)
		r = has_checkout(cli, session, &there);
	if (r || there) {
		if (!r)
			fail_note("the session goes on with the checkout it has");
		return r;
	}
	auto_close int fd = nameless();
	if (fd < 0)
		return fail_system("a temporary file: %s", strerror(errno));
	r = bundle(dir, ref, a->dirty, fd);
	return r ? r : upload(cli, session, policy, fd);
}

/* ---- the argument ---- */

static bool is_dir(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int checkout_bring(const struct cli *cli, const struct checkout_ask *a, struct checkout *ret)
{
	const char *what = a->what;
	bool url = strstr(what, "://") != NULL;
	const char *hash = url ? strchr(what, '#') : is_dir(what) ? NULL : strrchr(what, '#');
	auto_free char *place = hash ? xstrndup(what, (size_t)(hash - what)) : xstrdup(what);
	const char *ref = hash ? hash + 1 : "";
	if (url && a->dirty)
		return fail_usage("--dirty goes with a directory");
	if (!url && !is_dir(place))
		return fail_usage("--repo: '%s' is no directory and no URL", place);
	if (hash && !*ref)
		return fail_usage("--repo: '%s' names no ref behind its #", what);
	int r = url ? 0 : bring_dir(cli, a, place, ref);
	if (r)
		return r;
	ret->url = url ? take(place) : NULL;
	ret->bundle = url ? NULL : xstrdup(BUNDLE_PATH);
	ret->ref = url && hash ? xstrdup(ref) : NULL; /* a bundle's HEAD is what was meant */
	return 0;
}
