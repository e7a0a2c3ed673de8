/*
 * Theory of operation.  Every load looks at every file of every directory, and
 * parses those whose inode, size or time changed; an entry keeps the last
 * version that parsed.  inotify only says that a load is due; it comes
 * HARNESSES_DEBOUNCE_MS later, so that an editor's several steps are one, or when
 * a client asks before.
 */
#include "supervisor/harnesses.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/wishes.h"
#include "supervisor/harness_json.h"
#include "supervisor/loop.h"
#include "supervisor/packs.h"
#include "supervisor/stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

struct stamp {
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

enum kind { KIND_HARNESS, KIND_AGENT };

struct entry {
	struct list link; /* in harnesses.entries, later directories last */
	enum kind kind;
	size_t dir;
	char *file; /* owned: name below the directory */
	char *pack; /* owned: its name, or NULL: root's own */
	struct stamp stamp;
	struct timespec granted; /* of a pack's record */
	struct harness *harness; /* reference, NULL before the first good version */
	struct agent *agent;     /* owned, likewise */
	char *error;             /* owned: why the file as it is now is not in use */
	bool seen;               /* by the load going on */
};

struct harnesses {
	int dirs[HARNESSES_DIRS];
	size_t ndirs;
	int agents_dir;
	struct list entries;
	struct agent *exec; /* owned: the built-in agent of `backend: exec` */
	struct stats *stats;
	harnesses_check_fn *check;
	void *check_ctx;
	void (*loaded)(void *ctx); /* or NULL */
	void *loaded_ctx;
	int inotify; /* owned */
	struct loop *loop;
	struct op in, wait;
};

/* ---- life ---- */

static void watch(struct harnesses *h, int dir, const char *below)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, below);
	const uint32_t mask =
	        IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB;
	if (inotify_add_watch(h->inotify, path, mask) < 0)
		log_warn("harnesses: changes below %s will not be noticed: %s",
		        *below ? below : "a directory", strerror(errno));
}

/* A second descriptor with a position of its own. */
static DIR *list_dir_at(int dir, const char *path)
{
	int fd = dir < 0 ? -1 : openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		fd_close(fd);
	return d;
}

static DIR *list_dir(int dir)
{
	return list_dir_at(dir, ".");
}

static void watch_all(struct harnesses *h)
{
	for (size_t i = 0; i < h->ndirs; i++)
		if (h->dirs[i] >= 0)
			watch(h, h->dirs[i], "");
	DIR *d = list_dir(h->agents_dir);
	for (const struct dirent *x; d && (x = readdir(d)) != NULL;)
		if (name_valid(x->d_name))
			watch(h, h->agents_dir, x->d_name);
	if (d)
		closedir(d);
}

static struct agent *exec_agent(void)
{
	struct agent *a = xnew(struct agent);
	a->name = xstrdup("exec");
	a->driver = xstrdup("exec");
	a->description = xstrdup("any command, given by the harness");
	return a;
}

struct harnesses *harnesses_new(
        const int *dirs, size_t ndirs, int agents_dir, struct stats *stats, struct err *e)
{
	struct harnesses *h = xnew(struct harnesses);
	list_init(&h->entries);
	h->ndirs = ndirs < HARNESSES_DIRS ? ndirs : HARNESSES_DIRS;
	for (size_t i = 0; i < h->ndirs; i++) {
		struct stat st;
		bool dir = dirs[i] >= 0 && fstat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode);
		h->dirs[i] = dir ? dirs[i] : -1;
	}
	h->agents_dir = agents_dir;
	h->stats = stats;
	h->exec = exec_agent();
	h->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (h->inotify < 0) {
		err_errno(e, "inotify");
		harnesses_free(h);
		return NULL;
	}
	watch_all(h);
	return h;
}

static void entry_free(struct entry *x)
{
	list_remove(&x->link);
	harness_unref(x->harness);
	agent_free(x->agent);
	free(x->file);
	free(x->pack);
	free(x->error);
	free(x);
}

void harnesses_free(struct harnesses *h)
{
	if (!h)
		return;
	list_for_each (x, &h->entries, struct entry, link)
		entry_free(x);
	agent_free(h->exec);
	fd_close(h->inotify);
	free(h);
}

void harnesses_checker(struct harnesses *h, harnesses_check_fn *check, void *ctx)
{
	h->check = check;
	h->check_ctx = ctx;
}

/* ---- loading ---- */

static struct entry *entry_get(struct harnesses *h, enum kind kind, size_t dir, const char *file)
{
	list_for_each (x, &h->entries, struct entry, link)
		if (x->kind == kind && x->dir == dir && strcmp(x->file, file) == 0)
			return x;
	struct entry *x = xnew(struct entry);
	x->kind = kind;
	x->dir = dir;
	x->file = xstrdup(file);
	x->pack = kind == KIND_HARNESS ? pack_of_file(file) : NULL;
	struct list *at = &h->entries; /* behind those of the same and earlier directories */
	list_for_each (o, &h->entries, struct entry, link)
		if (o->dir > dir) {
			at = &o->link;
			break;
		}
	list_append(at, &x->link);
	return x;
}

static void note(void *ctx, const char *file, int line, const char *text)
{
	(void)ctx;
	log_info("harness %s:%d: %s", file, line, text);
}

static void parse(
        struct entry *x, const struct pack *pack, const char *text, size_t n, struct err *e)
{
	if (x->kind == KIND_HARNESS) {
		struct harness *fresh = harness_parse(x->file, text, n, note, NULL, e);
		if (fresh && pack && pack_allows(pack, fresh, e) < 0) {
			harness_unref(fresh);
			harness_unref(take(x->harness)); /* it may have been granted more */
			return;
		}
		if (!fresh)
			return;
		harness_unref(x->harness);
		x->harness = fresh;
		return;
	}
	struct agent *fresh = agent_parse(x->file, text, n, e);
	if (!fresh)
		return;
	agent_free(x->agent);
	x->agent = fresh;
}

static bool stamp_of(int dir, const char *file, struct stamp *ret)
{
	struct stat st;
	if (fstatat(dir, file, &st, 0) < 0)
		return false;
	*ret = (struct stamp){st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
	return true;
}

static bool same(const struct stamp *a, const struct stamp *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec && a->ctime.tv_sec == b->ctime.tv_sec &&
	       a->ctime.tv_nsec == b->ctime.tv_nsec;
}

static bool same_grants(const struct entry *x, const struct pack *p)
{
	return !p || (x->granted.tv_sec == p->time.tv_sec && x->granted.tv_nsec == p->time.tv_nsec);
}

static void load_file(struct harnesses *h, enum kind kind, size_t dir, int dirfd, const char *file,
        const struct pack *pack)
{
	struct stamp now;
	if (!stamp_of(dirfd, file, &now))
		return; /* gone again */
	struct entry *x = entry_get(h, kind, dir, file);
	x->seen = true;
	if (same(&x->stamp, &now) && same_grants(x, pack))
		return;
	x->stamp = now;
	if (!same_grants(x, pack)) {
		/* What was granted it before does not hold. */
		harness_unref(take(x->harness));
		x->granted = pack->time;
	}
	struct err e = {0};
	auto_free char *text = NULL;
	size_t n = 0;
	if (file_slurp_plain_at(dirfd, file, LIMIT_YAML_FILE, &text, &n, &e) == 0)
		parse(x, pack, text, n, &e);
	free(x->error);
	x->error = e.code ? xstrdup(e.text) : NULL;
	if (x->error) {
		h->stats->harness_errors++;
		log_warn("harness %s%s", x->error,
		        x->harness || x->agent ? " (the version before it stays in use)" : "");
	}
}

static bool is_harness_file(const char *name)
{
	size_t n = strlen(name);
	/* Editors' backups and swap files begin with a dot or end otherwise. */
	return name[0] != '.' && n > 3 && strcmp(name + n - 3, ".md") == 0 &&
	       strcmp(name, "README.md") != 0;
}

static void load_dir(struct harnesses *h, size_t dir)
{
	DIR *d = list_dir(h->dirs[dir]);
	size_t n = 0;
	for (const struct dirent *x; d && (x = readdir(d)) != NULL;)
		if (is_harness_file(x->d_name) && n++ < LIMIT_HARNESSES)
			load_file(h, KIND_HARNESS, dir, h->dirs[dir], x->d_name, NULL);
	if (n > LIMIT_HARNESSES)
		log_warn(
		        "harnesses: %zu of %zu files are beyond the limit", n - LIMIT_HARNESSES, n);
	if (d)
		closedir(d);
}

struct loading {
	struct harnesses *h;
	size_t dir;
};

static void load_pack(void *ctx, const struct pack *p)
{
	const struct loading *l = ctx;
	int fd = l->h->dirs[l->dir];
	DIR *d = list_dir_at(fd, p->dir);
	size_t n = 0;
	for (const struct dirent *x; d && (x = readdir(d)) != NULL;) {
		auto_free char *file = xasprintf("%s/%s", p->dir, x->d_name);
		if (is_harness_file(x->d_name) && n++ < LIMIT_HARNESSES)
			load_file(l->h, KIND_HARNESS, l->dir, fd, file, p);
	}
	if (d)
		closedir(d);
}

static void load_agents(struct harnesses *h)
{
	DIR *d = list_dir(h->agents_dir);
	for (const struct dirent *x; d && (x = readdir(d)) != NULL;) {
		if (!name_valid(x->d_name))
			continue;
		char file[NAME_MAX_LEN + 16];
		(void)snprintf(file, sizeof(file), "%.63s/agent.yaml", x->d_name);
		load_file(h, KIND_AGENT, 0, h->agents_dir, file, NULL);
	}
	if (d)
		closedir(d);
}

void harnesses_load(struct harnesses *h)
{
	list_for_each (x, &h->entries, struct entry, link)
		x->seen = false;
	for (size_t i = 0; i < h->ndirs; i++) {
		struct loading l = {h, i};
		load_dir(h, i);
		if (i > 0) /* root's; none is bundled */
			packs_each(h->dirs[i], load_pack, &l);
	}
	load_agents(h);
	list_for_each (y, &h->entries, struct entry, link)
		if (!y->seen)
			entry_free(y);
	h->stats->harness_reloads++;
	if (h->loaded)
		h->loaded(h->loaded_ctx);
}

/* ---- noticing changes ---- */

static void due(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct harnesses *h = container_of(op, struct harnesses, wait);
	if (res != -ECANCELED)
		harnesses_load(h);
}

static bool drain(const struct harnesses *h)
{
	char events[4096]; /* what changed does not matter: every file is looked at */
	bool any = false;
	while (read(h->inotify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static void changed(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct harnesses *h = container_of(op, struct harnesses, in);
	if (res < 0)
		return;
	(void)drain(h); /* nothing, where harnesses_catch_up() was first: one load more */
	if (!h->wait.inflight)
		loop_timeout(h->loop, &h->wait, HARNESSES_DEBOUNCE_MS, due);
	loop_poll(h->loop, &h->in, h->inotify, POLLIN, false, changed);
}

void harnesses_catch_up(struct harnesses *h)
{
	if (drain(h) || h->wait.inflight)
		harnesses_load(h);
}

void harnesses_watch(struct harnesses *h, struct loop *l)
{
	h->loop = l;
	loop_poll(l, &h->in, h->inotify, POLLIN, false, changed);
}

/* ---- use ---- */

static struct entry *lookup(struct harnesses *h, const char *name)
{
	struct entry *found = NULL; /* the last one wins, but no pack's over root's */
	list_for_each (x, &h->entries, struct entry, link)
		if (x->kind == KIND_HARNESS && x->harness && strcmp(x->harness->name, name) == 0 &&
		        (!found || found->pack || !x->pack))
			found = x;
	return found;
}

/* A file that never parsed has no name but its file's.  Owned. */
static char *presumed_name(const struct entry *x)
{
	const char *slash = strrchr(x->file, '/');
	const char *base = slash ? slash + 1 : x->file;
	int n = (int)(strlen(base) - strlen(".md"));
	return x->pack ? xasprintf("%s.%.*s", x->pack, n, base) : xstrndup(base, (size_t)n);
}

static struct entry *broken(struct harnesses *h, const char *name)
{
	list_for_each (x, &h->entries, struct entry, link) {
		if (x->kind != KIND_HARNESS || x->harness)
			continue;
		auto_free char *presumed = presumed_name(x);
		if (strcmp(presumed, name) == 0)
			return x;
	}
	return NULL;
}

int harnesses_get(struct harnesses *h, const char *name, struct harness **ret, struct err *e)
{
	const struct entry *x = lookup(h, name);
	if (x) {
		*ret = harness_ref(x->harness);
		return 0;
	}
	x = broken(h, name);
	if (x)
		return err_set(e, -ENOEXEC, "harness %s", x->error ? x->error : "unreadable");
	auto_buf struct buf names = BUF_INIT(160);
	list_for_each (o, &h->entries, struct entry, link)
		if (o->harness)
			(void)buf_printf(&names, "%s%s", names.len ? ", " : "", o->harness->name);
	return err_set(e, -ENOENT, "no harness '%.64s' (there are: %s)", name,
	        names.len ? names.p : "none");
}

/* Is it NAME/agent.yaml? */
static bool is_of(const char *file, const char *name)
{
	size_t n = strlen(name);
	return strncmp(file, name, n) == 0 && file[n] == '/';
}

int harnesses_agent(
        struct harnesses *h, const char *backend, const struct agent **ret, struct err *e)
{
	list_for_each (x, &h->entries, struct entry, link)
		if (x->agent && strcmp(x->agent->name, backend) == 0) {
			*ret = x->agent;
			return 0;
		}
	if (strcmp(backend, "exec") == 0) {
		*ret = h->exec;
		return 0;
	}
	list_for_each (x, &h->entries, struct entry, link)
		if (x->kind == KIND_AGENT && x->error && is_of(x->file, backend))
			return err_set(e, -ENOENT, "agent '%.64s': %.150s", backend, x->error);
	auto_buf struct buf names = BUF_INIT(256);
	buf_puts(&names, "exec");
	list_for_each (x, &h->entries, struct entry, link)
		if (x->agent)
			(void)buf_printf(&names, ", %s", x->agent->name);
	return err_set(e, -ENOENT, "no agent '%.64s' in harnesses/agents (there are: %s)", backend,
	        names.p);
}

void harnesses_agents(struct harnesses *h, harnesses_agent_fn *fn, void *ctx)
{
	list_for_each (x, &h->entries, struct entry, link) {
		auto_free char *dir = xstrndup(x->file, strcspn(x->file, "/"));
		if (x->kind == KIND_AGENT)
			fn(ctx, dir, x->agent, x->error);
	}
	fn(ctx, h->exec->name, h->exec, NULL);
}

void harnesses_each(struct harnesses *h, void (*each)(void *ctx, struct harness *x), void *ctx)
{
	list_for_each (x, &h->entries, struct entry, link)
		if (x->kind == KIND_HARNESS && x->harness &&
		        lookup(h, x->harness->name) == x) /* no later directory has its name */
			each(ctx, x->harness);
}

void harnesses_on_load(struct harnesses *h, void (*loaded)(void *ctx), void *ctx)
{
	h->loaded = loaded;
	h->loaded_ctx = ctx;
}

size_t harnesses_count(const struct harnesses *h)
{
	size_t n = 0;
	list_for_each (x, &h->entries, struct entry, link)
		n += x->harness != NULL;
	return n;
}

/* ---- JSON ---- */

static bool listed(const struct harnesses_view *v, const struct entry *x)
{
	bool found = !v->names && (x->harness || !v->outside);
	for (char *const *n = v->names; n && *n && !found; n++)
		found = x->harness && strcmp(*n, x->harness->name) == 0;
	return found;
}

static void show(struct harnesses *h, const struct harnesses_view *v, const struct entry *x,
        struct jw *w, bool whole)
{
	struct err e = {0};
	bool usable = x->harness && (!h->check || h->check(h->check_ctx, x->harness, &e) == 0);
	jw_open(w, NULL, '{');
	if (x->harness) {
		jw_str(w, "name", x->harness->name);
		jw_str(w, "description", x->harness->description);
		jw_str(w, "backend", x->harness->backend);
		jw_str(w, "model", x->harness->model);
		jw_str(w, "policy", x->harness->policy);
		jw_texts(w, "artifacts", x->harness->artifacts);
		if (!x->harness->nsteps)
			jw_int(w, "timeoutMs", (int64_t)x->harness->timeout_ms);
		if (whole && !v->outside)
			harness_json(w, x->harness);
	} else {
		auto_free char *name = presumed_name(x);
		jw_str(w, "name", name);
	}
	if (!v->outside) {
		jw_str(w, "file", x->file);
		jw_bool(w, "bundled", x->dir == 0);
		jw_str(w, "pack", x->pack);
		jw_str(w, "error", x->error ? x->error : e.code ? e.text : NULL);
	}
	jw_bool(w, "usable", usable);
	jw_close(w, '}');
}

void harnesses_list(struct harnesses *h, const struct harnesses_view *v, struct buf *json)
{
	struct jw w = JW_INIT(json);
	list_for_each (x, &h->entries, struct entry, link)
		if (x->kind == KIND_HARNESS && listed(v, x) &&
		        (!x->harness || lookup(h, x->harness->name) == x))
			show(h, v, x, &w, false);
}

int harnesses_show(struct harnesses *h, const struct harnesses_view *v, const char *name,
        struct buf *json, struct err *e)
{
	const struct entry *x = lookup(h, name);
	if (!x && !v->outside)
		x = broken(h, name);
	if (!x) {
		struct harness *none;
		return harnesses_get(h, name, &none, e); /* words the refusal */
	}
	struct jw w = JW_INIT(json);
	show(h, v, x, &w, true);
	return 0;
}
