#include "jail/sysc.h"

#include <fcntl.h>
#include <linux/openat2.h>

/* The kernel keeps r8 and r9 over the call, so the child finds its function there; its rsp is
 * the top of the new stack.  The parent goes on at 1 with its own. */
__attribute__((noinline)) long sysc_clone(struct clone_args *a, int (*fn)(void *), void *arg)
{
	long ret;
	register int (*r8)(void *) __asm__("r8") = fn;
	register void *r9 __asm__("r9") = arg;
	__asm__ volatile("syscall\n\t"
	                 "test %%rax, %%rax\n\t"
	                 "jnz 1f\n\t"
	                 "xor %%ebp, %%ebp\n\t"
	                 "mov %%r9, %%rdi\n\t"
	                 "call *%%r8\n\t"
	                 "mov %%eax, %%edi\n\t"
	                 "mov %[exit], %%eax\n\t"
	                 "syscall\n\t"
	                 "hlt\n"
	                 "1:"
	                 : "=a"(ret)
	                 : "a"((long)SYS_clone3), "D"(a), "S"(sizeof(*a)), "r"(r8),
	                 "r"(r9), [exit] "i"(SYS_exit_group)
	                 : "rcx", "r11", "memory");
	return ret;
}

SYSC_CHILD long sysc_place(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
	        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	return sysc(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}
