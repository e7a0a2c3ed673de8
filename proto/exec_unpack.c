/* Apart from exec.c because PID 1 links it: no allocation, no stdio, any libc. */
#include "proto/exec.h"
#include "base/limits.h"

#include <string.h>

int exec_unpack(char *p, size_t n, char **argv, char **env, char **ret_cwd)
{
	struct exec_head h;
	if (n < sizeof(h))
		return -EBADMSG;
	memcpy(&h, p, sizeof(h));
	if (h.magic != EXEC_MAGIC || h.argc < 1 || h.argc > LIMIT_EXEC_ARGS ||
	        h.envc > LIMIT_EXEC_ENVS || h.bytes != n - sizeof(h))
		return -EBADMSG;
	char *at = p + sizeof(h), *end = p + n;
	for (uint32_t i = 0; i < h.argc + h.envc + 1; i++) {
		char *nul = memchr(at, '\0', (size_t)(end - at));
		if (!nul)
			return -EBADMSG;
		if (i < h.argc)
			argv[i] = at;
		else if (i < h.argc + h.envc)
			env[i - h.argc] = at;
		else
			*ret_cwd = at;
		at = nul + 1;
	}
	argv[h.argc] = NULL;
	env[h.envc] = NULL;
	return at == end ? 0 : -EBADMSG;
}
