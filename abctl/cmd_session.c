#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/session_exec.h"
#include "abctl/session_files.h"
#include "abctl/session_tar.h"
#include "abctl/show.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { PREWARM_MAX = 4096 };

struct session_args {
	bool recursive, home, wait;
	const char *out, *in;
};

static const struct opt opts[] = {
        {"recursive", 'r', OPT_FLAG, offsetof(struct session_args, recursive), NULL,
                "`rm`: a directory with all below it"},
        {"output", 'o', OPT_TEXT, offsetof(struct session_args, out), "FILE",
                "`export`: where the archive goes; '-' is stdout"},
        {"file", 'f', OPT_TEXT, offsetof(struct session_args, in), "FILE",
                "`import`: the archive; '-' is stdin"},
        {"home", 0, OPT_FLAG, offsetof(struct session_args, home), NULL,
                "`export`, `import`: the agent's home and conversations, too"},
        {"wait", 0, OPT_FLAG, offsetof(struct session_args, wait), NULL,
                "`prewarm`: until it is done"},
        {.name = NULL},
};

static const char *done_text(const char *word)
{
	if (strcmp(word, "rm") == 0)
		return "removed";
	return strcmp(word, "pin") == 0 ? "pinned" : "unpinned";
}

/* What is asked of the session itself. */
static int of_session(const struct cli *cli, const char *word, const char *session)
{
	auto_free char *id = NULL;
	int r = query_session(cli, session, &id);
	if (r)
		return r;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, id);
	if (strcmp(word, "show") == 0)
		return show_object(cli, path.p);
	struct client_request req = {.method = strcmp(word, "pin") == 0 ? "PUT" : "DELETE"};
	if (strcmp(word, "rm") != 0)
		buf_puts(&path, "/pin");
	req.path = path.p;
	return query_say(cli, &req, "%s %s", done_text(word), id);
}

/* One that is there, or that of a pair, which is made. */
static int get_session(const struct cli *cli, const char *session, char **ret)
{
	const char *slash = strchr(session, '/');
	if (!slash)
		return query_session(cli, session, ret);
	auto_free char *user = xstrndup(session, (size_t)(slash - session));
	return session_make(cli, user, slash + 1, ret);
}

static void say_prewarmed(const struct json *answer, const char *id, const char *harness)
{
	bool ready = strcmp(json_str(answer, "state", ""), "ready") == 0;
	const char *why = json_str(answer, "why", NULL);
	printf("%s is %s for %s: ", id, ready ? "ready" : "being prepared", harness);
	if (why)
		printf("its workspace alone, for %s\n", why);
	else
		printf("an agent %s in it\n", ready ? "waits" : "is started");
}

static int prewarm(const struct cli *cli, const char *session, const char *harness, bool wait)
{
	auto_free char *id = NULL;
	int r = get_session(cli, session, &id);
	if (r)
		return r;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BUF_INIT(PREWARM_MAX);
	buf_puts(&path, "/v1/sessions/");
	url_encode(&path, id);
	buf_puts(&path, wait ? "/prewarm?wait=1" : "/prewarm");
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_str(&w, "harness", harness);
	jw_close(&w, '}');
	if (body.failed)
		return fail_usage("'%.64s...' is too long for a harness", harness);
	const struct client_request req = {
	        .method = "POST", .path = path.p, .body = body.p, .body_len = body.len};
	auto_json struct json *answer = NULL;
	r = query_send(cli, &req, &answer);
	if (r)
		return r;
	if (cli->json)
		query_print(answer);
	else
		say_prewarmed(answer, id, harness);
	return 0;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct session_args *a = args;
	const char *word = argv[0], *path = argc > 2 ? argv[2] : NULL;
	if (strcmp(word, "ls") == 0)
		return session_files_ls(cli, argv[1], path ? path : "");
	if (!path && (strcmp(word, "show") == 0 || strcmp(word, "rm") == 0 ||
	                     strcmp(word, "pin") == 0 || strcmp(word, "unpin") == 0))
		return of_session(cli, word, argv[1]);
	if (!path && strcmp(word, "export") == 0)
		return session_export(cli, argv[1], a->out, a->home);
	if (!path && strcmp(word, "import") == 0)
		return session_import(cli, argv[1], a->in, a->home);
	if (path && strcmp(word, "prewarm") == 0)
		return prewarm(cli, argv[1], path, a->wait);
	if (path && strcmp(word, "rm") == 0)
		return session_files_rm(cli, argv[1], path, a->recursive);
	if (path && strcmp(word, "mkdir") == 0)
		return session_files_mkdir(cli, argv[1], path);
	if (path && strcmp(word, "cp") == 0)
		return session_files_cp(cli, argv[1], path);
	return fail_usage("abctl session %s", cmd_session.synopsis);
}

const struct verb cmd_session = {
        .name = "session",
        .synopsis = "(show | pin | unpin | rm) SESSION | ls SESSION [PATH] | cp FROM TO | "
                    "(mkdir | rm [-r]) SESSION PATH | export SESSION [--home] [-o FILE] | "
                    "import USER/GOAL [--home] [-f FILE] | prewarm SESSION HARNESS [--wait]",
        .summary = "one session: look at it, its files, or remove it",
        .help = "SESSION is an id or USER/GOAL. `rm SESSION` deletes workspace, home, events and "
                "artifacts;\n"
                "it is refused while a run of the session runs or waits. A pinned session is\n"
                "never evicted, and nothing of its runs goes by age or number (`retention`).\n"
                "\n"
                "`prewarm` prepares a session for its next run of HARNESS, and makes it where "
                "there\n"
                "is none: the workspace as that run would find it, and an agent that waits where\n"
                "the harness has `warm`.\n"
                "\n"
                "The others are of files in the workspace, whether a run goes on or not. Of `cp`\n"
                "one side is SESSION:PATH and the other a path here, or - for stdin or stdout;\n"
                "directories are copied with all below them, but for links. What cannot be\n"
                "read is said and left out, also by `export`: the exit code is 1 then.\n"
                "\n"
                "`export` writes a tar archive: workspace/ with its files, session.json, "
                "runs.jsonl,\n"
                "events.jsonl. `import` makes a new session of the files of such an archive. With\n"
                "--home both take the agent's home, too, where it keeps its conversations: the\n"
                "next run goes on with those. Whatever else is there, as what the agent has "
                "logged\n"
                "in with, is in the archive then.\n",
        .words = "show pin unpin rm ls cp mkdir export import prewarm",
        .opts = opts,
        .args_size = sizeof(struct session_args),
        .min = 2,
        .max = 3,
        .run = run,
};
