#include "abctl/save.h"
#include "abctl/fail.h"
#include "abctl/verb.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int save_bytes(
        struct client *c, int fd, const char *to, uint64_t most, struct digest *d, struct err *e)
{
	int r = client_copy(c, fd, most, d, e);
	return r < 0 ? err_wrap(e, "%s", to) : r;
}

int save_to(struct client *c, int fd, const char *to)
{
	struct err e = {0};
	return save_bytes(c, fd, to, UINT64_MAX, NULL, &e) < 0 ? fail_system("%s", e.text)
	                                                       : EXIT_DONE;
}

int save_file(struct client *c, const char *to, mode_t mode)
{
	auto_free char *part = xasprintf("%s.part", to);
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return fail_usage("%s: %s", part, strerror(errno));
	int r = save_to(c, fd, to);
	if (r == 0 && rename(part, to) < 0)
		r = fail_system("%s: %s", to, strerror(errno));
	if (r)
		unlink(part);
	return r;
}

int save_archive(const char *out, save_make_fn *make, void *ctx)
{
	bool piped = !out || strcmp(out, "-") == 0;
	if (piped)
		return isatty(STDOUT_FILENO) ? fail_usage("an archive is nothing for a terminal: "
		                                          "give -o FILE")
		                             : make(ctx, STDOUT_FILENO, "stdout");
	auto_free char *part = xasprintf("%s.part", out);
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_usage("%s: %s", part, strerror(errno));
	int r = make(ctx, fd, out);
	if ((r == 0 || r == EXIT_FAILED) && rename(part, out) < 0)
		r = fail_system("%s: %s", out, strerror(errno));
	if (r && r != EXIT_FAILED)
		(void)unlink(part);
	return r;
}
