#include "proto/child_args.h"

#include "proto/build.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool id(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	*ret = (unsigned)n;
	return !errno && *text && !*end && n > 0 && n < UINT_MAX;
}

static bool take_option(
        const char *name, const char *value, const char *extra, struct child_args *a)
{
	int level = log_level_by_name(value), format = log_format_by_name(value);
	if (strcmp(name, "--uid") == 0)
		return id(value, &a->uid);
	if (strcmp(name, "--gid") == 0)
		return id(value, &a->gid);
	if (strcmp(name, "--log-level") == 0 && level >= 0) {
		a->level = (enum log_level)level;
		return true;
	}
	if (strcmp(name, "--log-format") == 0 && format >= 0) {
		a->format = (enum log_format)format;
		return true;
	}
	if (!extra || strcmp(name, extra) != 0)
		return false;
	a->extra = value;
	return true;
}

int child_args_parse(
        int argc, char **argv, const char *extra, struct child_args *ret, struct err *e)
{
	int asked = build_check(argc, argv, e);
	if (asked != 0)
		return asked < 0 ? asked : 0;
	bool fine = true;
	for (int i = 3; i < argc && fine; i += 2) /* after --build */
		fine = argv[i + 1] && take_option(argv[i], argv[i + 1], extra, ret);
	if (fine && ret->uid != 0 && ret->gid != 0)
		return 1;
	return err_set(e, -EINVAL,
	        "usage: %s --build ID --uid N --gid N [--log-level err|warn|info|debug] "
	        "[--log-format text|json]%s%s%s",
	        argv[0], extra ? " [" : "", extra ? extra : "", extra ? " VALUE]" : "");
}
