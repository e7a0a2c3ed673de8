#include "policy/explain.h"
#include "base/mem.h"
#include "policy/bpf.h"
#include "policy/forms.h"
#include "policy/lookup.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/scmp.h"
#include "policy/show.h"
#include "policy/syscalls.h"
#include "policy/units.h"

#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>

static void decided(const struct lookup *l, const char *key, const char *otherwise)
{
	const char *file = NULL;
	const struct yaml_node *n = lookup_line(l, key, &file);
	if (n)
		printf("  decided by %s:%d: %s\n", file, n->key_line, key);
	else
		printf("  %s\n", otherwise);
}

/* ---- system calls ---- */

static void explain_rules(const struct syscall_row *row, uint32_t flags)
{
	auto_buf struct buf text = BUF_INIT(4096);
	syscalls_print(row, flags, &text);
	const char *rules = text.p ? strchr(text.p, '[') : NULL;
	if (rules)
		printf("  by argument: %s\n", rules);
}

/* The answer comes from the filter that would be loaded, not from the table beside it. */
static uint32_t filter_verdict(const struct policy *p, int nr, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = nr, .arch = bpf_arch()};
	memcpy(data.args, args, sizeof(data.args));
	uint32_t verdict = SECCOMP_RET_KILL_PROCESS;
	(void)!bpf_run(p->bpf, p->ninsns, &data, &verdict);
	return verdict;
}

static int explain_syscall(const struct lookup *l, const char *what)
{
	const struct policy *p = &l->policy;
	uint64_t number = 0;
	bool is_number = units_plain(what, &number) == 0;
	const struct syscall_row *row;
	if (is_number && number > SYSCALL_NR_MAX)
		return report_usage("--syscall: no number of a system call is above %d, as %s is",
		        SYSCALL_NR_MAX, what);
	row = is_number ? syscalls_by_number((int)number) : syscalls_find(what);
	if (!row && !is_number && scmp_number(what) < 0)
		return report_usage("--syscall: there is no system call '%s'", what);
	if (!row) {
		printf("%s: %s\n  not in the table: unknown calls get ENOSYS, and programs fall "
		       "back\n",
		        what, verdict_text(SYSCALLS_DEFAULT));
		return POLICYC_OK;
	}
	int nr = syscalls_number(row);
	if (nr < 0) {
		printf("%s: this architecture has no such call\n", row->name);
		return POLICYC_OK;
	}
	static const uint64_t zero[6];
	if (row->nrules) {
		printf("%s (%d): it depends: %s\n", row->name, nr, syscalls_why(row));
		explain_rules(row, p->flags);
	} else {
		printf("%s (%d): %s\n  group %s: %s\n", row->name, nr,
		        verdict_text(filter_verdict(p, nr, zero)), syscalls_group_name(row->group),
		        syscalls_why(row));
	}
	if (row->group == SYSCALLS_TRACE)
		decided(l, "seccomp.debug", "seccomp.debug is not set: false");
	else if (strcmp(row->name, "socket") == 0)
		decided(l, "seccomp.no_unix_sockets", "seccomp.no_unix_sockets is not set: false");
	else
		printf("  decided by the table of system calls, which no policy widens\n");
	return POLICYC_OK;
}

/* ---- paths ---- */

/* What every jail has, longest match first is found by comparing lengths. */
static const struct {
	const char *path, *what;
} places[] = {
        {"/", "read-only, empty but for what is named"},
        {"/usr", "read-only"},
        {"/bin", "read-only (of /usr)"},
        {"/sbin", "read-only (of /usr)"},
        {"/lib", "read-only (of /usr)"},
        {"/lib64", "read-only (of /usr)"},
        {"/etc", "read-only, made for the jail: nothing of the host's passwords or hosts"},
        {"/workspace", "writable: the session's, or empty"},
        {"/home/agent", "writable: the session's, or empty"},
        {"/tmp", "writable, gone with the jail"},
        {"/dev", "null zero full random urandom tty, own terminals"},
        {"/dev/shm", "writable, gone with the jail"},
        {"/proc", "the jail's own processes; kernel files masked"},
        {"/sys", "empty"},
        {"/opt/agent", "read-only: the agent's installed files"},
};

static const struct yaml_node *mount_line(
        const struct lookup *l, const char *target, const char **file)
{
	const struct yaml_node *list = lookup_line(l, "filesystem.mounts", file);
	if (!list)
		return NULL;
	yaml_each (n, list) {
		const struct yaml_node *t = yaml_get(n, "target");
		if (t && strcmp(t->text, target) == 0)
			return n;
	}
	return NULL;
}

static int explain_path(const struct lookup *l, const char *path)
{
	const struct policy *p = &l->policy;
	if (!form_path(path))
		return report_usage("--path: '%s' is not an absolute, normalised path", path);
	size_t best = 0, best_len = 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (path_within(path, places[i].path) && strlen(places[i].path) > best_len) {
			best = i;
			best_len = strlen(places[i].path);
		}
	const struct policy_mount *mount = NULL;
	for (uint32_t i = 0; i < p->nmounts; i++)
		if (path_within(path, p->mounts[i].target) &&
		        strlen(p->mounts[i].target) > best_len) {
			mount = &p->mounts[i];
			best_len = strlen(mount->target);
		}
	const char *file = NULL;
	if (mount) {
		printf("%s: %s, %s of the host\n", path, mount->writable ? "writable" : "read-only",
		        mount->source);
		const struct yaml_node *n = mount_line(l, mount->target, &file);
		if (n)
			printf("  decided by %s:%d: filesystem.mounts\n", file, n->line);
		return POLICYC_OK;
	}
	printf("%s: %s\n  below %s, as in every jail\n", path, places[best].what,
	        places[best].path);
	if (path_within(path, "/usr"))
		decided(l, "filesystem.root", "filesystem.root is not set: the host's /usr");
	return POLICYC_OK;
}

/* ---- hosts ---- */

static int explain_host(const struct lookup *l, const char *what)
{
	const struct policy *p = &l->policy;
	const char *colon = strrchr(what, ':');
	uint64_t port = 0;
	if (!colon || units_plain(colon + 1, &port) < 0 || port < 1 || port > 65535)
		return report_usage("--host: '%s' is not HOST:PORT", what);
	auto_free char *host = xstrndup(what, (size_t)(colon - what));
	const char *file = NULL;
	const struct yaml_node *list = lookup_line(l, "egress.inject", &file);
	for (uint32_t i = 0; i < p->ninject; i++) {
		const struct policy_inject *j = &p->inject[i];
		if (strcmp(j->host, host) != 0)
			continue;
		printf("%s: %s\n", what,
		        port == 80 ? "allowed"
		                   : "denied: an injected host is served on port 80 alone");
		printf("  goes to %s%s%s%s%s\n", j->upstream, j->header[0] ? ", header " : "",
		        j->header, j->secret[0] ? " from secret " : "", j->secret);
		if (list)
			yaml_each (n, list) {
				const struct yaml_node *h = yaml_get(n, "host");
				if (h && strcmp(h->text, host) == 0)
					printf("  decided by %s:%d: egress.inject\n", file,
					        h->line);
			}
		return POLICYC_OK;
	}
	printf("%s: denied: not in policy '%s'\n", what, p->name);
	decided(l, "egress.inject", "no file names a host: nothing goes out");
	return POLICYC_OK;
}

/* ---- the verbs ---- */

static int no_policy(const struct err *e)
{
	if (e->code != -EINVAL && e->code != -E2BIG)
		return report_unread(e);
	report_error(stderr, e);
	return POLICYC_REFUSED;
}

int explain_main(int argc, char **argv)
{
	static const struct {
		const char *option;
		int (*fn)(const struct lookup *l, const char *value);
	} options[] = {
	        {"--syscall", explain_syscall},
	        {"--path", explain_path},
	        {"--host", explain_host},
	};
	if (argc < 1)
		return report_usage(
		        "explain NAME|FILE [--syscall NAME|N] [--path P] [--host H:PORT]");
	struct err e = {0};
	auto_lookup struct lookup *l = lookup_policy(argv[0], &e);
	if (!l)
		return no_policy(&e);
	if (argc == 1)
		show_policy(&l->policy, stdout);
	for (int i = 1; i < argc; i += 2) {
		size_t o = 0;
		while (o < ARRAY_LEN(options) && strcmp(argv[i], options[o].option) != 0)
			o++;
		if (o == ARRAY_LEN(options) || i + 1 == argc)
			return report_usage("explain: '%s' is not understood", argv[i]);
		int code = options[o].fn(l, argv[i + 1]);
		if (code != POLICYC_OK)
			return code;
	}
	return POLICYC_OK;
}

int show_main(int argc, char **argv)
{
	if (argc != 1)
		return report_usage("show NAME|FILE");
	struct err e = {0};
	auto_lookup struct lookup *l = lookup_policy(argv[0], &e);
	if (!l)
		return no_policy(&e);
	show_policy(&l->policy, stdout);
	return POLICYC_OK;
}
