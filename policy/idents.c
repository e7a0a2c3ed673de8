#include "policy/idents.h"
#include "base/fd.h"
#include "policy/units.h"

#include <stdlib.h>
#include <string.h>

enum { IDENTS_FILE_MAX = 4 << 20 }; /* 60,000 users; a larger file is none of a server's */

static int load(const char *path, char **ret, struct err *e)
{
	size_t n = 0;
	*ret = NULL;
	int r = file_slurp(path, IDENTS_FILE_MAX, ret, &n);
	return r == 0 || r == -ENOENT ? 0 : err_set(e, r, "%s: %s", path, strerror(-r));
}

int idents_load(struct idents *i, const char *passwd_path, const char *group_path, struct err *e)
{
	i->group = NULL;
	int r = load(passwd_path, &i->passwd, e);
	return r < 0 ? r : load(group_path, &i->group, e);
}

void idents_done(struct idents *i)
{
	free(i->passwd);
	free(i->group);
	i->passwd = i->group = NULL;
}

/* The line of `name`, after its colon, or NULL. */
static const char *line_of(const char *text, const char *name)
{
	size_t n = strlen(name);
	while (text && *text) {
		if (strncmp(text, name, n) == 0 && text[n] == ':')
			return text + n + 1;
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return NULL;
}

/* Field `which` (0: the first after the name) as an id. */
static int id_field(const char *line, int which, uint32_t *ret)
{
	size_t end = strcspn(line, "\n");
	const char *p = line;
	for (; which > 0; which--) {
		p = memchr(p, ':', end - (size_t)(p - line));
		if (!p)
			return -ENOENT;
		p++;
	}
	char digits[12];
	size_t n = strcspn(p, ":\n");
	if (n == 0 || n >= sizeof(digits))
		return -ENOENT;
	memcpy(digits, p, n);
	digits[n] = '\0';
	uint64_t value = 0;
	if (units_plain(digits, &value) < 0 || value >= UINT32_MAX)
		return -ENOENT;
	*ret = (uint32_t)value;
	return 0;
}

int idents_user(const struct idents *i, const char *name, uint32_t *ret_uid, uint32_t *ret_gid)
{
	const char *line = line_of(i->passwd, name);
	uint32_t uid = 0, gid = 0;
	if (!line || id_field(line, 1, &uid) < 0 || id_field(line, 2, &gid) < 0)
		return -ENOENT;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

int idents_group(const struct idents *i, const char *name, uint32_t *ret_gid)
{
	const char *line = line_of(i->group, name);
	return line ? id_field(line, 1, ret_gid) : -ENOENT;
}
