#include "base/privs.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int drop_bounding(struct err *e)
{
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0)
			return 0; /* EINVAL: past the last one this kernel knows */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_errno(e, "dropping capability %d from the bounding set", cap);
	}
	return 0;
}

static int drop_caps(struct err *e)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	if (syscall(SYS_capset, &h, none) < 0)
		return err_errno(e, "capset");
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0
	               ? err_errno(e, "clearing ambient capabilities")
	               : 0;
}

static int verify(uid_t uid, gid_t gid, struct err *e)
{
	uid_t u[3];
	gid_t g[3];
	if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
		return err_errno(e, "reading ids back");
	for (int i = 0; i < 3; i++)
		if (u[i] != uid || g[i] != gid)
			return err_set(e, -EPERM, "ids are not the ones set");
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];
	memset(d, 0xff, sizeof(d));
	if (syscall(SYS_capget, &h, d) < 0)
		return err_errno(e, "capget");
	for (int i = 0; i < 2; i++)
		if (d[i].effective || d[i].permitted || d[i].inheritable)
			return err_set(e, -EPERM, "capabilities are left");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || getgroups(0, NULL) != 0)
		return err_set(e, -EPERM, "no_new_privs or groups are not as set");
	return setresuid((uid_t)-1, 0, (uid_t)-1) == 0 ? err_set(e, -EPERM, "root can be had back")
	                                               : 0;
}

int privs_drop(uid_t uid, gid_t gid, struct err *e)
{
	if (uid == 0 || gid == 0)
		return err_set(e, -EINVAL, "refusing to run as root: give another uid and gid");
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
	                                     SECBIT_NO_SETUID_FIXUP_LOCKED |
	                                     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
	                                     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) < 0)
		return err_errno(e, "securebits");
	int r = drop_bounding(e);
	if (r < 0)
		return r;
	/* A change of ids clears the parent-death signal (prctl(2)): it is put back below. */
	int death_signal = 0;
	if (prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0) < 0)
		return err_errno(e, "reading the parent-death signal");
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_errno(e, "changing to uid %u gid %u", uid, gid);
	r = drop_caps(e);
	if (r < 0)
		return r;
	const struct rlimit none = {0, 0};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	        prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) < 0 ||
	        setrlimit(RLIMIT_CORE, &none) < 0)
		return err_errno(e, "no_new_privs, dumpable, parent-death signal, core");
	return verify(uid, gid, e);
}
