#include "policy/explain.h"
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/bpf.h"
#include "policy/explain_host.h"
#include "policy/forms.h"
#include "policy/keys.h"
#include "policy/lookup.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/scmp.h"
#include "policy/show.h"
#include "policy/syscalls.h"
#include "policy/units.h"

#include <linux/seccomp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- system calls ---- */

static void explain_rules(const struct syscall_row *row, uint32_t flags)
{
	auto_buf struct buf text = BUF_INIT(4096);
	syscalls_print(row, arch_native(), flags, &text);
	const char *rules = text.p ? strchr(text.p, '[') : NULL;
	if (rules)
		printf("  by argument: %s\n", rules);
}

/* The answer comes from the filter that would be loaded, not from the table beside it. */
static uint32_t filter_verdict(const struct policy *p, int nr, const uint64_t args[6])
{
	struct seccomp_data data = {.nr = nr, .arch = arch_native()->audit};
	memcpy(data.args, args, sizeof(data.args));
	uint32_t verdict = SECCOMP_RET_KILL_PROCESS;
	(void)!bpf_run(p->bpf, p->ninsns, &data, &verdict);
	return verdict;
}

static bool number_of(const char *text, uint64_t *ret)
{
	char *end = NULL;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 0); /* 0x too: flags are written so */
	return *end == '\0' && errno == 0;
}

static int no_such_call(const char *what)
{
	const size_t n = syscalls_count();
	auto_free const char **names = xcalloc(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = syscalls_row(i)->name;
	const char *near = keys_nearest(what, names);
	return report_usage("there is no system call '%s'%s%s%s", what,
	        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* "EPERM (Operation not permitted)" */
static void print_verdict(uint32_t verdict)
{
	const char *name = verdict_text(verdict);
	if (verdict == SECCOMP_RET_ALLOW)
		printf("%s: the kernel decides the rest", name);
	else if ((verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		printf("%s (%s)", name, strerror((int)(verdict & SECCOMP_RET_DATA)));
	else
		printf("%s: the process ends with SIGSYS", name);
}

static void print_deciding(
        const struct syscall_row *row, const uint64_t args[6], int given, uint32_t flags)
{
	int rule = syscalls_rule(row, args, flags);
	int most = 0; /* number of arguments that any rule looks at */
	for (size_t i = 0; i < row->nrules; i++)
		for (uint8_t t = 0; t < row->rules[i].n; t++)
			if (row->rules[i].tests[t].arg >= most)
				most = row->rules[i].tests[t].arg + 1;
	if (rule >= 0) {
		auto_buf struct buf text = BUF_INIT(1024);
		syscalls_print_rule(&row->rules[rule], &text);
		printf("  rule %d of %zu holds: %s\n", rule + 1, row->nrules, text.p);
	} else {
		printf("  none of its %zu rules holds: %s\n", row->nrules,
		        verdict_text(syscalls_otherwise(row, flags)));
	}
	if (given < most)
		printf("  arguments that were not given count as 0\n");
}

static void call_decided(const struct lookup *l, const struct syscall_row *row)
{
	if (row->group == SYSCALLS_TRACE)
		explain_decided(l, "seccomp.debug", "seccomp.debug is not set: false");
	else if (strcmp(row->name, "socket") == 0)
		explain_decided(
		        l, "seccomp.no_unix_sockets", "seccomp.no_unix_sockets is not set: false");
	else
		printf("  decided by the table of system calls, which no policy widens\n");
}

static int outside_table(const char *what, bool is_number, uint64_t number)
{
	if (!is_number && scmp_number(arch_native(), what) < 0)
		return no_such_call(what);
	if (is_number && number > SYSCALL_NR_MAX)
		return report_usage(
		        "no number of a system call is above %d, as %s is", SYSCALL_NR_MAX, what);
	printf("%s: ", what);
	print_verdict(SYSCALLS_DEFAULT);
	printf("\n  not in the table: unknown calls get ENOSYS, and programs fall back\n");
	return POLICYC_OK;
}

static void print_call(const struct policy *p, const struct syscall_row *row, int nr, int argc,
        const uint64_t args[6])
{
	printf("%s (%d)", row->name, nr);
	for (int i = 0; i < argc; i++)
		printf("%s0x%llx%s", i ? ", " : " with ", (unsigned long long)args[i], "");
	printf(": ");
	if (row->nrules && argc == 0) {
		printf("it depends: %s\n", syscalls_why(row));
		explain_rules(row, p->flags);
		return;
	}
	print_verdict(filter_verdict(p, nr, args));
	if (row->nrules) {
		printf("\n  %s\n", syscalls_why(row));
		print_deciding(row, args, argc, p->flags);
	} else {
		printf("\n  group %s: %s\n", syscalls_group_name(row->group), syscalls_why(row));
	}
}

/* NAME|NUMBER [ARGUMENT...] */
static int explain_syscall(const struct lookup *l, int argc, char **argv)
{
	const char *what = argv[0];
	uint64_t number = 0, args[6] = {0};
	bool is_number = number_of(what, &number);
	if (argc > 7)
		return report_usage("a system call has at most six arguments");
	for (int i = 1; i < argc; i++)
		if (!number_of(argv[i], &args[i - 1]))
			return report_usage("argument '%s' of %s is no number", argv[i], what);
	const struct syscall_row *row = NULL;
	if (!is_number)
		row = syscalls_find(what);
	else if (number <= SYSCALL_NR_MAX)
		row = syscalls_by_number((int)number, arch_native());
	if (!row)
		return outside_table(what, is_number, number);
	int nr = syscalls_number(row, arch_native());
	if (nr < 0) {
		printf("%s: this architecture has no such call\n", row->name);
		return POLICYC_OK;
	}
	print_call(&l->policy, row, nr, argc - 1, args);
	call_decided(l, row);
	return POLICYC_OK;
}

/* ---- paths ---- */

enum access { READ_ONLY, WRITABLE, EMPTY };

/* What every jail has, longest match first is found by comparing lengths. */
static const struct {
	const char *path;
	enum access access;
	const char *what;
} places[] = {
        {"/", EMPTY, "read-only, empty but for what is named"},
        {"/usr", READ_ONLY, "read-only"},
        {"/bin", READ_ONLY, "read-only (of /usr)"},
        {"/sbin", READ_ONLY, "read-only (of /usr)"},
        {"/lib", READ_ONLY, "read-only (of /usr)"},
        {"/lib64", READ_ONLY, "read-only (of /usr)"},
        {"/etc", READ_ONLY,
                "read-only, made for the jail: nothing of the host's passwords or hosts"},
        {"/workspace", WRITABLE, "writable: the session's, or empty"},
        {"/home/agent", WRITABLE, "writable: the session's, or empty"},
        {"/tmp", WRITABLE, "writable, gone with the jail"},
        {"/run", WRITABLE, "writable, gone with the jail"},
        {"/dev", EMPTY, "null zero full random urandom tty, own terminals"},
        {"/dev/null", WRITABLE, "a node"},
        {"/dev/zero", WRITABLE, "a node"},
        {"/dev/full", WRITABLE, "a node"},
        {"/dev/random", WRITABLE, "a node"},
        {"/dev/urandom", WRITABLE, "a node"},
        {"/dev/tty", WRITABLE, "a node"},
        {"/dev/pts", WRITABLE, "the jail's own terminals"},
        {"/dev/shm", WRITABLE, "writable, gone with the jail"},
        {"/proc", READ_ONLY, "the jail's own processes; kernel files masked"},
        {"/sys", EMPTY, "empty"},
        {"/opt/agent", READ_ONLY, "read-only: the agent's installed files"},
};

/* Where the agent asks to read or to write: what it gets. */
static const char *outcome(enum access a, bool itself, bool write)
{
	if (a == WRITABLE)
		return "allowed, as far as modes let uid 1000";
	if (write)
		return "denied: EROFS (Read-only file system)";
	return a == EMPTY && !itself ? "denied: ENOENT (No such file or directory)"
	                             : "allowed where it exists, as far as modes let uid 1000";
}

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

/* A directory on the way to a place is there, too. */
static bool leads_on(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (path_within(places[i].path, path))
			return true;
	return false;
}

static size_t place_of(const char *path)
{
	size_t best = 0;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (path_within(path, places[i].path) &&
		        strlen(places[i].path) > strlen(places[best].path))
			best = i;
	return best;
}

static const struct policy_mount *mount_of(const struct policy *p, const char *path, size_t above)
{
	const struct policy_mount *best = NULL;
	for (uint32_t i = 0; i < p->nmounts; i++)
		if (path_within(path, p->mounts[i].target) && strlen(p->mounts[i].target) > above) {
			best = &p->mounts[i];
			above = strlen(best->target);
		}
	return best;
}

static void print_mount(
        const struct lookup *l, const struct policy_mount *m, const char *path, const char *verb)
{
	const char *file = NULL;
	bool write = verb && strcmp(verb, "write") == 0;
	if (verb)
		printf("%s: %s: %s\n  ", path, verb,
		        outcome(m->writable ? WRITABLE : READ_ONLY, true, write));
	else
		printf("%s: ", path);
	printf("%s, %s of the host\n", m->writable ? "writable" : "read-only", m->source);
	const struct yaml_node *n = mount_line(l, m->target, &file);
	if (n)
		printf("  decided by %s:%d: filesystem.mounts\n", file, n->line);
}

/* PATH [read|write] */
static int explain_path(const struct lookup *l, int argc, char **argv)
{
	const char *path = argv[0], *verb = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		return report_usage("path PATH [read|write]: '%s' is one word too many", argv[2]);
	if (verb && strcmp(verb, "read") != 0 && strcmp(verb, "write") != 0)
		return report_usage("path PATH [read|write]: '%s' is neither", verb);
	if (!form_path(path))
		return report_usage("'%s' is not an absolute, normalised path", path);
	size_t i = place_of(path);
	const struct policy_mount *mount = mount_of(&l->policy, path, strlen(places[i].path));
	if (mount) {
		print_mount(l, mount, path, verb);
		return POLICYC_OK;
	}
	if (verb)
		printf("%s: %s: %s\n  %s\n", path, verb,
		        outcome(places[i].access, leads_on(path), strcmp(verb, "write") == 0),
		        places[i].what);
	else
		printf("%s: %s\n", path, places[i].what);
	printf("  below %s, as in every jail\n", places[i].path);
	if (path_within(path, "/usr"))
		explain_decided(
		        l, "filesystem.root", "filesystem.root is not set: the host's /usr");
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

static const struct subject {
	const char *name, *option, *words;
	int (*fn)(const struct lookup *l, int argc, char **argv);
} subjects[] = {
        {"syscall", "--syscall", "NAME|N [ARG...]", explain_syscall},
        {"path", "--path", "PATH [read|write]", explain_path},
        {"host", "--host", "HOST[:PORT]", explain_host},
};

static int not_understood(const char *word)
{
	const char *names[ARRAY_LEN(subjects) + 1] = {NULL};
	for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
		names[i] = subjects[i].name;
	const char *near = keys_nearest(word, names);
	return report_usage("explain: '%s' is not understood%s%s%s", word,
	        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* NAME SUBJECT WORD..., or NAME --SUBJECT WORD [--SUBJECT WORD...] */
static int explain_asked(const struct lookup *l, int argc, char **argv)
{
	for (int i = 0; i < argc;) {
		const struct subject *s = subjects, *end = subjects + ARRAY_LEN(subjects);
		while (s < end && strcmp(argv[i], s->name) != 0 && strcmp(argv[i], s->option) != 0)
			s++;
		if (s == end)
			return not_understood(argv[i]);
		if (i + 1 == argc)
			return report_usage("explain: '%s' needs %s", argv[i], s->words);
		int words = strcmp(argv[i], s->option) == 0 ? 1 : argc - i - 1;
		int code = s->fn(l, words, argv + i + 1);
		if (code != POLICYC_OK)
			return code;
		i += 1 + words;
	}
	return POLICYC_OK;
}

int explain_main(int argc, char **argv)
{
	if (argc < 1)
		return report_usage(
		        "explain NAME|FILE [syscall NAME|N [ARG...] | host HOST[:PORT] | "
		        "path PATH [read|write]]");
	struct err e = {0};
	auto_lookup struct lookup *l = lookup_policy(argv[0], &e);
	if (!l)
		return no_policy(&e);
	if (argc == 1)
		show_policy(&l->policy, stdout);
	return explain_asked(l, argc - 1, argv + 1);
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
