/*
 * lying: runs a program under a kernel that lies.
 *
 *	lying CALL[/ARGUMENT/VALUE]=ERRNO... -- PROGRAM [ARGS...]
 *
 * A filter, which everything the program starts inherits, answers the call with the errno and does
 * nothing; 0 is "done".  ARGUMENT 0..5: only where its low half is VALUE.  So a container's or an
 * emulator's half of a kernel looks to agentboxd.
 */
#include "base/mem.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INSNS = 64 };

static const struct {
	const char *name;
	unsigned nr;
} calls[] = {
        {"clone3", SYS_clone3},
        {"fsopen", SYS_fsopen},
        {"io_uring_setup", SYS_io_uring_setup},
        {"keyctl", SYS_keyctl},
        {"mount", SYS_mount},
        {"mount_setattr", SYS_mount_setattr},
        {"pivot_root", SYS_pivot_root},
        {"seccomp", SYS_seccomp},
        {"setns", SYS_setns},
        {"unshare", SYS_unshare},
        {"execveat", SYS_execveat},
        {"landlock_create_ruleset", 444},
        {"landlock_restrict_self", 446},
};

static struct sock_filter insns[INSNS];
static unsigned short n;

static void add(struct sock_filter f)
{
	if (n == INSNS)
		exit(100);
	insns[n++] = f;
}

static int add_lie(const char *text)
{
	char name[32];
	unsigned arg = 0, error = 0, nr = 0;
	int value = 0;
	size_t len = strcspn(text, "/=");
	bool tested = sscanf(text + len, "/%u/%i=%u", &arg, &value, &error) == 3;
	if (len >= sizeof(name) || arg > 5 || (!tested && sscanf(text + len, "=%u", &error) != 1))
		return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			nr = calls[i].nr;
	if (!nr)
		return -ENOENT;
	add((struct sock_filter)BPF_STMT(
	        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, tested ? 3 : 1));
	if (tested) {
		add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		        (unsigned)offsetof(struct seccomp_data, args) + 8 * arg));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)value, 0, 1));
	}
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
	return 0;
}

int main(int argc, char **argv)
{
	int i = 1;
	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (add_lie(argv[i]) < 0) {
			(void)fprintf(stderr, "lying: '%s' is no lie\n", argv[i]);
			return 100;
		}
	if (i + 1 >= argc)
		return 100;
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	const struct sock_fprog prog = {.len = n, .filter = insns};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0) {
		perror("lying: seccomp");
		return 111;
	}
	execv(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 111;
}
