#include "policy/lookup.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>

static char dir[] = "/tmp/policy_lookup.XXXXXX";

static char *write_file(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", dir, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0, "%s", name);
	return path;
}

static void line(const struct lookup *l, const char *key, const char *want_file, int want_line)
{
	const char *f = NULL;
	const struct yaml_node *n = lookup_line(l, key, &f);
	ok(n && n->key_line == want_line && strcmp(f, want_file) == 0, "%s is decided by %s:%d",
	        key, want_file, want_line);
}

int main(void)
{
	must(mkdtemp(dir) != NULL, "a directory");
	auto_free char *path = write_file(
	        "mine.yaml", "extends: offline\nlimits:\n  memory: 1G\nseccomp: {debug: true}\n");
	struct err e = {0};
	auto_lookup struct lookup *l = lookup_policy(path, &e);
	must(l != NULL, "a file: %s", e.text);
	is_str(l->policy.name, "mine", "named after the file");
	ok(l->ndocs == 3, "its file, offline and default");
	line(l, "limits.memory", path, 3);
	line(l, "seccomp.debug", path, 4);
	line(l, "egress.inject", "built-in/offline.yaml", 5);
	line(l, "limits.pids", "built-in/default.yaml", 10);
	const char *f = NULL;
	ok(lookup_line(l, "proc", &f) == NULL && !f, "nobody says anything about proc");

	auto_lookup struct lookup *b = lookup_policy("strict", &e);
	ok(b && b->ndocs == 2, "a built-in and what it extends");
	auto_free char *bad = write_file("bad.yaml", "limits: {memroy: 1G}\n");
	ok(!lookup_policy(bad, &e) && e.code == -EINVAL &&
	                strstr(e.text, "bad.yaml:1: unknown key"),
	        "a fault: %s", e.text);
	ok(!lookup_policy("nobody", &e) && e.code == -ENOENT &&
	                strstr(e.text, "no policy 'nobody'"),
	        "no such name");
	ok(!lookup_policy("/nonexistent/x.yaml", &e) && e.code == -ENOENT, "no such file: %s",
	        e.text);
	(void)unlink(path);
	(void)unlink(bad);
	(void)rmdir(dir);
	return done();
}
