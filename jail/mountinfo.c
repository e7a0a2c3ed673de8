#include "jail/mountinfo.h"

#include <stdbool.h>
#include <string.h>

static bool octal(char c)
{
	return c >= '0' && c <= '7';
}

/* proc_pid_mountinfo(5): space, tab, line feed and backslash are \ooo. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (s[0] == '\\' && octal(s[1]) && octal(s[2]) && octal(s[3])) {
			*to++ = (char)((s[1] & 7) << 6 | (s[2] & 7) << 3 | (s[3] & 7));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* The mount point is the fifth field. */
char *mountinfo_point(char *line, char **ret_options)
{
	char *field = line;
	for (int i = 0; i < 4 && field; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	if (!field)
		return NULL;
	char *end = field + strcspn(field, " \n");
	if (ret_options)
		*ret_options = *end == ' ' ? end + 1 : end;
	*end = '\0';
	unescape(field);
	return field;
}
