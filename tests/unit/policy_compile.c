#include "policy/compile.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "policy/policyc.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int file(const char *text)
{
	int fd = memfd_create("input", 0);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0 && lseek(fd, 0, SEEK_SET) == 0,
	        "a file to read");
	return fd;
}

struct outcome {
	int code;
	char said[2048];
	struct policy_set *set; /* owned, NULL: nothing was written */
	size_t size;
};

/* What the child can still do after the verb: neither open nor make a socket. */
static int confined(void)
{
	if (open("/etc/passwd", O_RDONLY) != -1 || errno != EPERM)
		return 201;
	if (socket(AF_UNIX, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 202;
	if (geteuid() == 0)
		return 203;
	return 0;
}

static void compile(struct outcome *o, int argc, char **argv, int out)
{
	int ends[2];
	must(pipe(ends) == 0, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 2);
		close(ends[0]);
		int code = compile_main(argc, argv);
		int loose = code == POLICYC_OK ? confined() : 0;
		_exit(loose ? loose : code);
	}
	close(ends[1]);
	ssize_t n = fd_read_full(ends[0], o->said, sizeof(o->said) - 1);
	o->said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	int status = 0;
	waitpid(pid, &status, 0);
	o->code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	off_t size = lseek(out, 0, SEEK_END);
	o->size = (size_t)size;
	o->set = size ? xcalloc(1, (size_t)size) : NULL;
	if (o->set)
		must(fd_pread_full(out, o->set, o->size, 0) == size, "the set is read back");
}

static struct outcome run(const char *a, const char *b, const char *config)
{
	struct outcome o = {0};
	auto_close int out = memfd_create("out", 0);
	auto_close int fa = file(a);
	auto_close int fb = file(b);
	auto_close int fc = file(config);
	auto_free char *oa = xasprintf("strict=%d:/etc/agentbox/policy/strict.yaml", fa);
	auto_free char *ob = xasprintf("mine=%d", fb);
	auto_free char *oc = xasprintf("%d:/etc/agentbox/agentboxd.yaml", fc);
	auto_free char *oo = xasprintf("%d", out);
	char *argv[] = {(char[]){"--out"}, oo, (char[]){"--policy"}, oa, (char[]){"--policy"}, ob,
	        (char[]){"--config"}, oc, NULL};
	compile(&o, 8, argv, out);
	return o;
}

static void good(void)
{
	struct outcome o = run("limits: {memory: 1G}\n", "extends: strict\n", "runs: {max: 7}\n");
	struct err e = {0};
	must(o.code == POLICYC_OK && o.set, "compiles, confined (%d): %s", o.code, o.said);
	ok(policy_set_check(o.set, o.size, &e) == 0, "and is believed: %s", e.text);
	ok(o.set->count == 6 && o.set->config.max_runs == 7, "four built-ins and two files");
	int strict = policy_find(o.set, "strict"), mine = policy_find(o.set, "mine");
	must(strict >= 0 && mine >= 0 && policy_find(o.set, "demo") >= 0, "all are there");
	is_str(o.set->policies[strict].source, "/etc/agentbox/policy/strict.yaml",
	        "a file replaces the built-in of its name");
	ok(o.set->policies[strict].limits.memory_bytes == 1 << 30, "with its own limits");
	ok(o.set->policies[mine].flags & POLICY_STRICT_PROC,
	        "extends means the built-in, not what replaces it");
	free(o.set);
}

static void faulty(void)
{
	struct outcome o = run("limits: {memroy: 1G}\n", "extends: offlin\n", "runs: {max: 0}\n");
	ok(o.code == POLICYC_REFUSED && !o.set, "refused, nothing written (%d)", o.code);
	ok(strstr(o.said, "/etc/agentbox/policy/strict.yaml:1: unknown key 'memroy'") &&
	                strstr(o.said, "mine:1: unknown built-in policy 'offlin'") &&
	                strstr(o.said, "/etc/agentbox/agentboxd.yaml:1: 'max'"),
	        "the first fault of each file is told");
	printf("# %s", o.said);
}

static void usage(void)
{
	static const char *const wrong[][3] = {{"--out", "x"}, {"--out"}, {"--nope", "3"},
	        {"--policy", "a=3"}, {"--policy", "3"}, {"--config", "x"}};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		auto_close int out = memfd_create("out", 0);
		auto_free char *a = xstrdup(wrong[i][0]);
		auto_free char *b = wrong[i][1] ? xstrdup(wrong[i][1]) : NULL;
		char *argv[] = {a, b, NULL};
		struct outcome o = {0};
		compile(&o, b ? 2 : 1, argv, out);
		ok(o.code == POLICYC_USAGE && strstr(o.said, "usage"), "usage: %s %s", wrong[i][0],
		        b ? b : "");
	}
}

int main(void)
{
	good();
	faulty();
	usage();
	return done();
}
