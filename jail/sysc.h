/*
 * sysc.h - system calls without libc, for children that share our memory.
 *
 * A child of clone3(CLONE_VM) runs on our heap and our thread's TLS: it may not
 * touch errno, take a lock or allocate.  sysc() returns the kernel's answer
 * (>= 0, or -errno) and touches nothing; sysc_clone starts a function on a
 * stack of its own.  x86_64 only, as the filters of policy/ are.
 */
#ifndef JAIL_SYSC_H
#define JAIL_SYSC_H

#include <stdint.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#ifndef __x86_64__
#error "sysc.h: port sysc_call and sysc_clone to this architecture"
#endif

static inline long sysc_call(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

#define SYSC_6(nr, a, b, c, d, e, f, ...)                                                          \
	sysc_call((long)(nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* sysc(SYS_x, up to six arguments); missing ones are 0. */
#define sysc(...) SYSC_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Functions that run in such a child: the sanitizers' runtimes do not know its stack. */
#define SYSC_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

/* clone3 with fn(arg) as the child, whose return value is its exit code.  `a` must name a stack
 * (16-byte aligned, size too).  The child's pid, or -errno. */
long sysc_clone(struct clone_args *a, int (*fn)(void *), void *arg);

/* An O_PATH fd of what is at `path`, over no link of any kind; -ELOOP where one is in the way. */
long sysc_place(const char *path);

#endif
