/* The client of agentboxd when agentboxd breaks off, or sends policies that are none. */
#include "supervisor/jails.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "tests/t.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct daemon d;
static int lost, served, answered;
static char why[128];

static void on_lost(struct daemon *x, const char *text)
{
	lost++;
	snprintf(why, sizeof(why), "%s", text);
	loop_stop(x->loop);
}

static void on_policies(struct daemon *x)
{
	(void)x;
	served++;
}

static void on_reply(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	(void)ctx;
	(void)fds;
	(void)r;
	answered++;
}

static void guarded(struct op *op, int res, uint32_t flags)
{
	(void)op;
	(void)res;
	(void)flags;
	loop_stop(d.loop);
}

static void run(void)
{
	static struct op guard;
	struct err e;
	loop_timeout(d.loop, &guard, 20000, guarded);
	if (loop_run(d.loop, &e) < 0)
		printf("# loop: %s\n", e.text);
	if (guard.inflight) {
		loop_cancel(d.loop, &guard);
		(void)!loop_run(d.loop, &e);
	}
}

static int begin(void)
{
	static const struct jails_calls calls = {.policies = on_policies, .lost = on_lost};
	int s[2];
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0,
	        "a pair");
	lost = served = answered = 0;
	d.policies = policies_new();
	d.jails = jails_new(&d, s[0], &calls);
	jails_start(d.jails);
	return s[1];
}

/* A set that does not check, where there is none yet: nothing can be served, and waiting for
 * another would keep clients waiting for ever. */
static void bad_policies(void)
{
	auto_close int peer = begin();
	int fd = memfd_create("policies", MFD_CLOEXEC);
	must(fd >= 0 && write(fd, "nonsense", 8) == 8, "a set that is none");
	struct jail_simple m = {.head.type = JAIL_POLICIES};
	must(msg_send(peer, &m, sizeof(m), &fd, 1) == 0, "sent");
	fd_close(fd);
	jails_doctor(d.jails, on_reply, NULL);
	run();
	ok(lost == 1 && served == 0, "given up, once");
	is_str(why, "there are no policies to serve", "and why");
	ok(answered == 0, "and no answer that could be taken for one of agentboxd's");
	policies_free(take(d.policies));
}

static void gone(void)
{
	int peer = begin();
	jails_doctor(d.jails, on_reply, NULL);
	fd_close(peer);
	run();
	ok(lost == 1 && answered == 0, "agentboxd is gone: given up, nothing answered");
	is_str(why, "the connection to agentboxd has ended", "and why");
	policies_free(take(d.policies));
}

int main(void)
{
	struct err e;
	d.loop = loop_new(64, &e);
	must(d.loop && loop_enable(d.loop, &e) == 0, "a loop");
	bad_policies();
	gone();
	return done();
}
