#include "egress/secrets.h"

#include "base/fd.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "proto/egress.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct secrets {
	struct egress_secret *all; /* owned mapping, NULL when empty */
	size_t n;
};

static void drop(struct egress_secret *all, size_t n)
{
	if (!all)
		return;
	explicit_bzero(all, n * sizeof(*all));
	(void)munmap(all, n * sizeof(*all));
}

struct secrets *secrets_new(void)
{
	return xnew(struct secrets);
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	drop(s->all, s->n);
	free(s);
}

static int map_locked(size_t bytes, struct egress_secret **ret, struct err *e)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_errno(e, "secrets: mmap");
	if (mlock(p, bytes) < 0 || madvise(p, bytes, MADV_DONTDUMP) < 0) {
		int r = err_errno(
		        e, "secrets: cannot lock %zu bytes (raise RLIMIT_MEMLOCK)", bytes);
		(void)munmap(p, bytes);
		return r;
	}
	*ret = p;
	return 0;
}

static int check(const struct egress_secret *s, struct err *e)
{
	if (!msg_text_ok(s->name, sizeof(s->name)) || !s->name[0])
		return err_set(e, -EBADMSG, "secrets: a name is not terminated");
	if (s->len > sizeof(s->value))
		return err_set(e, -EBADMSG, "secrets: %s is longer than its field", s->name);
	for (uint32_t i = 0; i < s->len; i++) {
		unsigned char c = (unsigned char)s->value[i];
		if (c < 0x20 || c == 0x7f)
			return err_set(e, -EINVAL,
			        "secrets: %s has a control character; remove line ends from its "
			        "source",
			        s->name);
	}
	return 0;
}

int secrets_replace(struct secrets *s, int memfd, struct err *e)
{
	struct stat st;
	if (fstat(memfd, &st) < 0)
		return err_errno(e, "secrets: fstat");
	size_t bytes = (size_t)st.st_size, n = bytes / sizeof(struct egress_secret);
	if (st.st_size < 0 || bytes % sizeof(struct egress_secret) || n > EGRESS_SECRETS)
		return err_set(e, -EBADMSG, "secrets: the size is not that of at most %d entries",
		        EGRESS_SECRETS);
	struct egress_secret *all = NULL;
	int r = n ? map_locked(bytes, &all, e) : 0;
	if (r < 0)
		return r;
	/* A copy, so that what is checked cannot change afterwards. */
	if (n && fd_pread_full(memfd, all, bytes, 0) != (ssize_t)bytes)
		r = err_set(e, -EIO, "secrets: the memfd is shorter than it says");
	for (size_t i = 0; all && r == 0 && i < n; i++)
		r = check(&all[i], e);
	if (r < 0) {
		drop(all, n);
		return r;
	}
	drop(s->all, s->n);
	s->all = all;
	s->n = n;
	return 0;
}

const char *secrets_find(const struct secrets *s, const char *name, size_t *ret_len)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->all[i].name, name) == 0 && s->all[i].len > 0) {
			*ret_len = s->all[i].len;
			return s->all[i].value;
		}
	return NULL;
}
