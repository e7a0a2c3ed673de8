#include "abctl/agent_install.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/pack.h"
#include "abctl/pack_facts.h"
#include "abctl/pack_fetch.h"
#include "abctl/pack_grants.h"
#include "abctl/pack_tree.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/term.h"
#include "client/url.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_MAX = 64 << 10, ASK_MS = 10000 };

/* One that is made, from a source to its place. */
struct making {
	const struct cli *cli;
	const struct pack_args *args;
	const char *name;       /* borrowed, or NULL: its manifest says */
	const struct json *old; /* borrowed: the record of what it replaces, or NULL */
	struct agent_trees trees;
	struct pack_source source;
	struct pack_fetch fetch;
	struct pack_facts facts;
	struct pack_grants grants;
	struct agent_sum sum;
	int tree; /* owned */
};

static void making_done(struct making *m)
{
	fd_close(m->tree);
	agent_trees_close(&m->trees);
	pack_source_done(&m->source);
	pack_facts_done(&m->facts);
	pack_grants_done(&m->grants);
}

/* ---- the record ---- */

/* Of a file that is root's by now. */
static int sum_file(int tree, const char *path, char ret[DIGEST_INTEGRITY])
{
	auto_close int fd = openat(tree, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? fail_system("%s: %s", path, strerror(errno)) : agent_fetch_digest(fd, ret);
}

static int put_harnesses(const struct making *m, struct jw *w)
{
	jw_open(w, "files", '[');
	for (size_t i = 0; i < m->facts.nharnesses; i++) {
		const struct pack_harness *h = &m->facts.harnesses[i];
		char digest[DIGEST_INTEGRITY];
		int code = sum_file(m->tree, h->file, digest);
		if (code)
			return code;
		jw_open(w, NULL, '{');
		jw_str(w, "harness", h->name);
		jw_str(w, "file", h->file);
		jw_str(w, "digest", digest);
		jw_close(w, '}');
	}
	jw_close(w, ']');
	return 0;
}

static int put_record(const struct making *m, struct buf *to)
{
	struct jw w = JW_INIT(to);
	char now[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), now);
	jw_open(&w, NULL, '{');
	jw_str(&w, "pack", m->facts.name);
	jw_str(&w, "version", m->facts.version);
	jw_str(&w, "description", m->facts.description);
	jw_str(&w, "source", m->source.text);
	if (m->fetch.commit[0])
		jw_str(&w, "commit", m->fetch.commit);
	if (m->fetch.integrity[0])
		jw_str(&w, "integrity", m->fetch.integrity);
	jw_str(&w, "digest", m->sum.digest);
	jw_int(&w, "bytes", m->sum.bytes);
	jw_str(&w, "harnesses", m->facts.dir);
	int code = put_harnesses(m, &w);
	jw_texts(&w, "grants", m->grants.list);
	jw_str(&w, "installedAt", now);
	jw_close(&w, '}');
	buf_puts(to, "\n");
	if (code == 0 && to->failed)
		code = fail_usage("the pack's record would be more than %d bytes", RECORD_MAX);
	return code;
}

/* ---- what has become of it ---- */

static const struct json *find_harness(const struct json *record, const char *name)
{
	const struct json *list = json_get(record, "files");
	for (const struct json *x = json_first(list); x; x = json_next(x))
		if (strcmp(json_str(x, "harness", ""), name) == 0)
			return x;
	return NULL;
}

/* A line a harness: whether it is new, other than before, or gone. */
static void put_changes(struct buf *to, const struct json *was, const struct json *is)
{
	const struct json *old = json_get(was, "files"), *new = json_get(is, "files");
	for (const struct json *x = json_first(new); x; x = json_next(x)) {
		const struct json *before = find_harness(was, json_str(x, "harness", ""));
		bool same = before &&
		            strcmp(json_str(before, "digest", ""), json_str(x, "digest", "-")) == 0;
		buf_printf(to, "  %s%s\n", json_str(x, "harness", ""),
		        !was || same ? ""
		        : before     ? " (changed)"
		                     : " (new)");
	}
	for (const struct json *x = json_first(old); x; x = json_next(x))
		if (!find_harness(is, json_str(x, "harness", "")))
			buf_printf(to, "  %s (removed)\n", json_str(x, "harness", ""));
}

/* What agentboxd makes of it, if one is there. */
static void look(const struct making *m)
{
	for (size_t i = 0; i < m->facts.nharnesses; i++) {
		const char *name = m->facts.harnesses[i].name;
		auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
		buf_puts(&path, "/v1/harnesses/");
		url_encode(&path, name);
		struct err e = {0};
		auto_json struct json *x = query_quietly(m->cli, path.p, ASK_MS, &e);
		if (!x)
			return;
		const char *pack = json_str(x, "pack", ""), *why = json_str(x, "error", NULL);
		if (!json_str(x, "name", NULL))
			fail_note("agentboxd does not see '%s': is %s below one of its "
			          "directories of harnesses (harness_dirs, which it opens when it "
			          "starts)?",
			        name, m->trees.dir);
		else if (strcmp(pack, m->facts.name) != 0)
			fail_note("'%s' is also a harness of root's own, which is the one that is "
			          "used",
			        name);
		else if (why)
			fail_note("'%s' cannot be used yet: %s", name, why);
	}
}

static int print(const struct making *m, const char *text, size_t n, bool changed)
{
	struct err e = {0};
	auto_json struct json *record = json_parse(text, n, &e);
	auto_buf struct buf b = BUF_INIT(4 * (size_t)RECORD_MAX);
	if (m->cli->json) {
		struct jw w = JW_INIT(&b);
		jw_open(&w, NULL, '{');
		jw_bool(&w, "changed", changed);
		jw_tree(&w, "record", record);
		jw_close(&w, '}');
		buf_puts(&b, "\n");
		return show_text(&b);
	}
	buf_printf(&b, "%s ", m->facts.name);
	neutral_line(&b, m->facts.version, strlen(m->facts.version));
	buf_printf(&b, "%s%s in %s/%s\n", *m->facts.version ? " " : "",
	        !changed ? "is as it was"
	        : m->old ? "updated"
	                 : "installed",
	        m->trees.dir, m->facts.name);
	if (changed)
		put_changes(&b, m->old, record);
	for (char **g = m->grants.list; g && *g; g++)
		buf_printf(&b, "  granted: %s\n", *g);
	return show_text(&b);
}

/* ---- steps ---- */

static int obtain(struct making *m)
{
	struct err e = {0};
	auto_free char *registry = agent_registry(m->args->registry);
	agent_fetch_watch();
	m->fetch.jail = (struct agent_fetch){.cli = m->cli,
	        .policy = m->args->policy ? m->args->policy : "install",
	        .registry = registry,
	        .agent = m->source.name,
	        .dir = m->trees.work_fd,
	        .progress = !m->cli->json && term_of(STDERR_FILENO).smart};
	int code = pack_fetch(&m->fetch, &m->source, m->tree);
	m->fetch.jail.registry = NULL;
	if (code)
		return code;
	if (m->source.kind != PACK_DIR)
		m->tree = pack_tree_unwrap(&m->trees, m->tree, &e);
	if (m->tree < 0 || agent_tree_seal(m->tree, &m->sum, &e) < 0 ||
	        pack_tree_check(m->tree, &e) < 0)
		return fail_usage("%s is no pack: %s", m->source.text, e.text);
	return pack_facts_read(m->tree, m->name, m->source.name, &m->facts);
}

static bool is_as_it_was(const struct making *m)
{
	return m->old && strcmp(json_str(m->old, "digest", ""), m->sum.digest) == 0 &&
	       strcmp(json_str(m->old, "commit", ""), m->fetch.commit) == 0 &&
	       pack_grants_same(&m->grants, json_get(m->old, "grants"));
}

static int place(struct making *m)
{
	struct err e = {0};
	auto_buf struct buf record = BUF_INIT(RECORD_MAX);
	int code = put_record(m, &record);
	if (code)
		return code;
	bool changed = !is_as_it_was(m);
	if (changed && (agent_tree_write(m->tree, "INSTALLED", &record, &e) < 0 ||
	                       agent_trees_place(&m->trees, m->facts.name, &e) < 0))
		return fail_system("%s", e.text);
	if (changed) {
		pack_tell(m->args);
		(void)agent_trees_sweep(&m->trees);
		look(m);
	}
	return print(m, record.p, record.len, changed);
}

static int make(struct making *m)
{
	struct err e = {0};
	m->tree = agent_trees_begin(&m->trees, &e);
	if (m->tree < 0)
		return fail_system("%s", e.text);
	int code = obtain(m);
	if (code)
		return code;
	if (!m->old && faccessat(m->trees.fd, m->facts.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fail_usage("pack '%s' is installed; remedy: abctl pack update %s, or abctl "
		                  "pack rm %s, or another --name",
		        m->facts.name, m->facts.name, m->facts.name);
	code = pack_grants_make(&m->args->grants, m->old, &m->facts, &m->grants);
	return code ? code : place(m);
}

/* ---- add, update ---- */

int pack_add(const struct cli *cli, const struct pack_args *a, const char *source)
{
	struct making m = {.cli = cli, .args = a, .name = a->name, .tree = -1};
	int code = pack_open(a, true, &m.trees);
	if (code == 0)
		code = pack_source_parse(source, &m.source);
	if (code == 0)
		code = make(&m);
	making_done(&m);
	return code;
}

struct updating {
	const struct cli *cli;
	const struct pack_args *args;
};

static int update_one(void *ctx, const char *name)
{
	const struct updating *u = ctx;
	struct making m = {.cli = u->cli, .args = u->args, .name = name, .tree = -1};
	int code = pack_open(u->args, true, &m.trees);
	auto_json struct json *old = code ? NULL : agent_trees_record(&m.trees, name, false);
	m.old = old;
	if (code == 0 && !old)
		code = fail_usage("pack '%s' is not installed in %s, or its record is damaged",
		        name, m.trees.dir);
	if (code == 0)
		code = pack_source_parse(json_str(old, "source", ""), &m.source);
	if (code == 0)
		code = make(&m);
	making_done(&m);
	return code;
}

int pack_update(const struct cli *cli, const struct pack_args *a, const char *name)
{
	struct updating u = {cli, a};
	if (name)
		return name_valid(name) ? update_one(&u, name)
		                        : fail_usage("'%s' is not the name of a pack", name);
	if (a->grants.n)
		return fail_usage("--grant is for one pack: name it");
	struct agent_trees t;
	int code = pack_open(a, false, &t);
	if (code == 0)
		code = pack_each(&t, update_one, &u);
	agent_trees_close(&t);
	return code;
}
