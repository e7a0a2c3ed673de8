#include "proto/build.h"

#include <string.h>

/* A word of the Makefile's, as text. */
#define TEXT(word)    #word
#define TEXT_OF(word) TEXT(word)

const char *build_id(void)
{
	return TEXT_OF(BUILD_ID);
}

int build_check(int argc, char **argv, struct err *e)
{
	if (argc < 3 || strcmp(argv[1], "--build") != 0)
		return err_set(
		        e, -EINVAL, "this program is started by agentboxd, of the same build");
	if (strcmp(argv[2], build_id()) != 0)
		return err_set(e, -EINVAL,
		        "this program is of another build than agentboxd (%s, not %.40s): install "
		        "all "
		        "programs of one version, then abctl reload",
		        build_id(), argv[2]);
	return argc == 3;
}
