#include "jail/caps.h"
#include "jail/sysc.h"

#include <errno.h>
#include <stdbool.h>
#include <linux/prctl.h>

/* The kernel's sets have 64 bits; beyond the last one that it knows it says EINVAL.  Every kernel
 * that we run on knows CAPS_SURE: of one below, EINVAL is no end of the list. */
enum { CAPS_MAX = 64, CAPS_SURE = CAP_CHECKPOINT_RESTORE };

SYSC_CHILD long caps_securebits(void)
{
	return sysc(SYS_prctl, PR_SET_SECUREBITS, CAPS_SECUREBITS);
}

/* We come as host uid 0, which no map of the jail has: leaving it is not "leaving root" for the
 * kernel, so the capabilities stay until caps_drop. */
SYSC_CHILD long caps_ids(const struct caps_identity *to)
{
	long r = sysc(SYS_setgroups, 0, 0);
	if (r == 0)
		r = sysc(SYS_setresgid, to->gid, to->gid, to->gid);
	if (r == 0)
		r = sysc(SYS_setresuid, to->uid, to->uid, to->uid);
	return r;
}

SYSC_CHILD static long set_caps(uint64_t keep)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	uint32_t lo = (uint32_t)keep, hi = (uint32_t)(keep >> 32);
	struct __user_cap_data_struct d[2] = {{lo, lo, lo}, {hi, hi, hi}};
	return sysc(SYS_capset, &h, d);
}

/* Inheritable first, while the bounding set still allows it; the bounding set while CAP_SETPCAP is
 * effective (without it: EPERM, so the sets of a program that keeps nothing go last). */
SYSC_CHILD long caps_drop(const struct caps_identity *to)
{
	long r = set_caps(to->keep | CAPS_BIT(CAP_SETPCAP));
	for (int cap = 0; r == 0 && cap < CAPS_MAX; cap++) {
		r = sysc(SYS_prctl, PR_CAPBSET_DROP, cap);
		if (r == -EINVAL && cap > CAPS_SURE) {
			r = 0;
			break;
		}
	}
	for (int cap = 0; r == 0 && cap < CAPS_MAX; cap++) {
		if (to->keep & CAPS_BIT(cap))
			r = sysc(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap);
	}
	if (r == 0)
		r = sysc(SYS_prctl, PR_SET_SECUREBITS, to->securebits);
	if (r == 0)
		r = set_caps(to->keep);
	return r;
}

SYSC_CHILD static bool ids_are(const struct caps_identity *want)
{
	uint32_t u[3] = {0}, g[3] = {0};
	if (sysc(SYS_getresuid, &u[0], &u[1], &u[2]) || sysc(SYS_getresgid, &g[0], &g[1], &g[2]))
		return false;
	for (int i = 0; i < 3; i++) {
		if (u[i] != want->uid || g[i] != want->gid)
			return false;
	}
	return sysc(SYS_getgroups, 0, 0) == 0;
}

SYSC_CHILD static bool sets_are(uint64_t keep)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};
	if (sysc(SYS_capget, &h, d) != 0)
		return false;
	uint32_t lo = (uint32_t)keep, hi = (uint32_t)(keep >> 32);
	return d[0].effective == lo && d[0].permitted == lo && d[0].inheritable == lo &&
	       d[1].effective == hi && d[1].permitted == hi && d[1].inheritable == hi;
}

SYSC_CHILD long caps_verify(const struct caps_identity *want)
{
	if (!ids_are(want) || !sets_are(want->keep))
		return -EPERM;
	for (int cap = 0; cap < CAPS_MAX; cap++) {
		long bounding = sysc(SYS_prctl, PR_CAPBSET_READ, cap);
		if (bounding == -EINVAL && cap > CAPS_SURE)
			break;
		long ambient = sysc(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap);
		if (bounding != 0 || ambient != (want->keep & CAPS_BIT(cap) ? 1 : 0))
			return -EPERM;
	}
	if (sysc(SYS_prctl, PR_GET_SECUREBITS) != (long)want->securebits)
		return -EPERM;
	if (sysc(SYS_prctl, PR_GET_NO_NEW_PRIVS) != 1 || sysc(SYS_prctl, PR_GET_DUMPABLE) != 0)
		return -EPERM;
	return 0;
}
