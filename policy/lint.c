#include "policy/lint.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/agents.h"
#include "policy/arch.h"
#include "policy/builtin.h"
#include "policy/config_yaml.h"
#include "policy/fits.h"
#include "policy/harness.h"
#include "policy/harness_keys.h"
#include "policy/lookup.h"
#include "policy/policy_yaml.h"
#include "policy/policyc.h"
#include "policy/outlets.h"
#include "policy/report.h"
#include "policy/syscalls.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- kinds of files ---- */

/* A source that others may change is not root's word: root should hear of it before a jail does. */
static void note_source(const struct keys_ctx *k, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		keys_note(k, 1, "%s: %s", path, strerror(errno));
	else if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		keys_note(k, 1, "%s can be changed by others than root", path);
}

/* What a jail would be refused for, said before there is one; an image that is not here yet, or not
 * to be read by whoever asks, is a remark like any source's. */
static int check_image(const struct keys_ctx *k, const struct policy *p)
{
	const bool writable = p->flags & POLICY_INNER_ROOT_PACKAGES;
	const char *const needed[] = {"usr", writable ? "etc" : NULL, writable ? "var" : NULL};
	struct stat st, host;
	if (stat(p->image, &st) < 0) {
		note_source(k, p->image);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return keys_error(k, 1, "image %s is no directory", p->image);
	if (stat("/", &host) == 0 && st.st_dev == host.st_dev && st.st_ino == host.st_ino)
		return keys_error(k, 1, "image %s is the host's own root", p->image);
	for (size_t i = 0; i < ARRAY_LEN(needed) && needed[i]; i++) {
		auto_free char *path = xasprintf("%s/%s", p->image, needed[i]);
		if (stat(path, &st) < 0 && errno == ENOENT)
			return keys_error(k, 1, "image %s has no /%s: it is no root file system",
			        p->image, needed[i]);
	}
	if (stat(p->image, &st) == 0 && (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH)))
		return keys_error(k, 1,
		        "image %s is not root's alone; remedy: chown root, chmod go-w", p->image);
	return 0;
}

static int lint_policy(const char *file, const char *text, size_t n, struct err *e)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	const char *dot = strrchr(base, '.');
	auto_free char *name = xstrndup(base, dot ? (size_t)(dot - base) : strlen(base));
	const struct keys_ctx k = {.file = file, .e = e, .note = report_note, .note_ctx = stdout};
	auto_free struct policy *p = xnew(struct policy);
	int r = policy_parse(&k, name, text, n, p);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < p->nmounts; i++)
		note_source(&k, p->mounts[i].source);
	for (uint32_t i = 0; i < p->nbindable; i++)
		note_source(&k, p->bindable[i].source);
	return p->root == POLICY_ROOT_IMAGE ? check_image(&k, p) : 0;
}

static int lint_config(const char *file, const char *text, size_t n, struct err *e)
{
	const struct keys_ctx k = {.file = file, .e = e, .note = report_note, .note_ctx = stdout};
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	struct idents ids = {0};
	int r = idents_load(&ids, "/etc/passwd", "/etc/group", e);
	if (r == 0)
		r = config_parse(&k, &ids, text, n, c);
	idents_done(&ids);
	return r;
}

/* A harness that asks for more than its policy gives is refused by the daemon; here the policies of
 * this machine can say so, where they know the name. */
static int within_policy(const struct keys_ctx *k, const struct harness *h)
{
	const char *name = h->policy ? h->policy : "default";
	struct err e = {0};
	auto_lookup struct lookup *l = lookup_policy(name, &e);
	if (!l) {
		keys_note(k, 1, "not compared with its policy: %s", e.text);
		return 0;
	}
	struct limits unused;
	struct outlets reach;
	if (limits_narrow(&l->policy.limits, &h->narrow, &unused, &e) == 0 &&
	        outlets_make(h->egress_only, h->secrets, &reach, &e) == 0 &&
	        outlets_fits(&reach, &l->policy, &e) == 0)
		return 0;
	/* Which policy stands for none is the configuration's word. */
	if (h->policy)
		return keys_error(k, 1, "policy %s: %s", name, e.text);
	keys_note(k, 1, "under policy %s it would be refused: %s", name, e.text);
	return 0;
}

static const struct agent *find_agent(const struct agents *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i]->name, name) == 0)
			return all->v[i];
	return NULL;
}

static void note_enforced(
        const struct keys_ctx *k, const struct harness *h, const struct agent *a, uint32_t enforced)
{
	for (enum ability x = 0; x < ABILITY_COUNT; x++)
		if (ability_in(enforced, x))
			keys_note(k, fits_line(h, x),
			        "%s: agent '%s' cannot do that (%s), agentbox does: %s",
			        ability_key(x), a->name, ability_name(x), ability_enforced(x));
}

/* Whether its agent can keep it to what it says; of agents that are not in the bundle only the
 * daemon knows. */
static int fits_agent(const struct keys_ctx *k, const struct harness *h)
{
	static char exec[] = "exec";
	const struct agent command = {.name = exec, .driver = exec};
	struct agents all = {.n = 0};
	struct err e = {0};
	const struct agent *a = strcmp(h->backend, exec) == 0 ? &command : NULL;
	int r = agents_load(&all, &e);
	if (r < 0 && !a)
		keys_note(k, 1, "not compared with its agent: %s", e.text);
	if (r == 0 && !a) {
		a = find_agent(&all, h->backend);
		if (!a)
			keys_note(k, 1, "not compared with its agent: no '%s' in %s", h->backend,
			        all.dir);
	}
	struct fit fit;
	r = a ? fits(h, a, (const struct agent *const *)all.v, all.n, &fit, k->e) : 0;
	if (a && r == 0) {
		note_enforced(k, h, a, fit.enforced);
		fit_done(&fit);
	}
	agents_done(&all);
	return r;
}

/* What a step cannot be, as far as the files beside this one tell; the daemon knows them all. */
static int check_step(
        const struct keys_ctx *k, const struct harness_step *s, const char *dir, size_t dir_len)
{
	struct err e = {0};
	auto_free char *file = xasprintf("%.*s%s.md", (int)dir_len, dir, s->harness);
	auto_free char *text = NULL;
	size_t n = 0;
	if (file_slurp(file, LIMIT_YAML_FILE, &text, &n) < 0) {
		keys_note(k, s->line, "harness '%s' is not beside this file: not looked at",
		        s->harness);
		return 0;
	}
	struct harness *h = harness_parse(file, text, n, NULL, NULL, &e);
	if (!h)
		return keys_error(k, s->line, "harness '%s': %s", s->harness, e.text);
	bool nested = h->nsteps > 0;
	harness_unref(h);
	return nested ? keys_error(k, s->line, "harness '%s' is a pipeline itself", s->harness) : 0;
}

static int check_steps(const struct keys_ctx *k, const struct harness *h)
{
	const char *slash = strrchr(k->file, '/');
	int r = 0;
	for (size_t i = 0; i < h->nsteps && r == 0; i++)
		r = check_step(k, &h->steps[i], k->file, slash ? (size_t)(slash + 1 - k->file) : 0);
	return r;
}

static int lint_harness(const char *file, const char *text, size_t n, struct err *e)
{
	const struct keys_ctx k = {.file = file, .e = e, .note = report_note, .note_ctx = stdout};
	struct harness *h = harness_parse(file, text, n, report_note, stdout, e);
	if (!h)
		return -EINVAL;
	int r = harness_unsupported(h, report_note, stdout, e);
	if (r == 0 && h->nsteps)
		r = check_steps(&k, h);
	if (r == 0 && !h->nsteps)
		r = within_policy(&k, h);
	if (r == 0 && !h->nsteps)
		r = fits_agent(&k, h);
	harness_unref(h);
	return r;
}

/* What its driver would not know of: of an agent in use it is said where it is asked for. */
static int within_driver(
        const struct keys_ctx *k, const struct agent *a, const char *text, size_t n)
{
	enum { DRIVERS_MAX = 64 };
	const char *names[DRIVERS_MAX] = {0};
	for (size_t i = 0; i + 1 < DRIVERS_MAX && driver_name(i); i++)
		names[i] = driver_name(i);
	auto_yaml struct yaml_doc *doc = yaml_parse(k->file, 1, text, n, k->e);
	if (!doc)
		return -EINVAL; /* it was parsed a moment ago */
	const struct yaml_node *driver = yaml_get(yaml_root(doc), "driver");
	const struct yaml_node *acp = yaml_get(yaml_root(doc), "acp");
	if (!driver_find(a->driver))
		return keys_unknown(k, driver->line, "driver", a->driver, names);
	if (acp && strcmp(a->driver, "acp") != 0)
		return keys_error(
		        k, acp->line, "'acp' is for the driver acp; this one is '%s'", a->driver);
	return 0;
}

static int lint_agent(const char *file, const char *text, size_t n, struct err *e)
{
	const struct keys_ctx k = {.file = file, .e = e};
	struct agent *a = agent_parse(file, text, n, e);
	int r = a ? within_driver(&k, a, text, n) : -EINVAL;
	agent_free(a);
	return r;
}

static const struct kind {
	const char *name;
	int (*lint)(const char *file, const char *text, size_t n, struct err *e);
	const struct key_table *keys;
} kinds[] = {
        {"policy", lint_policy, &policy_keys},
        {"config", lint_config, &config_keys},
        {"harness", lint_harness, &harness_keys},
        {"agent", lint_agent, &agent_keys},
};

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* ---- verbs ---- */

static int lint_file(const struct kind *kind, const char *file)
{
	auto_free char *text = NULL;
	size_t n = 0;
	struct err e = {0};
	int r = file_slurp(file, LIMIT_YAML_FILE, &text, &n);
	if (r < 0)
		(void)slurp_err(&e, r, file, LIMIT_YAML_FILE);
	if (r < 0 && r != -E2BIG)
		return report_unread(&e);
	if (r == 0)
		r = kind->lint(file, text, n, &e);
	if (r == 0)
		return POLICYC_OK;
	report_error(stdout, &e);
	return POLICYC_REFUSED;
}

int lint_main(int argc, char **argv)
{
	const struct kind *kind = argc > 0 ? kind_find(argv[0]) : NULL;
	if (!kind || argc < 2)
		return report_usage("lint policy|config|harness|agent FILE...");
	int worst = POLICYC_OK; /* the codes grow with the weight */
	for (int i = 1; i < argc; i++) {
		int code = lint_file(kind, argv[i]);
		worst = code > worst ? code : worst;
	}
	return worst;
}

int keys_main(int argc, char **argv)
{
	const struct kind *kind = argc > 0 ? kind_find(argv[0]) : NULL;
	bool mdoc = argc == 2 && strcmp(argv[1], "--mdoc") == 0;
	if (!kind || argc > 2 || (argc == 2 && !mdoc))
		return report_usage("keys policy|config|harness|agent [--mdoc]");
	auto_buf struct buf text = BUF_INIT(LIMIT_YAML_FILE);
	keys_print(kind->keys, "", mdoc, &text);
	(void)fputs(text.p ? text.p : "", stdout);
	return POLICYC_OK;
}

int syscalls_main(int argc, char **argv)
{
	uint32_t flags = 0;
	const struct arch *arch = arch_native();
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--debug") == 0)
			flags = POLICY_DEBUG;
		else if (strcmp(argv[i], "--arch") == 0 && i + 1 < argc)
			arch = arch_find(argv[++i]);
		else
			return report_usage("syscalls [--debug] [--arch x86_64|aarch64]");
		if (!arch)
			return report_usage("--arch %s: x86_64 or aarch64", argv[i]);
	}
	for (size_t i = 0; i < syscalls_count(); i++) {
		auto_buf struct buf line = BUF_INIT(4096);
		syscalls_print(syscalls_row(i), arch, flags, &line);
		(void)puts(line.p);
	}
	return POLICYC_OK;
}

int list_main(int argc, char **argv)
{
	(void)argv;
	if (argc != 0)
		return report_usage("list");
	for (size_t i = 0; i < builtin_count(); i++) {
		struct err e = {0};
		auto_free struct policy *p = xnew(struct policy);
		if (policy_builtin((int)i, p, &e) < 0) {
			report_error(stderr, &e);
			return POLICYC_REFUSED;
		}
		printf("%s\t%s\n", p->name, p->description);
	}
	return POLICYC_OK;
}
