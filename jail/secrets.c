#include "jail/secrets.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/layout.h"
#include "jail/secret_command.h"
#include "proto/egress.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Those of the configuration and one for each injection of each policy. */

struct table {
	struct egress_secret *v; /* owned, EGRESS_SECRETS long, wiped before it is freed */
	size_t n;
};

struct load {
	const struct secrets_places *places;
	int64_t until_ms; /* for all commands */
};

static void table_done(struct table *t)
{
	if (t->v)
		explicit_bzero(t->v, t->n * sizeof(*t->v)); /* beyond n nothing was left */
	free(t->v);
}
#define auto_table __attribute__((cleanup(table_done)))

static int store(struct egress_secret *to, const char *p, size_t n, struct err *e)
{
	while (n > 0 && (p[n - 1] == '\n' || p[n - 1] == '\r'))
		n--;
	if (n == 0)
		return err_set(e, -ENODATA, "empty");
	if (n > sizeof(to->value))
		return err_set(e, -E2BIG, "longer than %zu bytes", sizeof(to->value));
	/* It becomes part of a header line: a line break would forge another. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			return err_set(e, -EINVAL, "has a control character");
	memcpy(to->value, p, n);
	to->len = (uint32_t)n;
	return 0;
}

/* `alone`: nobody but root may read it. */
static int from_file(struct egress_secret *to, const char *path, bool alone, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return err_errno(e, "%s", path);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s is not a regular file", path);
	int r = root_owned(fd, path, e);
	if (r < 0)
		return r;
	if (alone && (st.st_mode & 077))
		return err_set(e, -EPERM, "%s may be read by others (mode %04o): chmod go= it",
		        path, st.st_mode & 07777);
	char bytes[sizeof(to->value) + 2]; /* room to see that it is too long */
	ssize_t n = fd_read_full(fd, bytes, sizeof(bytes));
	r = n < 0 ? err_set(e, (int)n, "%s: %s", path, strerror((int)-n))
	          : store(to, bytes, (size_t)n, e);
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

static int from_previous(struct egress_secret *to, int fd, struct err *e)
{
	struct egress_secret old;
	int r = err_set(e, -ENOENT, "there was no value at the last load");
	for (off_t at = 0; fd_pread_full(fd, &old, sizeof(old), at) == (ssize_t)sizeof(old);
	        at += (off_t)sizeof(old)) {
		if (strcmp(old.name, to->name) != 0)
			continue;
		memcpy(to->value, old.value, sizeof(to->value));
		to->len = old.len;
		r = 0;
		break;
	}
	explicit_bzero(&old, sizeof(old));
	return r;
}

static int from_env(
        struct egress_secret *to, const struct secrets_places *p, const char *name, struct err *e)
{
	if (p->previous >= 0)
		return from_previous(to, p->previous, e);
	const char *value = getenv(name);
	return value ? store(to, value, strlen(value), e)
	             : err_set(e, -ENOENT, "variable %s is not set", name);
}

/* A file name and nothing else: no slash, not "." or "..". */
static bool plain(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/');
}

static int from_dir(
        struct egress_secret *to, const char *dir, const char *name, bool alone, struct err *e)
{
	if (!plain(name))
		return err_set(e, -EINVAL, "'%s' is not a plain name", name);
	auto_free char *path = xasprintf("%s/%s", dir, name);
	return from_file(to, path, alone, e);
}

/* -ENOENT and others with the reason when there is none, neither now nor from before. */
static int from_command(
        struct egress_secret *to, const struct secret_def *def, const struct load *l, struct err *e)
{
	const struct secrets_places *p = l->places;
	struct err why;
	if (p->files_only)
		return from_previous(to, p->previous, e);
	char bytes[sizeof(to->value) + 2];
	int n = secret_command(def, l->until_ms, bytes, sizeof(bytes), &why);
	int r = n < 0 ? n : store(to, bytes, (size_t)n, &why);
	explicit_bzero(bytes, sizeof(bytes));
	if (r == 0)
		return 0;
	bool kept = p->previous >= 0 && from_previous(to, p->previous, NULL) == 0;
	if (p->troubles)
		(void)buf_printf(p->troubles, "secret %s: %s: %s\n", def->name, why.text,
		        kept ? "its last value stays" : "it has no value");
	return kept ? 0 : err_set(e, r, "%s", why.text);
}

static int read_listed(
        struct egress_secret *to, const struct secret_def *def, const struct load *l, struct err *e)
{
	const struct secrets_places *p = l->places;
	switch ((enum secret_source)def->source) {
	case SECRET_FILE:
		return from_file(to, def->where, true, e);
	case SECRET_ENV:
		return from_env(to, p, def->where, e);
	case SECRET_CREDENTIAL:
		return p->credentials ? from_dir(to, p->credentials, def->where, false, e)
		                      : err_set(e, -ENOENT, "no $CREDENTIALS_DIRECTORY");
	case SECRET_COMMAND:
		return from_command(to, def, l, e);
	}
	return err_set(e, -EINVAL, "unknown source %u", def->source);
}

static int read_unlisted(struct egress_secret *to, const struct secrets_places *p, struct err *e)
{
	if (from_env(to, p, to->name, NULL) == 0)
		return 0;
	return from_dir(to, p->dir, to->name, true, e);
}

/* NULL when it was looked for already.  EGRESS_SECRETS bounds what policy_set_check lets through.
 */
static struct egress_secret *entry(struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].name, name) == 0)
			return NULL;
	assert(t->v && t->n < EGRESS_SECRETS);
	struct egress_secret *to = &t->v[t->n++];
	(void)str_copy(to->name, sizeof(to->name), name); /* both are NAME_MAX_LEN */
	return to;
}

static void settle(struct egress_secret *to, int r, const struct err *why, struct buf *missing)
{
	if (r < 0)
		(void)buf_printf(missing, "%s: %s\n", to->name, why->text);
}

/* Those without a value have length 0. */
static void drop_missing(struct table *t)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (t->v[i].len == 0)
			continue;
		if (kept != i)
			t->v[kept] = t->v[i];
		kept++;
	}
	explicit_bzero(t->v + kept, (t->n - kept) * sizeof(*t->v));
	t->n = kept;
}

/* One that something names ("": nothing) and the configuration does not list. */
static void load_unlisted(struct table *t, const struct daemon_config *c, const char *name,
        const struct secrets_places *places, struct buf *missing)
{
	struct err why = {0};
	bool listed = false;
	for (uint32_t j = 0; j < c->nsecrets; j++)
		listed |= strcmp(c->secrets[j].name, name) == 0;
	struct egress_secret *to = name[0] && !listed ? entry(t, name) : NULL;
	if (to)
		settle(to, read_unlisted(to, places, &why), &why, missing);
}

static bool has_value(const struct table *t, const char *name)
{
	bool has = false;
	for (size_t i = 0; i < t->n; i++)
		has |= strcmp(t->v[i].name, name) == 0;
	return has;
}

/* It may come later, and is tried then. */
static void tell_command(const struct webhook *w, struct buf *troubles)
{
	struct stat st;
	int r = stat(w->command, &st) < 0 ? -errno : 0;
	if (r == 0 && (!S_ISREG(st.st_mode) || !(st.st_mode & 0111)))
		r = -EACCES;
	if (r < 0)
		(void)buf_printf(troubles, "hook %s tells nobody: %s: %s\n", w->name, w->command,
		        r == -EACCES ? "is no program that may be executed" : strerror(-r));
}

/* A policy may be for agents that nobody uses; who is to be called cannot be without. */
static void tell_hooks(const struct table *t, const struct daemon_config *c, struct buf *troubles)
{
	for (uint32_t i = 0; troubles && i < c->otlp.nheaders; i++) {
		const struct otlp_header *h = &c->otlp.headers[i];
		if (h->secret[0] && !has_value(t, h->secret))
			(void)buf_printf(troubles,
			        "otlp sends no traces: the secret %s of its header %s has no "
			        "value; "
			        "remedy: a file " SECRETS_DIR
			        "/%s, or `secrets` in agentboxd.yaml\n",
			        h->secret, h->name, h->secret);
	}
	for (uint32_t i = 0; troubles && i < c->nwebhooks; i++) {
		const struct webhook *w = &c->webhooks[i];
		if (w->nargs) /* nothing is signed */
			tell_command(w, troubles);
		else if (!has_value(t, w->secret))
			(void)buf_printf(troubles,
			        "webhook %s tells nobody: its secret %s has no value; remedy: a "
			        "file " SECRETS_DIR "/%s, or `secrets` in agentboxd.yaml\n",
			        w->name, w->secret, w->secret);
	}
}

static void tell_bucket(const struct table *t, const struct bucket *b, struct buf *troubles)
{
	const char *names[EGRESS_BUCKET_SECRETS] = {b->access_key, b->secret_key, b->session_token};
	for (size_t i = 0; troubles && b->on && i < ARRAY_LEN(names); i++)
		if (names[i][0] && !has_value(t, names[i]))
			(void)buf_printf(troubles,
			        "artifacts are not uploaded: the secret %s of artifacts.s3 has no "
			        "value; remedy: a file " SECRETS_DIR "/%s, or `secrets` in "
			        "agentboxd.yaml\n",
			        names[i], names[i]);
}

static void load_bucket(struct table *t, const struct daemon_config *c,
        const struct secrets_places *places, struct buf *missing)
{
	const struct bucket *b = &c->bucket;
	if (!b->on)
		return;
	load_unlisted(t, c, b->access_key, places, missing);
	load_unlisted(t, c, b->secret_key, places, missing);
	load_unlisted(t, c, b->session_token, places, missing);
}

int secrets_load(const struct policy_set *set, const struct secrets_places *places,
        struct buf *missing, struct err *e)
{
	auto_table struct table t = {.v = xcalloc(EGRESS_SECRETS, sizeof(*t.v))};
	const struct daemon_config *c = &set->config;
	const struct load l = {.places = places, .until_ms = clock_mono_ms() + SECRETS_COMMANDS_MS};
	struct err why = {0};
	for (uint32_t i = 0; i < c->nsecrets; i++) {
		struct egress_secret *to = entry(&t, c->secrets[i].name);
		if (to)
			settle(to, read_listed(to, &c->secrets[i], &l, &why), &why, missing);
	}
	for (uint32_t i = 0; i < set->count; i++)
		for (uint32_t k = 0; k < set->policies[i].ninject; k++)
			load_unlisted(&t, c, set->policies[i].inject[k].secret, places, missing);
	for (uint32_t i = 0; i < set->count; i++)
		for (uint32_t k = 0; k < set->policies[i].ngiven; k++)
			load_unlisted(&t, c, set->policies[i].given[k].secret, places, missing);
	for (uint32_t i = 0; i < c->otlp.nheaders; i++)
		load_unlisted(&t, c, c->otlp.headers[i].secret, places, missing);
	for (uint32_t i = 0; i < c->nwebhooks; i++)
		load_unlisted(&t, c, c->webhooks[i].secret, places, missing);
	load_bucket(&t, c, places, missing);
	drop_missing(&t);
	tell_hooks(&t, c, places->troubles);
	tell_bucket(&t, &c->bucket, places->troubles);
	int fd = fd_sealed_memfd("secrets", t.v, t.n * sizeof(*t.v));
	return fd < 0 ? err_set(e, fd, "secrets: %s", strerror(-fd)) : fd;
}

void environment_wipe(void)
{
	for (char **v = environ; v && *v; v++)
		explicit_bzero(*v, strlen(*v));
	(void)clearenv();
}
