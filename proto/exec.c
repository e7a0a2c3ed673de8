#include "proto/exec.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"

#include <string.h>

static int put_strings(struct buf *b, const char *const *list, uint32_t *ret_count)
{
	uint32_t n = 0;
	for (; list && list[n]; n++)
		buf_put(b, list[n], strlen(list[n]) + 1);
	*ret_count = n;
	return b->failed;
}

int exec_pack(const struct exec_spec *spec, struct err *e)
{
	struct exec_head h = {.magic = EXEC_MAGIC};
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	buf_put(&b, &h, sizeof(h));
	put_strings(&b, spec->argv, &h.argc);
	put_strings(&b, spec->env, &h.envc);
	buf_put(&b, spec->cwd, strlen(spec->cwd) + 1);
	if (h.argc == 0)
		return err_set(e, -EINVAL, "the command is empty");
	if (b.failed || h.argc > LIMIT_EXEC_ARGS || h.envc > LIMIT_EXEC_ENVS)
		return err_set(e, -E2BIG,
		        "command and environment are too large (at most %d bytes, %d arguments, "
		        "%d variables); pass long input on stdin",
		        LIMIT_EXEC_BLOB, LIMIT_EXEC_ARGS, LIMIT_EXEC_ENVS);
	h.bytes = (uint32_t)(b.len - sizeof(h));
	memcpy(b.p, &h, sizeof(h));
	int fd = fd_sealed_memfd("exec", b.p, b.len);
	return fd < 0 ? err_set(e, fd, "exec request: %s", strerror(-fd)) : fd;
}
