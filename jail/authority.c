#include "jail/authority.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/child.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* It goes into a file of the jail, under that name: nothing in it may lead elsewhere. */
static bool is_fine(const struct authority *a)
{
	size_t hash = strspn(a->hash, "0123456789abcdef");
	if (a->key_bytes == 0 || a->key_bytes > sizeof(a->key) || a->cert_bytes == 0 ||
	        a->cert_bytes > sizeof(a->cert) || hash != 8 ||
	        memcmp(a->hash + hash, ".0", sizeof(".0")) != 0)
		return false;
	for (uint32_t i = 0; i < a->cert_bytes; i++)
		if (a->cert[i] != '\n' && !isprint((unsigned char)a->cert[i]))
			return false;
	return true;
}

int authority_read(int memfd, struct authority *ret, struct err *e)
{
	if (fd_pread_full(memfd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) || !is_fine(ret))
		return err_set(e, -EBADMSG, "the jail's authority is damaged");
	return 0;
}

static int run(const char *program, const char *const *argv, int out, struct err *e)
{
	auto_buf struct buf said = BUF_INIT(1024);
	const struct child_spec spec = {
	        .path = program, .argv = argv, .fds = &out, .nfds = 1, .uid = ID_AUTHORITY};
	int status = child_run(&spec, AUTHORITY_MS, &said, e);
	if (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return status < 0 ? status : 0;
	char how[32];
	child_status_text(status, how);
	return err_set(
	        e, -EIO, "agentbox-authority ended with %s: %.200s", how, said.p ? said.p : "");
}

static int make(const char *program, const struct policy *p, struct authority *ret, struct err *e)
{
	const char *argv[POLICY_RULES + 2] = {"agentbox-authority"};
	size_t n = 1;
	for (uint32_t i = 0; i < p->nrules; i++)
		if (p->rules[i].terminate)
			argv[n++] = p->rules[i].host;
	auto_close int out = memfd_create("authority", MFD_CLOEXEC);
	if (out < 0)
		return err_errno(e, "memfd");
	int r = run(program, argv, out, e);
	return r < 0 ? r : authority_read(out, ret, e);
}

int authority_make(const char *program, const struct policy *p, struct err *e)
{
	struct authority a;
	int r = make(program, p, &a, e);
	if (r == 0) {
		r = fd_sealed_memfd("authority", &a, sizeof(a));
		if (r < 0)
			(void)err_set(e, r, "memfd: %s", strerror(-r));
	}
	explicit_bzero(&a, sizeof(a));
	return r < 0 ? err_wrap(e, "layer egress: the authority of policy '%s'", p->name) : r;
}
