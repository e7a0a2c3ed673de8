#include "policy/compile.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "base/privs.h"
#include "base/sandbox.h"
#include "policy/builtin.h"
#include "policy/config_yaml.h"
#include "policy/policy_yaml.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/units.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct source {
	char *name, *label; /* owned */
	int fd;             /* the caller's */
	char *text;         /* owned, once read */
	size_t len;
};

struct job {
	int out;
	uint32_t uid, gid;
	struct source config; /* fd -1: none */
	struct source policies[LIMIT_POLICIES];
	size_t n;
	struct idents idents;
};

static void source_done(struct source *s)
{
	free(s->name);
	free(s->label);
	free(s->text);
}

static void job_free(struct job **j)
{
	source_done(&(*j)->config);
	for (size_t i = 0; i < (*j)->n; i++)
		source_done(&(*j)->policies[i]);
	idents_done(&(*j)->idents);
	free(*j);
}

/* ---- the command line ---- */

static int number(const char *text, size_t len, uint32_t *ret)
{
	char digits[12];
	uint64_t value = 0;
	if (len == 0 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (units_plain(digits, &value) < 0 || value > INT32_MAX)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* FD[:LABEL] */
static int source_set(struct source *s, const char *text, const char *fallback)
{
	size_t digits = strcspn(text, ":");
	uint32_t fd = 0;
	if (number(text, digits, &fd) < 0)
		return -EINVAL;
	s->fd = (int)fd;
	s->label = xstrdup(text[digits] == ':' && text[digits + 1] ? text + digits + 1 : fallback);
	return 0;
}

static int add_policy(struct job *j, const char *text)
{
	size_t name = strcspn(text, "=");
	if (j->n == LIMIT_POLICIES || name == 0 || text[name] != '=')
		return -EINVAL;
	struct source *s = &j->policies[j->n++];
	s->name = xstrndup(text, name);
	return source_set(s, text + name + 1, s->name);
}

static int read_option(struct job *j, const char *option, const char *value)
{
	uint32_t n = 0;
	if (strcmp(option, "--policy") == 0)
		return add_policy(j, value);
	if (strcmp(option, "--config") == 0)
		return j->config.label ? -EINVAL : source_set(&j->config, value, "agentboxd.yaml");
	if (number(value, strlen(value), &n) < 0)
		return -EINVAL;
	if (strcmp(option, "--out") == 0)
		j->out = (int)n;
	else if (strcmp(option, "--uid") == 0)
		j->uid = n;
	else if (strcmp(option, "--gid") == 0)
		j->gid = n;
	else
		return -EINVAL;
	return 0;
}

static int read_options(struct job *j, int argc, char **argv)
{
	for (int i = 0; i < argc; i += 2)
		if (i + 1 == argc || read_option(j, argv[i], argv[i + 1]) < 0)
			return report_usage("compile: '%s' is not understood", argv[i]);
	if (j->out < 0)
		return report_usage("compile: --out FD is missing");
	return POLICYC_OK;
}

/* ---- reading, then the filter ---- */

static int source_read(struct source *s, struct err *e)
{
	if (s->fd < 0)
		return 0;
	int r = fd_slurp(s->fd, LIMIT_YAML_FILE, &s->text, &s->len);
	if (r < 0)
		return slurp_err(e, r, s->label, LIMIT_YAML_FILE);
	fd_close(take_fd(s->fd));
	return 0;
}

static int give_up_root(const struct job *j, struct err *e)
{
	if (geteuid() == 0)
		return privs_drop(j->uid, j->gid, e);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_errno(e, "no_new_privs") : 0;
}

/* Memory, the two streams and the way out.  What is denied fails with EPERM instead of killing:
 * an allocator that wants a new call says so in a message. */
static int enter_filter(struct err *e)
{
	static const int calls[] = {SYS_read, SYS_write, SYS_pread64, SYS_lseek, SYS_close,
	        SYS_fstat, SYS_newfstatat, SYS_ftruncate, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap,
	        SYS_madvise, SYS_futex, SYS_getrandom, SYS_rt_sigaction, SYS_rt_sigprocmask,
	        SYS_rt_sigreturn, SYS_sigaltstack, SYS_gettid, SYS_getpid, SYS_tgkill, SYS_exit,
	        SYS_exit_group};
	return sandbox_enter(calls, ARRAY_LEN(calls), NULL, 0, SANDBOX_DENY_EPERM, e);
}

static int prepare(struct job *j, struct err *e)
{
	int r = give_up_root(j, e);
	if (r == 0)
		r = idents_load(&j->idents, "/etc/passwd", "/etc/group", e);
	if (r == 0)
		r = source_read(&j->config, e);
	for (size_t i = 0; r == 0 && i < j->n; i++)
		r = source_read(&j->policies[i], e);
	return r == 0 ? enter_filter(e) : r;
}

/* ---- compiling ---- */

static bool replaced(const struct job *j, const char *name)
{
	for (size_t i = 0; i < j->n; i++)
		if (strcmp(j->policies[i].name, name) == 0)
			return true;
	return false;
}

/* Every file is tried, so that one run shows the first fault of each.  Returns the number of
 * faulty ones. */
static size_t fill(const struct job *j, struct policy_set *s)
{
	size_t faults = 0;
	struct err e = {0};
	for (size_t i = 0; i < builtin_count(); i++) {
		if (replaced(j, builtin_at(i)->name))
			continue;
		if (policy_builtin((int)i, &s->policies[s->count++], &e) < 0) {
			report_error(stderr, &e);
			faults++;
		}
	}
	for (size_t i = 0; i < j->n; i++) {
		const struct source *from = &j->policies[i];
		const struct keys_ctx k = {
		        .file = from->label, .e = &e, .note = report_note, .note_ctx = stderr};
		if (policy_parse(&k, from->name, from->text, from->len, &s->policies[s->count++]) <
		        0) {
			report_error(stderr, &e);
			faults++;
		}
	}
	const struct keys_ctx k = {
	        .file = j->config.label, .e = &e, .note = report_note, .note_ctx = stderr};
	int r = j->config.text
	                ? config_parse(&k, &j->idents, j->config.text, j->config.len, &s->config)
	                : config_defaults(&j->idents, &s->config, &e);
	if (r < 0) {
		report_error(stderr, &e);
		faults++;
	}
	return faults;
}

static int write_set(const struct job *j, struct policy_set *s, size_t size)
{
	struct err e = {0};
	s->magic = POLICY_SET_MAGIC;
	s->size = size;
	if (policy_set_check(s, size, &e) < 0) {
		report_error(stderr, &e);
		return POLICYC_REFUSED;
	}
	int r = fd_write_all(j->out, s, size);
	if (r < 0) {
		(void)err_set(&e, r, "writing the set: %s", strerror(-r));
		return report_system(&e);
	}
	return POLICYC_OK;
}

int compile_main(int argc, char **argv)
{
	__attribute__((cleanup(job_free))) struct job *j = xnew(struct job);
	j->out = j->config.fd = -1;
	j->uid = j->gid = ID_POLICYC;
	int code = read_options(j, argc, argv);
	if (code != POLICYC_OK)
		return code;
	struct err e = {0};
	if (prepare(j, &e) < 0)
		return report_system(&e);
	size_t count = j->n;
	for (size_t i = 0; i < builtin_count(); i++)
		count += !replaced(j, builtin_at(i)->name);
	if (count > LIMIT_POLICIES) {
		(void)fprintf(stderr, "%zu policies, %d are possible\n", count, LIMIT_POLICIES);
		return POLICYC_REFUSED;
	}
	size_t size = sizeof(struct policy_set) + count * sizeof(struct policy);
	auto_free struct policy_set *s = xcalloc(1, size);
	return fill(j, s) ? POLICYC_REFUSED : write_set(j, s, size);
}
