#include "proto/build.h"

#include <string.h>

const char *build_id(void)
{
	return BUILD_ID; /* the Makefile's */
}

int build_check(int argc, char **argv, struct err *e)
{
	if (argc < 3 || strcmp(argv[1], "--build") != 0)
		return err_set(
		        e, -EINVAL, "this program is started by agentboxd, of the same build");
	if (strcmp(argv[2], BUILD_ID) != 0)
		return err_set(e, -EINVAL,
		        "this program is of another build than agentboxd (%s, not %.40s): install "
		        "all "
		        "programs of one version, then abctl reload",
		        BUILD_ID, argv[2]);
	return argc == 3;
}
