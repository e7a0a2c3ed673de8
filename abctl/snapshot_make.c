#include "abctl/snapshot_make.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/session_exec.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BODY_MAX = 64 << 10 };

/* ---- requests ---- */

static int keep(const struct cli *cli, const char *name, const char *session, bool replace,
        struct json **ret)
{
	auto_buf struct buf body = BUF_INIT(BODY_MAX);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_str(&w, "name", name);
	jw_str(&w, "sessionId", session);
	jw_bool(&w, "replace", replace);
	jw_close(&w, '}');
	if (body.failed)
		return fail_usage("'%.64s...' is no snapshot's name", name);
	const struct client_request req = {
	        .method = "POST", .path = "/v1/snapshots", .body = body.p, .body_len = body.len};
	return query_send(cli, &req, ret);
}

static int forget(const struct cli *cli, const char *what, const char *name)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, what);
	url_encode(&path, name);
	const struct client_request req = {.method = "DELETE", .path = path.p};
	auto_json struct json *answer = NULL;
	return query_send(cli, &req, &answer);
}

/* `argv` in a jail of the session, with our stdio: 0, or an exit code of ours after having said
 * why. */
static int in_jail(const struct cli *cli, const struct snapshot_args *a, const char *session,
        const char *snapshot, const char *const *argv)
{
	const struct session_command c = {.argv = argv,
	        .policy = a->policy ? a->policy : "offline",
	        .snapshot = snapshot,
	        .name = "prepare"};
	int code = session_exec(cli, session, &c);
	if (code == 0 || code == EXIT_USAGE || code == EXIT_SYSTEM)
		return code;
	fail_note("%s ended with exit code %d: no snapshot is made", argv[0], code);
	return EXIT_FAILED;
}

/* ---- a directory ---- */

/* tar is this machine's, with the rights of who asks: what they may not read is not packed. */
static _Noreturn void pack(const char *dir, int out)
{
	if (dup2(out, STDOUT_FILENO) < 0)
		_exit(EXIT_SYSTEM);
	execlp("tar", "tar", "-C", dir, "-cf", "-", "--", ".", (char *)NULL);
	(void)fail_system("tar: %s", strerror(errno));
	_exit(EXIT_SYSTEM);
}

static int wait_for_tar(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail_system("tar: %s", strerror(errno));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
	               ? 0
	               : fail_system("tar could not pack all of it: no snapshot is made");
}

static int send_dir(const struct cli *cli, const struct snapshot_args *a, const char *session)
{
	static const char *const argv[] = {
	        "tar", "-C", "/workspace", "--no-same-owner", "-xpf", "-", NULL};
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_system("pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		pack(a->from, ends[1]);
	fd_close(ends[1]);
	if (pid < 0 || dup2(ends[0], STDIN_FILENO) < 0) {
		fd_close(ends[0]);
		return fail_system("starting tar: %s", strerror(errno));
	}
	fd_close(ends[0]);
	int r = in_jail(cli, a, session, NULL, argv);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0) /* the last end of tar's pipe */
		(void)close(STDIN_FILENO);
	fd_close(null);
	int packed = wait_for_tar(pid);
	return r ? r : packed;
}

/* ---- the whole ---- */

static bool is_dir(const char *from)
{
	return from[0] == '/' || from[0] == '.';
}

static int prepare(const struct cli *cli, const struct snapshot_args *a, const char *session,
        const char *snapshot)
{
	const char *const argv[] = {"sh", "-c", a->prepare, NULL};
	return a->prepare ? in_jail(cli, a, session, snapshot, argv) : 0;
}

static int said(const struct cli *cli, const char *name, const struct json *answer)
{
	if (cli->json)
		query_print(answer);
	else
		printf("%s: %lld files, %lld bytes\n", name,
		        (long long)json_int(answer, "files", 0),
		        (long long)json_int(answer, "bytes", 0));
	return EXIT_DONE;
}

/* In a session of its own, which goes whatever comes of it. */
static int make_there(const struct cli *cli, const struct snapshot_args *a, const char *name,
        const char *from, const char *beside, struct json **ret)
{
	auto_json struct json *first = NULL;
	auto_free char *session = NULL;
	int r = from ? keep(cli, beside, from, false, &first) : 0;
	if (r)
		return r;
	r = session_make(cli, "snapshot", beside, &session);
	if (r == 0 && !from)
		r = send_dir(cli, a, session);
	if (r == 0)
		r = prepare(cli, a, session, from ? beside : NULL);
	if (r == 0)
		r = keep(cli, name, session, a->force, ret);
	if (session && forget(cli, "/v1/sessions/", session) && r == 0)
		r = EXIT_SYSTEM;
	if (from && forget(cli, "/v1/snapshots/", beside) && r == 0)
		r = EXIT_SYSTEM;
	return r;
}

int snapshot_make(const struct cli *cli, const struct snapshot_args *a, const char *name)
{
	bool dir = is_dir(a->from);
	struct stat st;
	if (!name_valid(name))
		return fail_usage("'%.64s' is no snapshot's name (lower-case letters, digits, '.', "
		                  "'_' and '-')",
		        name);
	if (dir && (stat(a->from, &st) < 0 || !S_ISDIR(st.st_mode)))
		return fail_usage("%s is no directory", a->from);
	if (a->policy && !a->prepare && !dir)
		return fail_usage("--policy is of the jail that --prepare runs in");
	auto_free char *session = NULL;
	auto_json struct json *answer = NULL;
	int r = dir ? 0 : query_session(cli, a->from, &session);
	if (r)
		return r;
	char beside[ID_MAX];
	id_new("prepare", beside);
	for (char *p = beside; *p; p++) /* a name as a snapshot's */
		if (*p == '_')
			*p = '-';
	r = dir || a->prepare ? make_there(cli, a, name, session, beside, &answer)
	                      : keep(cli, name, session, a->force, &answer);
	return r ? r : said(cli, name, answer);
}
