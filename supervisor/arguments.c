#include "supervisor/arguments.h"

#include "base/ids.h"

#include <stdlib.h>
#include <string.h>

static int number(
        const char *name, const char *text, unsigned long max, unsigned long *ret, struct err *e)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n > max || text[0] == '-')
		return err_set(e, -EINVAL, "%s: '%.40s' is no number up to %lu", name, text, max);
	*ret = n;
	return 0;
}

static int log_level(const char *name, const char *text, unsigned long *ret, struct err *e)
{
	int level = log_level_by_name(text);
	if (level >= 0) {
		*ret = (unsigned long)level;
		return 0;
	}
	return number(name, text, LOG_LEVEL_DEBUG, ret, e);
}

static int log_format(const char *name, const char *text, unsigned long *ret, struct err *e)
{
	int format = log_format_by_name(text);
	if (format < 0)
		return err_set(e, -EINVAL, "%s: '%.40s' is neither text nor json", name, text);
	*ret = (unsigned long)format;
	return 0;
}

int arguments_parse(int argc, char **argv, struct arguments *ret, struct err *e)
{
	unsigned long uid = ID_SUPERVISOR, gid = ID_SUPERVISOR, level = LOG_LEVEL_INFO,
	              format = LOG_TEXT;
	for (int i = 3; i < argc; i += 2) { /* after --build */
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		int rc;
		if (!value)
			rc = err_set(e, -EINVAL, "%s: needs a value", argv[i]);
		else if (strcmp(argv[i], "--uid") == 0)
			rc = number(argv[i], value, UINT32_MAX - 1, &uid, e);
		else if (strcmp(argv[i], "--gid") == 0)
			rc = number(argv[i], value, UINT32_MAX - 1, &gid, e);
		else if (strcmp(argv[i], "--log-level") == 0)
			rc = log_level(argv[i], value, &level, e);
		else if (strcmp(argv[i], "--log-format") == 0)
			rc = log_format(argv[i], value, &format, e);
		else
			rc = err_set(e, -EINVAL, "unknown option '%.40s'", argv[i]);
		if (rc < 0)
			return rc;
	}
	*ret = (struct arguments){
	        (uid_t)uid, (gid_t)gid, (enum log_level)level, (enum log_format)format};
	return 0;
}
