#include "drivers/looks.h"
#include "base/mem.h"
#include "drivers/emit.h"

#include <string.h>

static const struct look *find(const struct looks *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->at[i].name, name) == 0)
			return &l->at[i];
	return NULL;
}

const char *looks_kind(const struct looks *l, const char *name)
{
	const struct look *t = find(l, name);
	return t ? t->kind : "other";
}

const char *looks_below(const char *cwd, const char *path)
{
	size_t n = cwd ? strlen(cwd) : 0;
	if (n && strncmp(path, cwd, n) == 0 && path[n] == '/' && path[n + 1])
		return path + n + 1;
	return path;
}

char *looks_title(
        const struct looks *l, const char *cwd, const char *name, const struct json *input)
{
	const struct look *t = find(l, name);
	const char *subject = t && t->subject ? json_str(input, t->subject, NULL) : NULL;
	if (!subject || !*subject)
		return xstrdup(name);
	auto_free char *line = emit_title(t->path ? looks_below(cwd, subject) : subject);
	if (t->path || strcmp(t->kind, "search") == 0)
		return xasprintf("%s %s", name, line);
	return take(line);
}

const char *looks_edits(const struct looks *l, const char *name, const struct json *input)
{
	const struct look *t = find(l, name);
	bool edits = t && t->path && strcmp(t->kind, "edit") == 0;
	return edits ? json_str(input, t->subject, NULL) : NULL;
}
