#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/build.h"
#include "proto/exec.h"
#include "proto/jail.h"
#include "proto/msg.h"
#include "proto/stdio.h"
#include "tests/t.h"

#include <sys/mman.h>
#include <sys/socket.h>

static void builds(void)
{
	struct err e;
	char name[] = "x", build[] = "--build", uid[] = "--uid", older[] = "1", id[40];
	(void)snprintf(id, sizeof(id), "%s", build_id());
	char *ours[] = {name, build, id, uid, NULL}, *other[] = {name, build, older, NULL};
	ok(strlen(id) == 17, "a build's id");
	ok(build_check(4, ours, &e) == 0, "ours");
	ok(build_check(3, ours, &e) == 1, "ours, and no more is asked");
	ok(build_check(3, other, &e) == -EINVAL, "another");
	ok(strstr(e.text, id) && strstr(e.text, "not 1"), "both are named: %s", e.text);
	ok(build_check(2, ours, &e) == -EINVAL, "nobody says which");
}

static void datagrams(void)
{
	int s[2];
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0,
	        "a pair");
	int before = fd_count();
	struct jail_simple out = {.head = {.type = JAIL_KILL, .req = 7}, .jail = 9};
	int carried[2] = {s[0], s[1]};
	ok(msg_send(s[0], &out, sizeof(out), carried, 2) == 0, "sent with two descriptors");
	union {
		struct jail_simple m;
		char raw[MSG_MAX];
	} in;
	int fds[MSG_FDS];
	ok(msg_recv(s[1], &in, fds) == (int)sizeof(out) && in.m.jail == 9 && in.m.head.nfds == 2,
	        "received whole");
	ok(fds[0] >= 0 && fds[1] >= 0 && fds[2] == -1, "with its descriptors");
	close(fds[0]);
	close(fds[1]);
	ok(msg_recv(s[1], &in, fds) == -EAGAIN, "nothing more");
	ok(send(s[0], "junk", 4, 0) == 4 && msg_recv(s[1], &in, fds) == -EBADMSG,
	        "junk is refused");
	must(msg_send(s[0], &out, sizeof(out), carried, 2) == 0, "another");
	out.head.size = 1000; /* the size field of what was sent is right; forge one */
	ok(send(s[0], &out, sizeof(out), 0) > 0, "a forged size is sent");
	ok(msg_recv(s[1], &in, fds) > 0, "the honest one first");
	close(fds[0]);
	close(fds[1]);
	ok(msg_recv(s[1], &in, fds) == -EBADMSG, "the forged one is refused");
	char big[MSG_MAX + 100] = {0};
	ok(msg_send(s[0], big, sizeof(big), carried, 1) == 0 &&
	                msg_recv(s[1], &in, fds) == -EBADMSG,
	        "one that was cut is refused");
	ok(fd_count() == before, "no descriptor is left over from refused ones");
	close(s[0]);
	ok(msg_recv(s[1], &in, fds) == 0, "EOF");
	close(s[1]);
	ok(sizeof(struct jail_make) <= MSG_MAX && sizeof(struct jail_reply) <= MSG_MAX, "all fit");
	char text[4] = {'a', 'b', 'c', 'd'};
	ok(!msg_text_ok(text, 4), "a text without an end is seen");
}

static void exec_requests(void)
{
	const char *argv[] = {"sh", "-c", "echo \"$A\"", NULL};
	const char *env[] = {"A=b c", "E=", NULL};
	struct exec_spec spec = {argv, env, "/workspace"};
	struct err e;
	auto_close int fd = exec_pack(&spec, &e);
	must(fd >= 0, "packed");
	off_t n = lseek(fd, 0, SEEK_END);
	char *p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	must(p != MAP_FAILED, "mapped");
	static char *av[LIMIT_EXEC_ARGS + 1], *ev[LIMIT_EXEC_ENVS + 1];
	char *cwd;
	ok(exec_unpack(p, (size_t)n, av, ev, &cwd) == 0, "unpacked");
	ok(strcmp(av[2], argv[2]) == 0 && !av[3] && strcmp(ev[1], "E=") == 0 && !ev[2] &&
	                strcmp(cwd, "/workspace") == 0,
	        "the same strings");
	int refused = 0;
	for (size_t cut = 0; cut < (size_t)n; cut++)
		refused += exec_unpack(p, cut, av, ev, &cwd) == -EBADMSG;
	ok(refused == (int)n, "every cut is refused");
	struct exec_head *h = (struct exec_head *)(void *)p;
	h->argc = 1000000;
	ok(exec_unpack(p, (size_t)n, av, ev, &cwd) == -EBADMSG, "a count that lies is refused");
	munmap(p, (size_t)n);
	const char *none[] = {NULL};
	spec.argv = none;
	ok(exec_pack(&spec, &e) == -EINVAL, "an empty command is refused");
	char *huge = malloc(LIMIT_EXEC_BLOB + 2);
	memset(huge, 'x', LIMIT_EXEC_BLOB + 1);
	huge[LIMIT_EXEC_BLOB + 1] = '\0';
	const char *long_argv[] = {huge, NULL};
	spec.argv = long_argv;
	ok(exec_pack(&spec, &e) == -E2BIG, "too much is refused: %s", e.text);
	free(huge);
}

int main(void)
{
	builds();
	datagrams();
	exec_requests();
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, STDIO_STDERR, 0x01020304);
	ok(head[0] == 2 && stdio_length(head) == 0x01020304, "a frame's head");
	return done();
}
