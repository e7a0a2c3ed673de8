#include "tests/t.h"
#include "base/fd.h"
#include "base/ids.h"
#include "jail/host.h"

#include <fcntl.h>
#include <sys/wait.h>

static void probed(void)
{
	struct err e = {.code = 0};
	struct cgroup_tree tree;
	char name[64];
	(void)snprintf(name, sizeof(name), "agentbox-test-%d", getpid());
	int r = cgroup_tree_open(name, &tree, &e);
	must(r == 0, "a cgroup subtree (%s)", r < 0 ? e.text : "");
	auto_close int state = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fds = fd_count();
	struct host h;
	host_probe(&tree, state, ID_STORE_BASE + ID_LEASES * ID_BLOCK, &h);
	for (int i = 0; i < LAYER_COUNT; i++)
		printf("# %-14s %-4s %s%s%s\n", layer_name((enum layer)i),
		        h.layers & LAYER_BIT(i) ? "yes" : "no", h.detail[i],
		        h.remedy[i][0] ? "; remedy: " : "", h.remedy[i]);
	ok(fd_count() == fds, "probing leaks nothing");
	uint32_t isolation = layers_of_kind(LAYER_KIND_ISOLATION);
	ok((h.layers & isolation) == isolation, "this host has every isolation layer");
	for (int i = 0; i < LAYER_COUNT; i++) {
		if (i == LAYER_LIMIT_DISK) /* disks_open's */
			continue;
		bool have = h.layers & LAYER_BIT(i);
		ok(h.detail[i][0] && have == !h.remedy[i][0],
		        "%s: a detail, a remedy only where it lacks", layer_name((enum layer)i));
	}
	cgroup_tree_close(&tree);
	ok(access(tree.path, F_OK) < 0, "the subtree is removed");
}

/* A daemon in a cgroup that was once killed cannot make jails: it must say so, not lose each. */
static void killed_before(void)
{
	struct cgroup_tree tree;
	char name[64], text[16];
	(void)snprintf(name, sizeof(name), "agentbox-killed-%d", getpid());
	must(cgroup_tree_open(name, &tree, NULL) == 0, "a cgroup subtree");
	static const struct limits none;
	struct cgroup c = CGROUP_NONE;
	must(cgroup_make(&tree, "own", &none, &c, NULL) == 0 && cgroup_kill(&c, NULL) == 0,
	        "a cgroup that was killed, empty");
	pid_t pid = fork();
	if (pid == 0) {
		auto_close int procs = openat(c.dirfd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		int n = snprintf(text, sizeof(text), "%d", getpid());
		if (procs < 0 || write(procs, text, (size_t)n) != n)
			_exit(2);
		auto_close int state = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
		static struct host h;
		host_probe(&tree, state, ID_STORE_BASE + ID_LEASES * ID_BLOCK, &h);
		_exit(h.layers & LAYER_BIT(LAYER_CGROUP) ? 1 : 0);
	}
	int status = 0;
	(void)!waitpid(pid, &status, 0);
	/* 1 is fine too: a kernel that lets such children live */
	ok(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "probed from inside it (%x)", status);
	printf("# layer cgroup there: %s\n", WEXITSTATUS(status) == 1 ? "yes" : "no, as found");
	cgroup_remove(&tree, &c);
	cgroup_tree_close(&tree);
}

static void required(void)
{
	static struct policy p = {.name = "strict", .required = LAYER_BIT(LAYER_LIMIT_MEMORY)};
	static struct host h = {.layers = LAYER_BIT(LAYER_USERNS)};
	struct err e = {.code = 0};
	(void)snprintf(h.detail[LAYER_LIMIT_MEMORY], LAYER_TEXT_MAX, "no controller");
	(void)snprintf(h.remedy[LAYER_LIMIT_MEMORY], LAYER_TEXT_MAX, "boot differently");
	ok(host_require(&h, &p, &e) == -ENOPKG, "a missing layer is refused");
	is_str(e.text,
	        "policy 'strict' requires limit.memory (memory limit): no controller; remedy: boot "
	        "differently",
	        "with its name, what was found and the remedy");
	h.layers |= LAYER_BIT(LAYER_LIMIT_MEMORY);
	ok(host_require(&h, &p, &e) == 0, "a layer that is there is enough");
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("probing layers takes root");
	required();
	probed();
	killed_before();
	return done();
}
