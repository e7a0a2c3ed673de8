#include "jail/handover.h"
#include "base/fd.h"
#include "base/ids.h"
#include "jail/daemon.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct daemon from, to;
static const struct options options;

static int any_fd(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 3)
		must(0, "a descriptor");
	return fd;
}

static void blank(struct daemon *d)
{
	memset(d, 0, sizeof(*d));
	d->options = &options;
	service_init(&d->egress);
	for (int i = 0; i < EGRESS_PLACES; i++)
		service_init(&d->drains[i]);
	list_init(&d->events);
	remote_init(&d->remote);
	d->listener.fd = d->state.dir = d->state.lock = d->state.sessions = d->state.trash =
	        d->state.snapshots = -1;
	d->leases.fd = d->tree.dirfd = d->tree.workers = d->secrets = d->former_policies = -1;
	if (poller_init(&d->poller, NULL) < 0)
		must(0, "a poller");
	reaper_init(&d->reaper, &d->poller);
	jails_init(&d->jails, &d->poller, &d->reaper, &peers_news, d);
}

/* A dead one: nothing of it is watched, so that any descriptor will do. */
static struct jail *add_jail(struct daemon *d, unsigned slot)
{
	struct jail *j = jails_blank(&d->jails);
	j->l.kit = kit_blank(&d->tree, &d->closer);
	j->id = (uint64_t)7 * LIMIT_JAILS + slot;
	j->state = JAILS_DEAD;
	j->reaped = true;
	j->l.pid = j->l.pidfd = -1;
	j->l.control = any_fd();
	j->l.kit->mntns = any_fd();
	j->l.kit->base = ID_STORE_BASE + 5 * ID_BLOCK;
	j->l.kit->listeners[2] = any_fd();
	j->l.kit->cgroup.dirfd = any_fd();
	(void)str_copy(j->l.kit->cgroup.name, sizeof(j->l.kit->cgroup.name), "jail-17");
	j->kept.out = any_fd();
	j->execs = 3;
	j->made_ms = 12345;
	(void)str_copy(j->run, sizeof(j->run), "run_x");
	j->l.kit->limits.pids = 99;
	jails_resume(j);
	return j;
}

static char bytes[1 << 20];
static size_t size;

static int changed(struct err *e)
{
	int fd = memfd_create("changed", MFD_CLOEXEC);
	if (write(fd, bytes, size) != (ssize_t)size)
		must(0, "a copy");
	int r = handover_check(fd, e);
	close(fd);
	return r;
}

static char *find(const char *name)
{
	char *at = memmem(bytes, size, name, strlen(name) + 1);
	must(at, "%s is there", name);
	return at;
}

static void test_carried(int memfd)
{
	struct err e = {0};
	must(handover_check(memfd, &e) == 0, "what was written is understood: %s", e.text);
	blank(&to);
	must(handover_read(memfd, &to, &e) == 0, "and taken: %s", e.text);
	ok(to.generation == 42 && to.pool.serial == 17 && to.pool.kept[5] && to.leases.next == 9 &&
	                to.state.lock == from.state.lock && to.closer.pid == 77 &&
	                strcmp(to.tree.path, "/a/path") == 0,
	        "what the daemon counted");
	ok(to.drains[0].child.pid == 1234 &&
	                to.drains[0].child.pidfd == from.drains[3].child.pidfd &&
	                !service_running(&to.drains[1]) && !service_running(&to.egress),
	        "a former egress");
	const struct kept_event *kept = list_first(&to.events, struct kept_event, link);
	ok(to.nevents == 2 && kept && kept->m.port == 443, "events that nobody was told");
	const struct jail *a = from.jails.slots[4], *b = to.jails.slots[4];
	must(b && to.jails.count == 2 && to.jails.slots[9], "two jails, each in its slot");
	ok(b->id == a->id && b->execs == 3 && b->made_ms == 12345 && b->table == &to.jails &&
	                strcmp(b->run, "run_x") == 0 && b->kept.out == a->kept.out &&
	                b->kept.in == -1 && b->l.kit->mntns == a->l.kit->mntns &&
	                b->l.stdio.in == -1,
	        "a jail as it was");
	ok(b->l.kit->limits.pids == 99 && b->l.kit->listeners[2] == a->l.kit->listeners[2] &&
	                b->l.kit->listeners[1] == -1 && b->l.kit->tree == &to.tree &&
	                strcmp(b->l.kit->cgroup.name, "jail-17") == 0,
	        "and its kit");
}

static void test_descriptors(int memfd)
{
	int fd = from.jails.slots[4]->l.kit->listeners[2];
	handover_keep(&from, true);
	ok(fcntl(fd, F_GETFD) == 0 && fcntl(from.state.lock, F_GETFD) == 0,
	        "what is carried stays open over an exec");
	handover_keep(&from, false);
	ok(fcntl(fd, F_GETFD) == FD_CLOEXEC, "or not");
	struct err e = {0};
	static struct daemon third;
	blank(&third);
	close(fd);
	ok(handover_read(memfd, &third, &e) == -EBADF, "one that is closed is noticed: %s", e.text);
}

static void test_refused(int memfd)
{
	struct err e = {0};
	size = (size_t)fd_pread_full(memfd, bytes, sizeof(bytes), 0);
	must(size > 1000 && size < sizeof(bytes) && changed(&e) == 0, "%zu bytes", size);
	for (size_t cut = 1, all = size; cut < all; cut += 997) {
		size = all - cut;
		if (changed(&e) != -EBADMSG)
			ok(0, "cut by %zu bytes: %s", cut, e.text);
		size = all;
	}
	ok(1, "cut short anywhere");
	bytes[8]++; /* version, behind 8 bytes of magic */
	ok(changed(&e) == -EPROTO && strstr(e.text, "version 2"), "another version: %s", e.text);
	bytes[8]--;
	bytes[0]++;
	ok(changed(&e) == -EBADMSG, "something else: %s", e.text);
	bytes[0]--;
	char *at = find("l.cpu_us");
	at[0] = 'x';
	ok(changed(&e) == -EPROTO && strstr(e.text, "'x.cpu_us'"), "an unknown member: %s", e.text);
	at[0] = 'l';
	at[24]++; /* its size */
	ok(changed(&e) == -EPROTO && strstr(e.text, "of 9 bytes"), "another size: %s", e.text);
	at[24]--;
	memcpy(at, "made_ms", 8); /* twice one, never the other */
	ok(changed(&e) == -EPROTO && strstr(e.text, "wants 'l.cpu_us'"), "a missing one: %s",
	        e.text);
	memcpy(at, "l.cpu_us", 9);
	ok(changed(&e) == 0, "as it was");
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ok(handover_check(null, &e) == -EBADMSG, "no file: %s", e.text);
	close(null);
}

int main(void)
{
	struct err e = {0};
	blank(&from);
	from.generation = 42;
	from.closer.pid = 77;
	from.pool.serial = 17;
	from.pool.kept[5] = true;
	from.leases.next = 9;
	from.state.lock = any_fd();
	(void)str_copy(from.tree.path, sizeof(from.tree.path), "/a/path");
	add_jail(&from, 4);
	add_jail(&from, 9);
	from.drains[3].child.pidfd = any_fd();
	from.drains[3].child.pid = 1234;
	const struct jail_egress event = {.jail = from.jails.slots[9]->id, .port = 443};
	peers_keep_event(&from, &event);
	peers_keep_event(&from, &event);
	int memfd = handover_write(&from, &e);
	must(memfd >= 0, "written: %s", e.text);
	ok(fcntl(memfd, F_GET_SEALS) & F_SEAL_WRITE, "and sealed");
	test_carried(memfd);
	test_refused(memfd);
	test_descriptors(memfd);
	return done();
}
