#include "drivers/shell_parts.h"

#include <ctype.h>
#include <string.h>

/* Past the closing quote, or NULL: not closed, or something that runs code inside. */
static const char *skip_single(const char *p)
{
	p = strchr(p + 1, '\'');
	return p ? p + 1 : NULL;
}

/* $NAME, $1, $? only substitute text; $( ${ $[ $' $" can run code or change how quotes read. */
static bool dollar_is_plain(const char *p)
{
	return isalnum((unsigned char)p[1]) || (p[1] && strchr("_?#@*!- \t", p[1])) || !p[1];
}

static const char *skip_double(const char *p)
{
	for (p++; *p && *p != '"'; p++) {
		if (*p == '`' || (*p == '$' && p[1] != '"' && !dollar_is_plain(p)))
			return NULL;
		if (*p == '\\' && p[1])
			p++;
	}
	return *p ? p + 1 : NULL;
}

/* `>` at p: past 2>&1 or >/dev/null, or NULL for a redirection that writes somewhere. */
static const char *skip_redirect(const char *p)
{
	p++;
	if (*p == '&' && isdigit((unsigned char)p[1]))
		p += 2;
	else {
		while (*p == ' ')
			p++;
		if (strncmp(p, "/dev/null", 9) != 0)
			return NULL;
		p += 9;
	}
	return *p == '\0' || strchr(" \t\n;&|", *p) ? p : NULL;
}

/* Past the character or quoted piece at p, or NULL: not understood. */
static const char *skip_one(const char *start, const char *p)
{
	if (*p == '\'')
		return skip_single(p);
	if (*p == '"')
		return skip_double(p);
	if (*p == '>')
		return skip_redirect(p);
	if (*p == '\\') /* an escaped line end joins lines: not followed */
		return p[1] && p[1] != '\n' ? p + 2 : NULL;
	if (*p == '$')
		return dollar_is_plain(p) ? p + 1 : NULL;
	/* A comment would hide quotes from this scanner, or the other way round. */
	if (*p == '#' && (p == start || strchr(" \t\n;&|", p[-1])))
		return NULL;
	if (strchr("`<(){}", *p) || ((unsigned char)*p < 0x20 && *p != '\t'))
		return NULL;
	return p + 1;
}

static bool give(shell_part_fn *fn, void *ctx, const char *p, const char *end, bool *any)
{
	while (p < end && strchr(" \t", *p))
		p++;
	while (end > p && strchr(" \t", end[-1]))
		end--;
	if (p == end)
		return true;
	*any = true;
	return fn(ctx, p, (size_t)(end - p));
}

bool shell_parts(const char *command, shell_part_fn *fn, void *ctx)
{
	bool any = false;
	const char *part = command, *p = command;
	while (*p) {
		if (strchr(";&|\n", *p)) {
			if (!give(fn, ctx, part, p, &any))
				return false;
			part = ++p;
			continue;
		}
		p = skip_one(command, p);
		if (!p)
			return false;
	}
	return give(fn, ctx, part, p, &any) && any;
}
