/*
 * landlock.h - a second opinion about files, which does not know of the mounts.
 *
 * The mounts say what a jail sees and what of it is writable.  Landlock says the
 * same once more, by directories: what no rule names can be neither read nor
 * written, even if a mistake in the mounts showed it or made it writable.  Where
 * the kernel has it, the same domain keeps ioctls to the jail's own devices (ABI
 * 5), and signals and abstract sockets inside (ABI 6).  It also refuses every
 * change of mounts, whatever capabilities there are.
 *
 * Order of calls, in a raw child of launch.h: landlock_make as host root, with
 * all mounts in place; landlock_enforce after no_new_privs.
 */
#ifndef JAIL_LANDLOCK_H
#define JAIL_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

enum landlock_may {
	LANDLOCK_LIST,    /* names in directories */
	LANDLOCK_READ,    /* and what is in files */
	LANDLOCK_RUN,     /* and start programs */
	LANDLOCK_DEVICES, /* read, write and ioctl what is there; make nothing */
	LANDLOCK_KEEP,    /* read, make, write, remove; start nothing, no devices */
	LANDLOCK_OWN,     /* and start programs */
};

struct landlock_rule {
	const char *path; /* absolute in the jail: this and all below; borrowed */
	enum landlock_may may;
	bool optional; /* absent or a link: no rule */
};

enum {
	LANDLOCK_ABI_IOCTL = 5,  /* Linux 6.10 */
	LANDLOCK_ABI_SCOPES = 6, /* Linux 6.12; what came later adds nothing that is used here */
};

/* Newest ABI that both this kernel and this file know; 0: none, or switched off at boot. */
int landlock_abi(void);

/* The ruleset's fd, or -errno.  Raw system calls only. */
long landlock_make(int abi, const struct landlock_rule *rules, size_t n);
/* The calling task and all it starts, for ever. */
long landlock_enforce(long ruleset);

#endif
