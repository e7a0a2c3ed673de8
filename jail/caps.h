/*
 * caps.h - giving up identity and privilege, and proving that it is gone.
 *
 * For the raw children of launch.h: no libc, errors as -errno.  Called after
 * setns() into the jail's user namespace, which fills the bounding set and
 * resets the securebits again.
 */
#ifndef JAIL_CAPS_H
#define JAIL_CAPS_H

#include <stdint.h>
#include <linux/capability.h>
#include <linux/securebits.h>

#define CAPS_BIT(cap) ((uint64_t)1 << (cap))

/* What PID 1 keeps: it starts programs under other ids, takes privileges from them, and ends
 * them. */
#define CAPS_INIT                                                                                  \
	(CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETPCAP) | CAPS_BIT(CAP_KILL))

/* What inner root gets where the policy says `inner_root: packages`: enough for a package manager
 * on files of the jail's own ids.  Not SETFCAP: file capabilities are dead under no_new_privs, and
 * maintainers' scripts do without where they cannot be set.  Not SYS_CHROOT, MKNOD or KILL. */
#define CAPS_PACKAGES                                                                              \
	(CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) |                 \
	        CAPS_BIT(CAP_FSETID) | CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID))

/* Being uid 0 means nothing, and nobody inside can change that.  The first step of every jail. */
#define CAPS_SECUREBITS (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED)
/* Nothing may become ambient any more. */
#define CAPS_SECUREBITS_NO_AMBIENT                                                                 \
	(CAPS_SECUREBITS | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)
/* Of everyone but inner root with CAPS_PACKAGES: a change of ids neither gives nor takes. */
#define CAPS_SECUREBITS_FINAL                                                                      \
	(CAPS_SECUREBITS_NO_AMBIENT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED)
/* Of that one: with its uid it gives up all it has, which apt does before it reads from the network
 * and then makes sure of. */
#define CAPS_SECUREBITS_PACKAGES (CAPS_SECUREBITS_NO_AMBIENT | SECBIT_NO_SETUID_FIXUP_LOCKED)

struct caps_identity {
	uint32_t uid, gid;   /* inner; no supplementary groups */
	uint64_t keep;       /* permitted, effective, inheritable and ambient */
	uint32_t securebits; /* at the end */
};

/* Each is one step, in this order. */
long caps_securebits(void);
long caps_ids(const struct caps_identity *to);
long caps_drop(const struct caps_identity *to); /* sets, bounding set emptied, ambient */
/* Reads everything back from the kernel: -EPERM on any mismatch. */
long caps_verify(const struct caps_identity *want);

#endif
