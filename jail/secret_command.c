#include "jail/secret_command.h"
#include "base/ids.h"
#include "jail/child.h"
#include "jail/root_command.h"

#include <errno.h>
#include <sys/wait.h>

int secret_command(
        const struct secret_def *def, int64_t until_ms, char *to, size_t size, struct err *e)
{
	int status = 0;
	const struct root_command c = {.field = def->where,
	        .nargs = def->nargs,
	        .uid = ID_SECRETS,
	        .until_ms = until_ms,
	        .secret = true};
	int n = root_command(&c, to, size, &status, e);
	if (n < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return n;
	char how[32];
	child_status_text(status, how);
	return err_set(e, -EIO, "its command ended with %s", how);
}
