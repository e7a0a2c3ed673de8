#include "abctl/local.h"
#include "abctl/capture.h"
#include "abctl/fail.h"
#include "abctl/show.h"
#include "abctl/verb.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ARGS_MAX = 64,
	OUTPUT_MAX = 1 << 20, /* a policy printed whole is a few KiB; each line is bounded */
	JSON_MAX = 8 << 20,   /* escaped, at most six bytes for one */
};

int local_find(const char *const *places, const char *name, int mode, char path[PATH_MAX])
{
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	if (n <= 0)
		return -errno;
	dir[n] = '\0';
	char *slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	slash[1] = '\0';
	for (; *places; places++) {
		int len = snprintf(path, PATH_MAX, "%s%s%s", dir, *places, name);
		if (len > 0 && len < PATH_MAX && access(path, mode) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Beside abctl in a build tree, in ../lib/agentbox or ../libexec/agentbox once installed.  Never
 * by PATH: what is run must be of the same build. */
static int find(char path[PATH_MAX])
{
	static const char *const places[] = {"", "../lib/agentbox/", "../libexec/agentbox/", NULL};
	return local_find(places, "agentbox-policyc", X_OK, path);
}

/* Becomes agentbox-policyc; returns when that fails. */
static int become(const char *const *argv)
{
	char path[PATH_MAX];
	int r = find(path);
	if (r < 0)
		return fail_system("agentbox-policyc is neither beside abctl nor in "
		                   "../lib/agentbox: %s",
		        strerror(-r));
	char *args[ARGS_MAX];
	size_t n = 0;
	args[n++] = xstrdup("abctl"); /* what its messages are to begin with */
	for (; *argv; argv++) {
		if (n == ARGS_MAX - 1)
			return fail_usage("at most %d files at once", ARGS_MAX - 4);
		args[n++] = xstrdup(*argv); /* for the few lines until it is replaced */
	}
	args[n] = NULL;
	signal(SIGPIPE, SIG_DFL); /* ignored here, and that would be inherited */
	execv(path, args);
	return fail_system("%s: %s", path, strerror(errno));
}

static int become_child(const void *argv)
{
	return become(argv);
}

int local_capture(const char *const *argv, char **ret)
{
	return capture(become_child, argv, "agentbox-policyc", OUTPUT_MAX, ret);
}

/* "[note: ]FILE:LINE: TEXT", or TEXT where no place is known. */
static void put_message(struct jw *w, char *line)
{
	static const char note[] = "note: ";
	bool is_note = strncmp(line, note, sizeof(note) - 1) == 0;
	if (is_note)
		line += sizeof(note) - 1;
	jw_open(w, NULL, '{');
	jw_str(w, "level", is_note ? "note" : "error");
	for (char *colon = strchr(line, ':'); colon; colon = strchr(colon + 1, ':')) {
		char *end = NULL;
		long at = colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
		if (!end || strncmp(end, ": ", 2) != 0)
			continue;
		jw_bytes(w, "file", line, (size_t)(colon - line));
		jw_int(w, "line", at);
		line = end + 2;
		break;
	}
	jw_str(w, "text", line);
	jw_close(w, '}');
}

static int print(struct buf *json)
{
	buf_puts(json, "\n");
	return show_text(json);
}

static int lint(const struct cli *cli, const char *const *argv)
{
	if (!cli->json)
		return become(argv);
	auto_free char *out = NULL;
	int code = local_capture(argv, &out);
	/* A file that cannot be read is told on stderr; what was found in the others stays, also
	 * that it is nothing.  argv: lint KIND FILE FILE... */
	bool several = argv[2] && argv[3];
	if (code != EXIT_DONE && code != EXIT_FAILED && (code != EXIT_USAGE || !several))
		return code;
	auto_buf struct buf json = BUF_INIT(JSON_MAX);
	struct jw w = JW_INIT(&json);
	jw_open(&w, NULL, '{');
	jw_bool(&w, "ok", code == EXIT_DONE);
	jw_open(&w, "messages", '[');
	char *rest = out;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line)
			put_message(&w, line);
	jw_close(&w, ']');
	jw_close(&w, '}');
	int r = print(&json);
	return r == EXIT_DONE ? code : r;
}

int local_lint(const struct cli *cli, const char *kind, int argc, char **argv)
{
	const char *args[64] = {"lint", kind};
	if (argc < 1 || argc > (int)ARRAY_LEN(args) - 3)
		return fail_usage("abctl %s lint FILE... (at most %zu)", kind, ARRAY_LEN(args) - 3);
	for (int i = 0; i < argc; i++)
		args[2 + i] = argv[i];
	return lint(cli, args);
}

int local_explain(const struct cli *cli, const char *const *argv, bool asked)
{
	if (!cli->json)
		return become(argv);
	auto_free char *out = NULL;
	int code = local_capture(argv, &out);
	if (code != EXIT_DONE)
		return code;
	auto_buf struct buf json = BUF_INIT(JSON_MAX);
	struct jw w = JW_INIT(&json);
	jw_open(&w, NULL, '{');
	char *rest = out;
	if (!asked) {
		jw_str(&w, "yaml", out);
	} else {
		jw_str(&w, "answer", strsep(&rest, "\n"));
		jw_open(&w, "reasons", '[');
		for (char *line; (line = strsep(&rest, "\n"));)
			if (*line)
				jw_str(&w, NULL, line + strspn(line, " "));
		jw_close(&w, ']');
	}
	jw_close(&w, '}');
	return print(&json);
}
