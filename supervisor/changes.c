#include "supervisor/changes.h"

#include "base/buf.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 128, FILES = 2, SLOT = 24 };

struct changes {
	int root_fd; /* borrowed */
	char run[ID_MAX];
	struct artifacts_result *kept; /* borrowed */
	int dir_fd;                    /* owned; -1 until it is needed */
	char line[LINE_MAX_BYTES];
	size_t nline;
	/* the file whose bytes come */
	int to;        /* owned, -1: lines come */
	uint64_t left; /* of its bytes */
	struct digest *digest;
	struct artifact files[FILES];
	size_t nfiles;
	/* what the lines say */
	char base[REPO_OBJECT_MAX], head[REPO_OBJECT_MAX], tip[REPO_OBJECT_MAX];
	uint64_t nested, partial, head_lost;
	bool over, taken;
};

struct changes *changes_new(int root_fd, const char *run, struct artifacts_result *kept)
{
	struct changes *c = xnew(struct changes);
	c->root_fd = root_fd;
	(void)str_copy(c->run, sizeof(c->run), run); /* an id of ours */
	c->kept = kept;
	c->dir_fd = c->to = -1;
	return c;
}

static void slot_name(const struct changes *c, size_t i, char ret[SLOT])
{
	(void)snprintf(ret, SLOT, "%zu", c->kept->nfiles + i);
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	size_t begun = c->nfiles + (c->to >= 0);
	for (size_t i = 0; i < FILES; i++) {
		char name[SLOT];
		slot_name(c, i, name);
		if (!c->taken && i < begun)
			(void)unlinkat(c->dir_fd, name, 0);
		free(c->files[i].path);
	}
	digest_free(c->digest);
	fd_close(c->to);
	fd_close(c->dir_fd);
	free(c);
}

/* ---- files ---- */

static int begin_file(struct changes *c, const char *path, uint64_t bytes, struct err *e)
{
	char name[SLOT];
	if (c->nfiles == FILES)
		return err_set(e, -EBADMSG, "the changes have more than %d files", FILES);
	if (bytes > ARTIFACT_FILE_MAX)
		return err_set(e, -EFBIG, "%s: %llu bytes, at most %llu are kept", path,
		        (unsigned long long)bytes, (unsigned long long)ARTIFACT_FILE_MAX);
	if (c->dir_fd < 0 && (mkdirat(c->root_fd, c->run, 0700) == 0 || errno == EEXIST))
		c->dir_fd = openat(c->root_fd, c->run, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (c->dir_fd < 0)
		return err_errno(e, "keeping %s", path);
	slot_name(c, c->nfiles, name);
	c->to = openat(
	        c->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->to < 0)
		return err_errno(e, "keeping %s", path);
	c->files[c->nfiles].path = xstrdup(path);
	c->files[c->nfiles].bytes = c->left = bytes;
	c->digest = digest_new();
	return 0;
}

static void end_file(struct changes *c)
{
	if (c->left)
		return;
	digest_end(take(c->digest), c->files[c->nfiles].sha256);
	fd_close(take_fd(c->to));
	c->nfiles++;
}

static int take_bytes(struct changes *c, const char *p, size_t n, struct err *e)
{
	int rc = fd_write_all(c->to, p, n);
	if (rc < 0)
		return err_set(e, rc, "keeping %s: %s", c->files[c->nfiles].path, strerror(-rc));
	digest_add(c->digest, p, n);
	c->left -= n;
	end_file(c);
	return 0;
}

/* ---- lines ---- */

static bool number(const char *text, uint64_t *ret)
{
	uint64_t n = 0;
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 18 || text[digits])
		return false;
	for (size_t i = 0; i < digits; i++)
		n = 10 * n + (uint64_t)(text[i] - '0');
	*ret = n;
	return true;
}

static int take_line(struct changes *c, struct err *e)
{
	char *value = strchr(c->line, ' ');
	uint64_t n = 0;
	if (strcmp(c->line, "end") == 0) {
		c->over = true;
		return 0;
	}
	if (value)
		*value++ = '\0';
	const struct {
		const char *key;
		char *to;
	} objects[] = {{"base", c->base}, {"head", c->head}, {"tip", c->tip}};
	for (size_t i = 0; value && i < ARRAY_LEN(objects); i++)
		if (strcmp(c->line, objects[i].key) == 0 && repo_object_ok(value))
			return str_copy(objects[i].to, REPO_OBJECT_MAX, value), 0;
	const struct {
		const char *key;
		uint64_t *to;
	} numbers[] = {
	        {"nested", &c->nested}, {"partial", &c->partial}, {"headLost", &c->head_lost}};
	bool good = value && number(value, &n);
	for (size_t i = 0; good && i < ARRAY_LEN(numbers); i++)
		if (strcmp(c->line, numbers[i].key) == 0) {
			*numbers[i].to = n;
			return 0;
		}
	const char *file = !good                            ? NULL
	                   : strcmp(c->line, "patch") == 0  ? CHANGES_PATCH
	                   : strcmp(c->line, "bundle") == 0 ? CHANGES_BUNDLE
	                                                    : NULL;
	int rc = file ? begin_file(c, file, n, e)
	              : err_set(e, -EBADMSG, "the changes have a line that nobody wrote");
	if (rc == 0)
		end_file(c); /* an empty one */
	return rc;
}

int changes_feed(struct changes *c, const char *p, size_t n, struct err *e)
{
	int rc = 0;
	while (rc == 0 && n) {
		if (c->over)
			return err_set(e, -EBADMSG, "the changes go on behind their end");
		size_t k = 1;
		if (c->to >= 0) {
			k = n < c->left ? n : (size_t)c->left;
			rc = take_bytes(c, p, k, e);
		} else if (*p == '\n') {
			c->line[c->nline] = '\0';
			c->nline = 0;
			rc = take_line(c, e);
		} else if (c->nline + 1 < sizeof(c->line)) {
			c->line[c->nline++] = *p;
		} else {
			rc = err_set(e, -EBADMSG, "the changes have a line without end");
		}
		p += k;
		n -= k;
	}
	return rc;
}

/* ---- the end ---- */

static void give_way(struct artifacts_result *kept, const char *name)
{
	for (size_t i = 0; i < kept->nfiles; i++)
		if (strcmp(kept->files[i].path, name) == 0) {
			char *other = xasprintf("%s%s", name, CHANGES_THEIRS);
			free(kept->files[i].path);
			kept->files[i].path = other;
		}
}

int changes_end(struct changes *c, struct err *e)
{
	struct artifacts_result *k = c->kept;
	if (!c->over || !c->nfiles || !c->base[0] || !c->head[0] || !c->tip[0])
		return err_set(e, -EBADMSG, "the changes have no end");
	for (size_t i = 0; i < c->nfiles; i++)
		give_way(k, c->files[i].path);
	k->files = xrealloc(k->files, k->nfiles + c->nfiles, sizeof(*k->files));
	for (size_t i = 0; i < c->nfiles; i++) {
		k->files[k->nfiles] = c->files[i];
		k->files[k->nfiles++].path = xstrdup(c->files[i].path);
	}
	c->taken = true;
	return 0;
}

void changes_members(const struct changes *c, struct jw *w)
{
	static const char *const sizes[FILES] = {"patchBytes", "bundleBytes"};
	jw_str(w, "base", c->base);
	jw_str(w, "head", c->head);
	jw_str(w, "commit", c->tip);
	jw_bool(w, "changed", strcmp(c->tip, c->base) != 0);
	for (size_t i = 0; i < c->nfiles && i < FILES; i++)
		jw_int(w, sizes[i], (int64_t)c->files[i].bytes);
	if (c->nested)
		jw_int(w, "nestedLeftOut", (int64_t)c->nested);
	if (c->partial)
		jw_bool(w, "incomplete", true);
	if (c->head_lost)
		jw_bool(w, "headLost", true);
}
