#include "abctl/pack_fetch.h"
#include "abctl/fail.h"
#include "abctl/pack_tree.h"
#include "base/fd.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_NO_PROGRAM = 90 }; /* of these scripts */

static const char curl[] =
        "exec 3>&1 >&2 </dev/null\n"
        "command -v curl >/dev/null || exit 90\n"
        "echo curl >&3\n"
        "exec curl --fail --silent --show-error --location --max-redirs 5 --proto =https "
        "--max-filesize 16777216 -- \"$1\" >&3\n";

/* Nothing of a repository runs: it is neither checked out nor are its hooks ours. */
static const char git[] =
        "exec 3>&1 >&2 </dev/null\n"
        "command -v git >/dev/null || exit 90\n"
        "export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null "
        "GIT_ALLOW_PROTOCOL=https\n"
        "mkdir -p /workspace/r && cd /workspace/r && git init -q . || exit\n"
        "git fetch -q --depth 1 --no-tags --no-recurse-submodules \"$1\" \"${2:-HEAD}\" || exit\n"
        "git rev-parse 'FETCH_HEAD^{commit}' >&3 || exit\n"
        "git archive --format=tar --prefix=pack/ FETCH_HEAD | gzip -c >&3\n";

static int not_fetched(
        const struct pack_fetch *f, const struct pack_source *s, const char *program, int code)
{
	const char *host = s->from + strlen("https://");
	int n = (int)strcspn(host, "/:");
	if (code < 0)
		return -code;
	if (code == EXIT_NO_PROGRAM)
		return fail_system("%s fetches it, and the root that policy '%s' shows has none",
		        program, f->jail.policy);
	return fail_system(
	        "%s could not fetch %s (status %d); does policy '%s' allow %.*s? remedy: "
	        "--policy NAME of one with `extends: install` and `egress: { allow: "
	        "[%.*s] }`",
	        program, s->text, code, f->jail.policy, n, host, n, host);
}

static int by_script(struct pack_fetch *f, const struct pack_source *s, const char *program,
        const char *script, int file)
{
	const char *argv[] = {"sh", "-c", script, "pack", s->from, s->ref, NULL};
	char head[AGENT_HEAD_MAX];
	int code = agent_fetch_run(&f->jail, argv, file, head);
	if (code)
		return not_fetched(f, s, program, code);
	if (s->kind == PACK_GIT)
		memcpy(f->commit, head, sizeof(head));
	return 0;
}

static int archive(struct pack_fetch *f, const struct pack_source *s, int file)
{
	if (s->kind == PACK_NPM)
		return agent_fetch_npm(&f->jail, s->from, file);
	return s->kind == PACK_GIT ? by_script(f, s, "git", git, file)
	                           : by_script(f, s, "curl", curl, file);
}

static int open_archive(const struct pack_fetch *f, const struct pack_source *s)
{
	if (s->kind != PACK_FILE)
		return openat(f->jail.dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return open(s->from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int pack_fetch(struct pack_fetch *f, const struct pack_source *s, int tree)
{
	static const struct agent_unpack_most most = {PACK_BYTES_MAX, PACK_FILES_MAX};
	static const struct agent_take all = {"", ""};
	if (s->kind == PACK_DIR) {
		struct err e = {0};
		return pack_tree_copy(s->from, tree, &e) < 0
		               ? fail_usage("%s is no pack: %s", s->text, e.text)
		               : 0;
	}
	f->jail.most = &most;
	auto_close int file = open_archive(f, s);
	if (file < 0)
		return fail_system("%s: %s", s->text, strerror(errno));
	int code = s->kind == PACK_FILE ? 0 : archive(f, s, file);
	if (code == 0)
		code = agent_fetch_digest(file, f->integrity);
	/* gzip of git's says when it was made: its commit is what tells. */
	if (s->kind == PACK_GIT)
		f->integrity[0] = '\0';
	return code ? code : agent_fetch_unpack(&f->jail, s->text, file, tree, &all, 1);
}
