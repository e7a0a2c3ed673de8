#include "abctl/local.h"
#include "abctl/fail.h"
#include "abctl/verb.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ARGS_MAX = 64 };

/* Beside abctl in a build tree, in ../lib/agentbox or ../libexec/agentbox once installed.  Never
 * by PATH: what is run must be of the same build. */
static int find(char path[PATH_MAX])
{
	static const char *const places[] = {"", "../lib/agentbox/", "../libexec/agentbox/"};
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	if (n <= 0)
		return -errno;
	dir[n] = '\0';
	char *slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	slash[1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int len = snprintf(path, PATH_MAX, "%s%sagentbox-policyc", dir, places[i]);
		if (len > 0 && len < PATH_MAX && access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

int local_policyc(const char *const *argv)
{
	char path[PATH_MAX];
	int r = find(path);
	if (r < 0)
		return fail_system("agentbox-policyc is neither beside abctl nor in "
		                   "../lib/agentbox: %s",
		        strerror(-r));
	char *args[ARGS_MAX];
	size_t n = 0;
	args[n++] = path;
	for (; *argv; argv++) {
		if (n == ARGS_MAX - 1)
			return fail_usage("at most %d files at once", ARGS_MAX - 4);
		args[n++] = xstrdup(*argv); /* for the few lines until it is replaced */
	}
	args[n] = NULL;
	signal(SIGPIPE, SIG_DFL); /* ignored here, and that would be inherited */
	execv(path, args);
	return fail_system("%s: %s", path, strerror(errno));
}
