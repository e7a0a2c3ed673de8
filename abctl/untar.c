#include "abctl/untar.h"
#include "base/mem.h"

#include <string.h>

enum {
	BLOCK = 512,
	PAX_MAX = 64 << 10, /* attributes of one file */
	REST_MAX = 1 << 20, /* after the end: what fills the last record */
	ENTRIES = 4,        /* a file may have: attributes and directories */
};

/* POSIX.1-1988 ustar; every field is text. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], kind;
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

enum state { AT_HEADER, IN_FILE, IN_PAX, IN_SKIPPED, IN_PADDING, AT_END };

struct untar {
	const struct untar_calls *calls;
	void *ctx;
	enum state state;
	char block[BLOCK];
	size_t have;        /* of `block` */
	uint64_t left, pad; /* of the entry's data, and of what fills its last block */
	uint64_t bytes, files, entries, rest;
	uint64_t bytes_max, files_max;
	char pax[PAX_MAX]; /* attributes as they come */
	size_t pax_len;
	bool for_next;                 /* they are of the next entry, not of all */
	bool empty;                    /* the block before was zeros */
	char name[UNTAR_NAME_MAX + 1]; /* what the attributes call the next entry, "" */
	bool has_size;                 /* they tell its size, too */
	uint64_t size;
};

struct untar *untar_new(const struct untar_calls *calls, void *ctx)
{
	struct untar *u = xnew(struct untar);
	u->calls = calls;
	u->ctx = ctx;
	untar_allow(u, UNTAR_BYTES_MAX, UNTAR_FILES_MAX);
	return u;
}

void untar_allow(struct untar *u, uint64_t bytes, uint64_t files)
{
	u->bytes_max = bytes;
	u->files_max = files;
}

void untar_free(struct untar *u)
{
	free(u);
}

/* ---- fields ---- */

/* Octal digits, blanks before them, then blanks or NULs. */
static int number(const char *field, size_t n, uint64_t *ret)
{
	size_t i = 0;
	uint64_t v = 0;
	while (i < n && field[i] == ' ')
		i++;
	size_t first = i;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(field[i] - '0');
	bool some = i > first;
	for (; i < n; i++)
		if (field[i] != ' ' && field[i] != '\0')
			return -EBADMSG;
	*ret = v;
	return some ? 0 : -EBADMSG;
}

static bool sum_is_right(const char *block)
{
	const struct header *h = (const struct header *)block;
	uint64_t want, got = 0;
	if (number(h->sum, sizeof(h->sum), &want) < 0)
		return false;
	for (size_t i = 0; i < BLOCK; i++) {
		bool in_sum = i >= offsetof(struct header, sum) &&
		              i < offsetof(struct header, sum) + sizeof(h->sum);
		got += in_sum ? ' ' : (uint8_t)block[i];
	}
	return got == want;
}

static bool all_zero(const char *block)
{
	for (size_t i = 0; i < BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

/* Neither absolute nor leading out, whichever part of it is looked at. */
int untar_check_name(const char *name, struct err *e)
{
	unsigned parts = 0;
	if (strlen(name) > UNTAR_NAME_MAX)
		return err_set(
		        e, -EBADMSG, "the archive has a name that is too long: '%.100s'", name);
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return err_set(e, -EBADMSG,
			        "the archive has a file named '%.100s': an empty part, '.' or "
			        "'..' in it",
			        name);
		if (n > 255 || ++parts > UNTAR_DEPTH_MAX)
			return err_set(e, -EBADMSG,
			        "the archive has a name that is too long or too deep: '%.100s'",
			        name);
		p += n;
		if (!*p)
			break;
	}
	for (const char *p = name; *p; p++)
		if ((uint8_t)*p < ' ' || *p == 0x7f)
			return err_set(e, -EBADMSG,
			        "the archive has a name with control characters: '%.100s'", name);
	return 0;
}

static int entry_name(struct untar *u, const struct header *h, struct err *e)
{
	if (u->name[0])
		return 0;
	bool ustar = memcmp(h->magic, "ustar", 5) == 0;
	size_t pre = ustar ? strnlen(h->prefix, sizeof(h->prefix)) : 0;
	size_t n = strnlen(h->name, sizeof(h->name));
	if (n == 0)
		return err_set(e, -EBADMSG, "the archive has a file without a name");
	memcpy(u->name, h->prefix, pre);
	if (pre)
		u->name[pre++] = '/';
	memcpy(u->name + pre, h->name, n);
	u->name[pre + n] = '\0';
	return 0;
}

/* ---- attributes ---- */

static int attribute(
        struct untar *u, const char *key, size_t nkey, const char *p, size_t n, struct err *e)
{
	if (nkey == 4 && memcmp(key, "path", 4) == 0) {
		if (!u->for_next || n == 0 || n > UNTAR_NAME_MAX || memchr(p, '\0', n))
			return err_set(
			        e, -EBADMSG, "the archive names a file in no way that is known");
		memcpy(u->name, p, n);
		u->name[n] = '\0';
	} else if (nkey == 4 && memcmp(key, "size", 4) == 0) {
		u->size = 0;
		for (size_t i = 0; i < n; i++) {
			if (p[i] < '0' || p[i] > '9' || u->size > u->bytes_max)
				return err_set(e, -EBADMSG, "the archive has a file of no size");
			u->size = u->size * 10 + (uint64_t)(p[i] - '0');
		}
		if (!u->for_next || n == 0)
			return err_set(e, -EBADMSG, "the archive has a file of no size");
		u->has_size = true;
	} else if (nkey > 4 && memcmp(key, "GNU.", 4) == 0) {
		return err_set(e, -EBADMSG, "the archive has a sparse file");
	}
	return 0; /* times, owners and comments mean nothing here */
}

/* "LENGTH KEY=VALUE\n", LENGTH being that of the whole record. */
static int attributes(struct untar *u, struct err *e)
{
	for (size_t at = 0; at < u->pax_len;) {
		const char *p = u->pax + at;
		size_t left = u->pax_len - at, n = 0, i = 0;
		for (; i < left && i < 6 && p[i] >= '0' && p[i] <= '9'; i++)
			n = n * 10 + (size_t)(p[i] - '0');
		if (i == 0 || i >= left || p[i] != ' ' || n <= i + 2 || n > left ||
		        p[n - 1] != '\n')
			return err_set(e, -EBADMSG, "the archive has broken attributes");
		const char *key = p + i + 1, *end = p + n - 1;
		const char *eq = memchr(key, '=', (size_t)(end - key));
		if (!eq)
			return err_set(e, -EBADMSG, "the archive has broken attributes");
		int r = attribute(u, key, (size_t)(eq - key), eq + 1, (size_t)(end - eq - 1), e);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* ---- entries ---- */

static int begin_file(struct untar *u, const struct header *h, struct err *e)
{
	uint64_t mode;
	if (number(h->mode, sizeof(h->mode), &mode) < 0)
		return err_set(e, -EBADMSG, "the archive has a broken header");
	/* An archive of `.` has that in front. */
	const char *name = u->name + (strncmp(u->name, "./", 2) == 0 ? 2 : 0);
	int r = untar_check_name(name, e);
	if (r < 0)
		return r;
	if (++u->files > u->files_max)
		return err_set(e, -EFBIG, "the archive has more than %llu files",
		        (unsigned long long)u->files_max);
	if (u->left > u->bytes_max - u->bytes)
		return err_set(e, -EFBIG, "the archive has more than %llu bytes",
		        (unsigned long long)u->bytes_max);
	u->bytes += u->left;
	u->state = IN_FILE;
	r = u->calls->file(u->ctx, name, mode & 0111, e);
	u->name[0] = '\0';
	return r;
}

static int begin_attributes(struct untar *u, char kind, struct err *e)
{
	if (u->left > PAX_MAX)
		return err_set(
		        e, -EFBIG, "the archive has attributes of more than %d bytes", PAX_MAX);
	u->state = IN_PAX;
	u->pax_len = 0;
	u->for_next = kind == 'x';
	return 0;
}

static int by_kind(struct untar *u, const struct header *h, struct err *e)
{
	switch (h->kind) {
	case 'x':
	case 'g':
		return begin_attributes(u, h->kind, e);
	case '0':
	case '\0':
		break;
	case '5':
		u->state = IN_SKIPPED;
		u->name[0] = '\0';
		return u->left ? err_set(e, -EBADMSG, "the archive has a directory with bytes") : 0;
	case '1':
	case '2':
		return err_set(e, -EBADMSG, "the archive has a link: '%.100s'", u->name);
	case '3':
	case '4':
	case '6':
		return err_set(e, -EBADMSG, "the archive has a device or FIFO: '%.100s'", u->name);
	default:
		return err_set(e, -EBADMSG, "the archive has an entry of kind 0x%02x: '%.100s'",
		        (uint8_t)h->kind, u->name);
	}
	return begin_file(u, h, e);
}

static int entry_over(struct untar *u, struct err *e)
{
	int r = u->state == IN_FILE  ? u->calls->end(u->ctx, e)
	        : u->state == IN_PAX ? attributes(u, e)
	                             : 0;
	u->state = u->pad ? IN_PADDING : AT_HEADER;
	return r;
}

static int header(struct untar *u, struct err *e)
{
	const struct header *h = (const struct header *)u->block;
	u->have = 0;
	if (all_zero(u->block)) {
		u->state = u->empty ? AT_END : AT_HEADER;
		u->empty = true;
		return 0;
	}
	if (u->empty || !sum_is_right(u->block))
		return err_set(e, -EBADMSG, "this is no tar archive, or a damaged one");
	if (++u->entries > ENTRIES * u->files_max)
		return err_set(e, -EFBIG, "the archive has more than %llu entries",
		        (unsigned long long)(ENTRIES * u->files_max));
	uint64_t size;
	if (number(h->size, sizeof(h->size), &size) < 0)
		return err_set(e, -EBADMSG, "the archive has a file of no size");
	bool attributes_follow = h->kind == 'x' || h->kind == 'g';
	int r = attributes_follow ? 0 : entry_name(u, h, e);
	if (r < 0)
		return r;
	u->left = u->has_size && !attributes_follow ? u->size : size;
	u->has_size = u->has_size && attributes_follow;
	u->pad = (BLOCK - u->left % BLOCK) % BLOCK;
	r = by_kind(u, h, e);
	return r < 0 || u->left ? r : entry_over(u, e);
}

/* ---- bytes ---- */

static int consume(struct untar *u, const char *p, size_t n, struct err *e)
{
	u->left -= n;
	int r = 0;
	if (u->state == IN_FILE) {
		r = u->calls->data(u->ctx, p, n, e);
	} else if (u->state == IN_PAX) {
		memcpy(u->pax + u->pax_len, p, n);
		u->pax_len += n;
	}
	return r < 0 || u->left ? r : entry_over(u, e);
}

int untar_feed(struct untar *u, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;
	int r = 0;
	while (n && r == 0 && u->state != AT_END) {
		uint64_t want = u->state == AT_HEADER    ? BLOCK - u->have
		                : u->state == IN_PADDING ? u->pad
		                                         : u->left;
		size_t now = want < n ? (size_t)want : n;
		if (u->state == AT_HEADER) {
			memcpy(u->block + u->have, p, now);
			u->have += now;
			r = u->have == BLOCK ? header(u, e) : 0;
		} else if (u->state == IN_PADDING) {
			u->pad -= now;
			u->state = u->pad ? IN_PADDING : AT_HEADER;
		} else {
			r = consume(u, p, now, e);
		}
		p += now;
		n -= now;
	}
	if (r < 0 || u->state != AT_END)
		return r;
	u->rest += n;
	return u->rest > REST_MAX ? err_set(e, -EFBIG, "the archive goes on after its end") : 0;
}

int untar_end(struct untar *u, struct err *e)
{
	/* One block of zeros or none: some writers leave them out; in the midst of a file is not.
	 */
	bool whole = u->state == AT_END || (u->state == AT_HEADER && u->have == 0);
	if (whole && u->files)
		return 0;
	return err_set(e, -EBADMSG, "the archive is cut off, or none");
}
