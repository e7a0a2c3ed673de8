#include "jail/privilege.h"
#include "base/mem.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	int cap;
	const char *name, *why;
} kept[] = {
        {CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
                "namespaces, mounts, pivot_root, setns; rings under io_uring_disabled=1"},
        {CAP_SYS_CHROOT, "CAP_SYS_CHROOT", "setns into a mount namespace"},
        {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "opening /proc/PID/ns of a jail, which is not dumpable"},
        {CAP_NET_ADMIN, "CAP_NET_ADMIN", "lo and its routes inside a jail's network namespace"},
        {CAP_NET_RAW, "CAP_NET_RAW", "the packet socket that tells of refused attempts"},
        {CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE", "listeners on 53, 80 and 443 inside a jail"},
        {CAP_SETUID, "CAP_SETUID", "uid maps; children give root up"},
        {CAP_SETGID, "CAP_SETGID", "gid maps; children give root up"},
        {CAP_SETPCAP, "CAP_SETPCAP", "emptying bounding sets, locking securebits"},
        {CAP_SETFCAP, "CAP_SETFCAP", "a uid map that includes inner id 0 (since 5.12)"},
        {CAP_CHOWN, "CAP_CHOWN", "workspaces, stdio and sockets go to their owners"},
        {CAP_FSETID, "CAP_FSETID", "set-group-id directories in an image's writable layer"},
        {CAP_FOWNER, "CAP_FOWNER", "modes of what was given away; the trash"},
        {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE",
                "the trash; files that go into an image; the supervisor's directory"},
        {CAP_KILL, "CAP_KILL", "ending jails, workers and children of other uids"},
        {CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", "hard limits of jails above our own; oom_score_adj"},
        {CAP_MKNOD, "CAP_MKNOD", "device nodes of a jail's /dev; what is deleted of a snapshot"},
};

/* Without one of these only some policies are refused. */
static bool is_spare(int cap)
{
	return cap == CAP_FSETID || cap == CAP_SYS_RESOURCE || cap == CAP_MKNOD;
}

uint64_t privilege_kept(void)
{
	uint64_t bits = 0;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		bits |= (uint64_t)1 << kept[i].cap;
	return bits;
}

void privilege_missing(uint64_t have, struct buf *to)
{
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (!(have >> kept[i].cap & 1) && !is_spare(kept[i].cap))
			(void)buf_printf(to, "%s: %s\n", kept[i].name, kept[i].why);
}

static int drop_bounding(uint64_t keep, struct err *e)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_errno(e, "bounding set: capability %d", cap);
	return 0;
}

int privilege_reduce(struct err *e)
{
	uint64_t keep = privilege_kept();
	int r = drop_bounding(keep, e);
	if (r < 0)
		return r;
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];
	if (syscall(SYS_capget, &h, d) < 0)
		return err_errno(e, "capget");
	/* What this root has (a container may lack some), less what is not on the list. */
	for (int i = 0; i < 2; i++) {
		d[i].permitted &= (uint32_t)(keep >> (32 * i));
		d[i].effective = d[i].permitted;
		d[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &h, d) < 0)
		return err_errno(e, "capset");
	const struct rlimit none = {0, 0};
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_errno(e, "no_new_privs, dumpable, core");
	return 0;
}
