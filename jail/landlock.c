/*
 * Theory of operation: rights are handled (denied unless a rule grants them) as
 * far as the kernel's ABI goes; a rule grants to everything below its directory
 * what landlock_may says.  The kernel adds up the rules between a file and the
 * root, so that a rule cannot take back what one above it gave: "/" gives names
 * alone.  Making devices is granted nowhere.
 *
 * The kernel's header of a build host may be older than the kernel it runs on:
 * numbers are ours.
 */
#include "jail/landlock.h"
#include "jail/sysc.h"

#include <errno.h>
#include <stdint.h>

enum {
	SYS_create_ruleset = 444,
	SYS_add_rule = 445,
	SYS_restrict_self = 446,
	VERSION = 1 << 0, /* flag of create_ruleset: only tell the ABI */
	PATH_BENEATH = 1, /* type of rule */
	ABI_REFER = 2,    /* Linux 5.19 */
	ABI_TRUNCATE = 3, /* 6.2 */
	ABI_NET = 4,      /* 6.7: TCP ports, of which egress decides */
};

enum {
	EXECUTE = 1 << 0,
	WRITE_FILE = 1 << 1,
	READ_FILE = 1 << 2,
	READ_DIR = 1 << 3,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_CHAR = 1 << 6,
	MAKE_DIR = 1 << 7,
	MAKE_REG = 1 << 8,
	MAKE_SOCK = 1 << 9,
	MAKE_FIFO = 1 << 10,
	MAKE_BLOCK = 1 << 11,
	MAKE_SYM = 1 << 12,
	REFER = 1 << 13,
	TRUNCATE = 1 << 14,
	IOCTL_DEV = 1 << 15,
	OF_ABI_1 = REFER - 1,
	/* All that a rule on a file may grant. */
	OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
	KEEP = WRITE_FILE | READ_FILE | READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG |
	       MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE,
	SCOPE_ABSTRACT_SOCKETS = 1 << 0,
	SCOPE_SIGNALS = 1 << 1,
};

static const uint64_t rights[] = {
        [LANDLOCK_LIST] = READ_DIR,
        [LANDLOCK_READ] = READ_DIR | READ_FILE,
        [LANDLOCK_RUN] = READ_DIR | READ_FILE | EXECUTE,
        [LANDLOCK_DEVICES] = READ_DIR | READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV,
        [LANDLOCK_KEEP] = KEEP,
        [LANDLOCK_OWN] = KEEP | EXECUTE,
};

struct ruleset {
	uint64_t fs, net, scoped;
};

struct __attribute__((packed)) beneath {
	uint64_t allowed;
	int32_t parent;
};

int landlock_abi(void)
{
	long abi = sysc(SYS_create_ruleset, 0, 0, VERSION);
	return abi < 1 ? 0 : abi > LANDLOCK_ABI_SCOPES ? LANDLOCK_ABI_SCOPES : (int)abi;
}

SYSC_CHILD static uint64_t handled(int abi)
{
	uint64_t fs = OF_ABI_1;
	if (abi >= ABI_REFER)
		fs |= REFER;
	if (abi >= ABI_TRUNCATE)
		fs |= TRUNCATE;
	if (abi >= LANDLOCK_ABI_IOCTL)
		fs |= IOCTL_DEV;
	return fs;
}

SYSC_CHILD static long add_rule(long ruleset, int abi, const struct landlock_rule *rule)
{
	long fd = sysc_place(rule->path);
	if (fd < 0)
		return rule->optional && (fd == -ENOENT || fd == -ELOOP) ? 0 : fd;
	struct beneath b = {rights[rule->may] & handled(abi), (int32_t)fd};
	long r = sysc(SYS_add_rule, ruleset, PATH_BENEATH, &b, 0);
	if (r == -EINVAL) { /* a file */
		b.allowed &= OF_FILES;
		r = sysc(SYS_add_rule, ruleset, PATH_BENEATH, &b, 0);
	}
	sysc(SYS_close, fd);
	return r;
}

SYSC_CHILD long landlock_make(int abi, const struct landlock_rule *rules, size_t n)
{
	struct ruleset attr = {.fs = handled(abi)};
	size_t size = sizeof(attr.fs);
	if (abi >= ABI_NET)
		size += sizeof(attr.net);
	if (abi >= LANDLOCK_ABI_SCOPES) {
		size += sizeof(attr.scoped);
		attr.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
	}
	long ruleset = sysc(SYS_create_ruleset, &attr, size, 0);
	for (size_t i = 0; ruleset >= 0 && i < n; i++) {
		long r = add_rule(ruleset, abi, &rules[i]);
		if (r < 0) {
			sysc(SYS_close, ruleset);
			return r;
		}
	}
	return ruleset;
}

SYSC_CHILD long landlock_enforce(long ruleset)
{
	long r = sysc(SYS_restrict_self, ruleset, 0);
	sysc(SYS_close, ruleset);
	return r;
}
