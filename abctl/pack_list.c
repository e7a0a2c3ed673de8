#include "abctl/fail.h"
#include "abctl/pack.h"
#include "abctl/show.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/wish.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MAX = 4 << 20 };

static const char *directory(const struct pack_args *a)
{
	return a->harnesses ? a->harnesses : "/etc/agentbox/harnesses";
}

int pack_open(const struct pack_args *a, bool change, struct agent_trees *t)
{
	*t = (struct agent_trees){.fd = -1, .lock = -1, .work_fd = -1};
	struct err e = {0};
	auto_free char *dir = xasprintf("%s/packs", directory(a));
	if (!change) {
		t->what = "pack";
		t->dir = take(dir);
		t->fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (t->fd < 0 && errno != ENOENT)
			return fail_system("%s: %s", t->dir, strerror(errno));
		/* Without packs nothing is wrong; one that is not there is a slip. */
		if (t->fd < 0 && a->harnesses && access(a->harnesses, F_OK) < 0)
			return fail_usage("--harnesses: %s: %s", a->harnesses, strerror(errno));
		return 0;
	}
	if (geteuid() != 0)
		return fail_usage("packs are root's: what they may is granted by root");
	int r = file_make_parent(dir);
	if (r < 0)
		return fail_system("making %s: %s", directory(a), strerror(-r));
	return agent_trees_open(t, "pack", dir, &e) < 0 ? fail_system("%s", e.text) : 0;
}

/* What watches the directory sees its own times change, but nothing below packs/. */
void pack_tell(const struct pack_args *a)
{
	if (utimensat(AT_FDCWD, directory(a), NULL, 0) < 0)
		fail_note("%s: %s; `abctl reload` makes agentboxd look", directory(a),
		        strerror(errno));
}

int pack_each(const struct agent_trees *t, pack_fn *fn, void *ctx)
{
	struct dirent **names = NULL;
	int n = t->fd < 0 ? 0 : scandirat(t->fd, ".", &names, wish_pack_entry, alphasort), r = 0;
	if (n < 0)
		return fail_system("%s: %s", t->dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		int code = fn(ctx, names[i]->d_name);
		r = r ? r : code;
		free(names[i]);
	}
	free(names);
	return r;
}

/* ---- ls, show ---- */

struct listing {
	const struct agent_trees *trees;
	struct jw w;
};

static int list_one(void *ctx, const char *name)
{
	struct listing *l = ctx;
	auto_json struct json *record = agent_trees_record(l->trees, name, false);
	if (record) {
		jw_tree(&l->w, NULL, record);
		return 0;
	}
	jw_open(&l->w, NULL, '{');
	jw_str(&l->w, "pack", name);
	jw_str(&l->w, "error", "its record is missing or damaged: none of it is in use");
	jw_close(&l->w, '}');
	return 0;
}

int pack_ls(const struct cli *cli, const struct pack_args *a)
{
	static const struct column columns[] = {{"PACK", "pack", CELL_TEXT},
	        {"VERSION", "version", CELL_TEXT}, {"INSTALLED", "installedAt", CELL_TIME},
	        {"HARNESSES", "files", CELL_COUNT}, {"SOURCE", "source", CELL_TEXT},
	        {"ERROR", "error", CELL_TEXT}, {.heading = NULL}};
	struct agent_trees t;
	int code = pack_open(a, false, &t);
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct listing l = {&t, JW_INIT(&b)};
	jw_open(&l.w, NULL, '{');
	jw_open(&l.w, "packs", '[');
	if (code == 0)
		code = pack_each(&t, list_one, &l);
	jw_close(&l.w, ']');
	jw_close(&l.w, '}');
	struct err e = {0};
	auto_json struct json *all = code ? NULL : json_parse(b.p, b.len, &e);
	if (code == 0)
		code = all ? show_table(cli, all, "packs", columns) : fail_system("%s", e.text);
	agent_trees_close(&t);
	return code;
}

static int print(const struct cli *cli, const struct json *record)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	if (!cli->json) {
		table_tree(&b, record, 0);
	} else {
		(void)json_print(record, &b);
		buf_puts(&b, "\n");
	}
	return show_text(&b);
}

int pack_show(const struct cli *cli, const struct pack_args *a, const char *name)
{
	struct agent_trees t;
	int code = pack_open(a, false, &t);
	auto_json struct json *record =
	        code || !name_valid(name) ? NULL : agent_trees_record(&t, name, false);
	if (code == 0)
		code = record ? print(cli, record)
		              : fail_usage("pack '%s' is not installed in %s", name, t.dir);
	agent_trees_close(&t);
	return code;
}

/* ---- verify ---- */

struct verifying {
	const struct agent_trees *trees;
	struct jw w;
	bool json;
	int wrong;
};

static int verify_one(void *ctx, const char *name)
{
	struct verifying *v = ctx;
	auto_json struct json *record = agent_trees_record(v->trees, name, false);
	auto_json struct json *whole = agent_trees_record(v->trees, name, true);
	const char *what = !record  ? "its record is missing or damaged"
	                   : !whole ? "its files are not those that were installed"
	                            : NULL;
	v->wrong += what != NULL;
	if (v->json) {
		jw_open(&v->w, NULL, '{');
		jw_str(&v->w, "pack", name);
		jw_bool(&v->w, "intact", !what);
		jw_str(&v->w, "error", what);
		jw_close(&v->w, '}');
	} else {
		buf_printf(v->w.to, "%s: %s\n", name, what ? what : "intact");
	}
	return 0;
}

int pack_verify(const struct cli *cli, const struct pack_args *a, const char *name)
{
	struct agent_trees t;
	struct stat st;
	int code = pack_open(a, false, &t);
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct verifying v = {&t, JW_INIT(&b), cli->json, 0};
	if (cli->json)
		jw_open(&v.w, NULL, '[');
	if (code == 0 && !name)
		code = pack_each(&t, verify_one, &v);
	else if (code == 0)
		code = name_valid(name) && fstatat(t.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		               ? verify_one(&v, name)
		               : fail_usage("pack '%s' is not installed in %s", name, t.dir);
	if (cli->json) {
		jw_close(&v.w, ']');
		buf_puts(&b, "\n");
	}
	agent_trees_close(&t);
	if (code == 0)
		code = show_text(&b);
	return code ? code : v.wrong ? EXIT_FAILED : EXIT_DONE;
}

/* ---- rm ---- */

int pack_rm(const struct cli *cli, const struct pack_args *a, const char *name)
{
	struct agent_trees t;
	struct err e = {0};
	int code = name_valid(name) ? pack_open(a, true, &t)
	                            : fail_usage("'%s' is not the name of a pack", name);
	if (!name_valid(name))
		return code;
	if (code == 0 && agent_trees_retire(&t, name, &e) < 0)
		code = e.code == -ENOENT ? fail_usage("%s", e.text) : fail_system("%s", e.text);
	if (code == 0) {
		pack_tell(a);
		(void)agent_trees_sweep(&t);
		auto_buf struct buf b = BUF_INIT(LIST_MAX);
		if (cli->json)
			buf_puts(&b, "{\"removed\":true}\n");
		else
			buf_printf(&b, "%s is removed\n", name);
		code = show_text(&b);
	}
	agent_trees_close(&t);
	return code;
}
