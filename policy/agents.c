#include "policy/agents.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PREFIX/lib/agentbox or PREFIX/libexec/agentbox, and build/<mode>/bin. */
static const char *const places[] = {
        "../../share/agentbox/harnesses/agents", "../../../harnesses/agents"};

static DIR *open_place(char **ret_dir)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		auto_free char *path = xasprintf("%s/%s", self, places[i]);
		DIR *d = opendir(path);
		if (d) {
			char *plain = realpath(path, NULL);
			*ret_dir = plain ? plain : take(path);
			return d;
		}
	}
	return NULL;
}

/* What is wrong with an agent's file is told by its own lint. */
static struct agent *load(int dir, const char *name)
{
	auto_free char *path = xasprintf("%s/agent.yaml", name);
	auto_free char *text = NULL;
	size_t n = 0;
	struct err e;
	if (file_slurp_plain_at(dir, path, LIMIT_YAML_FILE, &text, &n, &e) < 0)
		return NULL;
	return agent_parse(path, text, n, &e);
}

static int by_name(const void *a, const void *b)
{
	const struct agent *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

int agents_load(struct agents *ret, struct err *e)
{
	struct agents a = {.n = 0};
	DIR *d = open_place(&a.dir);
	if (!d)
		return err_set(e, -ENOENT, "no agents are beside this program");
	for (const struct dirent *x; a.n < AGENTS_MAX && (x = readdir(d)) != NULL;) {
		struct agent *one = name_valid(x->d_name) ? load(dirfd(d), x->d_name) : NULL;
		if (one)
			a.v[a.n++] = one;
	}
	closedir(d);
	if (a.n)
		qsort(a.v, a.n, sizeof(a.v) / AGENTS_MAX, by_name);
	*ret = a;
	return 0;
}

void agents_done(struct agents *a)
{
	for (size_t i = 0; i < a->n; i++)
		agent_free(a->v[i]);
	free(a->dir);
	memset(a, 0, sizeof(*a));
}
