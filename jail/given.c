#include "jail/given.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/egress.h"
#include "proto/init.h"

#include <stdio.h>
#include <string.h>

_Static_assert(
        (int)INIT_GIVEN >= (int)POLICY_GIVEN &&
                (size_t)INIT_GIVEN_BYTES > (size_t)POLICY_GIVEN * (NAME_MAX_LEN + VEIL_MOST + 2),
        "PID 1 has room for all");

static int find(int secrets, const char *name, struct egress_secret *ret, struct err *e)
{
	for (off_t at = 0; fd_pread_full(secrets, ret, sizeof(*ret), at) == (ssize_t)sizeof(*ret);
	        at += (off_t)sizeof(*ret))
		if (strcmp(ret->name, name) == 0)
			return 0;
	return err_set(e, -ENOENT,
	        "secret %s has no value; remedy: a file /etc/agentbox/secrets/%s that root alone "
	        "may "
	        "read, or `secrets` in agentboxd.yaml",
	        name, name);
}

static int add(
        int secrets, const struct policy_given *g, struct buf *to, struct veil *v, struct err *e)
{
	struct egress_secret s;
	struct err why;
	int r = find(secrets, g->secret, &s, e);
	if (r == 0 && veil_add(v, s.value, s.len, &why) < 0)
		r = err_set(e, -EKEYREJECTED, "secret %s does not enter a jail: %s", g->secret,
		        why.text);
	if (r == 0) {
		(void)buf_printf(to, "%s=", g->variable);
		(void)buf_put(to, s.value, s.len);
		(void)buf_putc(to, '\0');
		r = to->failed;
	}
	explicit_bzero(&s, sizeof(s));
	return r;
}

int given_open(int secrets, const struct policy *p, const struct outlets *o, struct veil *ret,
        struct err *e)
{
	struct buf all = BUF_INIT(INIT_GIVEN_BYTES - 1);
	if (buf_reserve(&all, INIT_GIVEN_BYTES - 1) <
	        0) /* it must not move: it would leave copies */
		return err_set(e, -ENOMEM, "secrets: no memory");
	int r = veil_begin(ret, e);
	for (uint32_t i = 0; r == 0 && i < p->ngiven; i++)
		if (outlets_given(o, &p->given[i]))
			r = add(secrets, &p->given[i], &all, ret, e);
	if (r == 0 && all.len == 0)
		r = err_set(e, -EACCES, "policy '%s' gives no such secret to a jail", p->name);
	if (r == 0) {
		r = fd_sealed_memfd("given", all.p, all.len);
		if (r < 0)
			(void)err_set(e, r, "secrets: %s", strerror(-r));
	}
	if (all.p)
		explicit_bzero(all.p, all.room);
	buf_done(&all);
	if (r < 0)
		*ret = (struct veil){0};
	return r;
}
