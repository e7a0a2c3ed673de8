/* Real jails, looked at from inside.  The filter allows everything, so that each other layer has
 * to hold by itself. */
#include "tests/t.h"
#include "tests/jail_rig.h"
#include "proto/worker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/ioctl.h>
#include <linux/nsfs.h>

static struct rig rig;

static struct launched launch(const struct launch_spec *spec)
{
	struct launched j;
	struct err e = {.code = 0};
	int r = launch_jail(spec, &j, &e);
	if (r < 0)
		printf("# %s\n", e.text);
	must(r == 0, "a jail is launched");
	return j;
}

static struct launched plain(void)
{
	struct err e = {.code = 0};
	struct kit *k = rig_kit(&rig, &e);
	if (!k)
		printf("# %s\n", e.text);
	must(k != NULL, "a kit is made");
	struct launch_spec spec = rig_spec(&rig, k);
	return launch(&spec);
}

static const char *say(const struct launched *j, const char *line, uint32_t flags)
{
	static struct rig_out o;
	struct err e = {.code = 0};
	if (rig_run(j, line, flags, &o, &e) < 0)
		return e.text[0] ? "cannot ask PID 1" : "";
	if (o.error)
		(void)snprintf(o.text, sizeof(o.text), "stage %d: %s", o.stage, strerror(o.error));
	size_t n = strlen(o.text);
	if (n && o.text[n - 1] == '\n')
		o.text[n - 1] = '\0';
	return o.text;
}

static void from_inside(void)
{
	struct launched j = plain();
	char want[64];
	(void)snprintf(want, sizeof(want), "0 %u 65536", j.kit->base);
	static const struct {
		const char *line, *want, *what;
	} rows[] = {
	        {"id -u; id -G", "1000\n1000", "the agent is uid 1000 with one group"},
	        {"grep -c 'Cap.*0000000000000000' /proc/self/status", "5",
	                "no capability in any set"},
	        {"grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | cut -f2", "1\n2",
	                "no_new_privs, a filter"},
	        {"grep ^0: /proc/self/cgroup", "0::/", "own cgroup namespace"},
	        {"hostname; pwd -P", "jail\n/workspace", "own host name, working directory"},
	        {"ls /proc/self/fd | wc -l", "4", "no descriptor but stdio"},
	        {"ls /dev | sort | tr '\\n' ' '",
	                "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ",
	                "minimal /dev"},
	        {"touch /x /usr/x /etc/x /dev/x /mnt/x /opt/agent/x 2>&1 | grep -c 'Read-only'",
	                "6", "the root is read-only"},
	        {"for d in /tmp /dev/shm /run /home/agent /workspace; do touch $d/f && echo y; "
	         "done | wc -l",
	                "5", "what is the jail's own is writable"},
	        {"cat /proc/keys /proc/key-users /proc/kallsyms /proc/interrupts 2>/dev/null | wc "
	         "-c",
	                "0", "masked files of /proc are empty"},
	        {"cd /proc; cat softirqs vmstat zoneinfo buddyinfo cgroups schedstat partitions "
	         "sys/fs/file-nr sys/fs/inode-nr sys/fs/inode-state sys/fs/dentry-state "
	         "sys/kernel/pty/nr pressure/* sys/fs/quota/* fs/*/*/* 2>/dev/null | wc -c",
	                "0", "counters of the machine are empty"},
	        {"sh -c 'echo 1 >/proc/sys/vm/drop_caches' "
	         "2>&1 | grep -c Read-only",
	                "1", "/proc/sys is read-only"},
	        {"ls -d /proc/[0-9]* | grep -c '^/proc/1$'", "0", "PID 1 is invisible"},
	        {"ls /proc/1/ 2>&1 | grep -c 'No such file'", "1", "and its files too"},
	        {"kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; echo alive", "alive",
	                "signals do not reach PID 1"},
	        {"cat /proc/sys/user/max_*_namespaces | sort | uniq -c | tr -s ' '", " 8 0",
	                "no namespace of any kind below"},
	        {"awk '$6 !~ /nosuid/' /proc/self/mountinfo | wc -l", "0", "nosuid everywhere"},
	        {"awk '$6 !~ /nodev/ { print $5 }' /proc/self/mountinfo | grep -v -e ^/dev/ -e "
	         "^/dev$ -e ^/proc/ | wc -l",
	                "0", "nodev but on /dev and what masks with its null"},
	        {"for d in /dev/shm /run; do cp /bin/true $d/t; $d/t 2>&1 | grep -c denied; done",
	                "1\n1", "noexec where nothing is started from"},
	        {"unshare -U true 2>/dev/null || echo no", "no", "no nested user namespace"},
	        {"mount -t tmpfs t /tmp 2>/dev/null || echo no", "no", "no mount"},
	        {"grep -c -e shared: -e master: /proc/self/mountinfo", "0", "nothing propagates"},
	        {"ls /sys | wc -l", "0", "/sys is empty"},
	        {"cat /etc/shadow 2>&1 | grep -c 'No such'", "1", "no /etc of the host"},
	        {"getent passwd 1000 | cut -d: -f6", "/home/agent", "passwd"},
	        {"cat /etc/resolv.conf", "nameserver 198.18.0.1", "resolver"},
	        {"tail -n +3 /proc/net/dev | wc -l", "1", "one network device"},
	        {"echo x > /dev/stdout", "x", "stdout can be opened again"},
	        {"ulimit -n; ulimit -c", "4096\n0", "rlimits"},
	        {"cat /proc/self/oom_score_adj", "500", "the host's daemons die last"},
	        {"cp /usr/bin/id /tmp/i && chmod u+s /tmp/i && /tmp/i -u", "1000",
	                "set-uid does nothing"},
	        {"python3 -c 'import ctypes; l=ctypes.CDLL(None,use_errno=True); "
	         "print(l.prctl(28,0), l.getpid()>1)' 2>/dev/null || echo '-1 True'",
	                "-1 True", "securebits are locked"},
	        {"stat -f -c %c /tmp", "4096", "inodes of /tmp are capped"},
	};
	is_str(say(&j, "tr -s ' ' </proc/self/uid_map | sed 's/^ //'", 0), want, "uid_map");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		is_str(say(&j, rows[i].line, 0), rows[i].want, "%s", rows[i].what);
	ok(j.layers & LAYER_BIT(LAYER_USERNS), "layers are told");
	uid_t owner = 0;
	ok(ioctl(j.kit->userns, NS_GET_OWNER_UID, &owner) == 0 && owner == j.kit->base,
	        "its user namespace is charged to its own ids, not to root (%u)", owner);
	ok(launch_reap(&j) == -EAGAIN, "PID 1 lives on");
	launched_free(&j);
}

static void roots(void)
{
	struct launched j = plain();
	is_str(say(&j, "id -u; id -G; grep -c 'Cap.*0000000000000000' /proc/self/status",
	               JAIL_MAKE_ROOT),
	        "0\n0 1000\n5", "inner root has no capability");
	is_str(say(&j, "touch /workspace/r /home/agent/r && echo ok", JAIL_MAKE_ROOT), "ok",
	        "and still gets into the agent's directories");
	is_str(say(&j, "chown 1000 /workspace/r 2>/dev/null || echo no", JAIL_MAKE_ROOT), "no",
	        "and cannot chown");
	launched_free(&j);

	rig.policy.flags |= POLICY_INNER_ROOT_PACKAGES;
	j = plain();
	is_str(say(&j, "grep -E 'CapEff|CapBnd' /proc/self/status | cut -f2", JAIL_MAKE_ROOT),
	        "00000000000000db\n0000000000000000",
	        "inner_root: packages gives six capabilities");
	is_str(say(&j, "touch /tmp/r && chown 1000:1000 /tmp/r && stat -c %u /tmp/r",
	               JAIL_MAKE_ROOT),
	        "1000", "enough to chown inside");
	is_str(say(&j, "grep -c 'Cap.*0000000000000000' /proc/self/status", 0), "5",
	        "the agent has none all the same");
	launched_free(&j);
	rig.policy.flags &= ~(uint32_t)POLICY_INNER_ROOT_PACKAGES;
}

/* Its own, which is neither ours nor another jail's: what is added to it ends with the jail. */
static void keyrings(void)
{
	static const char line[] = "perl -e 'print syscall(250,0,-3,0)'";
	long ours = syscall(SYS_keyctl, 0, -3, 0);
	if (ours < 0 && errno == ENOSYS) {
		skip_one("own session keyring", "this kernel has no keys");
		return;
	}
	struct launched a = plain(), b = plain();
	long first = strtol(say(&a, line, 0), NULL, 10),
	     second = strtol(say(&b, line, 0), NULL, 10);
	ok(first > 0 && second > 0 && first != second && first != ours && second != ours,
	        "two jails and we have three session keyrings (%ld, %ld, %ld)", first, second,
	        ours);
	launched_free(&a);
	launched_free(&b);
}

static void errors(void)
{
	struct launched j = plain();
	struct rig_out o;
	const char *argv[] = {"no-such-program", NULL}, *env[] = {NULL};
	struct exec_spec spec = {.argv = argv, .env = env, .cwd = "/workspace"};
	auto_close int memfd = exec_pack(&spec, NULL);
	struct launch_program p = {.exec = 3, .memfd = memfd};
	struct launch_stdio s;
	must(launch_exec(&j, &p, &s, NULL) == 0, "asking for a program that is not there");
	o = (struct rig_out){.code = 0};
	rig_answer(&j, &o, 20000);
	ok(o.answered && o.error == ENOENT && o.stage == INIT_STAGE_EXEC,
	        "is answered with ENOENT at exec");
	launch_stdio_close(&s);
	spec.cwd = "/nowhere";
	auto_close int lost = exec_pack(&spec, NULL);
	p.memfd = lost;
	must(launch_exec(&j, &p, &s, NULL) == 0, "a directory that is not there");
	rig_answer(&j, &o, 20000);
	ok(o.error == ENOENT && o.stage == INIT_STAGE_CWD, "is named");
	launch_stdio_close(&s);
	ok(rig_run(&j, "exit 3", 0, &o, NULL) == 0 && o.code == 3, "exit codes are passed on");
	ok(rig_run(&j, "kill -15 $$", 0, &o, NULL) == 0 && o.sig == 15, "signals too");
	launched_free(&j);

	struct policy none = rig.policy;
	none.ninsns = 0;
	struct launch_spec bad = rig_spec(&rig, rig_kit(&rig, NULL));
	bad.policy = &none;
	struct err e = {.code = 0};
	ok(launch_jail(&bad, &j, &e) < 0 && strstr(e.text, "seccomp"),
	        "no filter: refused by name (%s)", e.text);
	none = rig.policy;
	none.required |= LAYER_BIT(LAYER_LIMIT_MEMORY) | LAYER_BIT(LAYER_LIMIT_CPU);
	if (!(cgroup_limits_in_force(&rig.tree) & LAYER_BIT(LAYER_LIMIT_MEMORY))) {
		bad = rig_spec(&rig, rig_kit(&rig, NULL));
		bad.policy = &none;
		ok(launch_jail(&bad, &j, &e) == -ENOPKG && strstr(e.text, "limit.memory"),
		        "a required layer that is missing: refused by name");
	}
}

static void network(void)
{
	struct launched j = plain();
	auto_close int memfd =
	        rig_sh("exec 3<>/dev/null; "
	               "perl -MSocket -e 'sub t{socket(my $s,AF_INET,SOCK_STREAM,0);my "
	               "$r=connect($s,pack_sockaddr_in($_[1],inet_aton($_[0])));print $r?\"ok "
	               "\":\"$! \"} t(\"8.8.8.8\",443);t(\"1.2.3.4\",5555);t(\"127.0.0.1\",9)'");
	struct launch_program p = {.exec = 1, .memfd = memfd};
	struct launch_stdio s;
	must(launch_exec(&j, &p, &s, NULL) == 0, "a program that connects");
	struct rig_out o = {.code = 0};
	rig_read(&s, &o, 20000);
	launch_stdio_close(&s);
	is_str(o.text, "ok Connection refused Connection refused ",
	        "any address reaches the listener of its port, other ports are refused at once");
	struct sockaddr_in6 to;
	socklen_t len = sizeof(to);
	auto_close int peer = accept4(j.kit->listeners[EGRESS_TLS], NULL, NULL, SOCK_CLOEXEC);
	ok(peer >= 0 && getsockname(peer, (struct sockaddr *)&to, &len) == 0,
	        "we accept from outside");
	char text[INET6_ADDRSTRLEN];
	is_str(inet_ntop(AF_INET6, &to.sin6_addr, text, sizeof(text)), "::ffff:8.8.8.8",
	        "and learn what was dialled");
	unsigned char packet[128];
	ssize_t n = recv(j.kit->listeners[EGRESS_WATCH], packet, sizeof(packet), MSG_DONTWAIT);
	ok(n >= 40 && packet[9] == IPPROTO_TCP && packet[16] == 1 && packet[19] == 4 &&
	                packet[22] == 5555 >> 8 && packet[23] == (5555 & 255),
	        "the watch saw the attempt on 1.2.3.4:5555 and nothing before it");
	ok(recv(j.kit->listeners[EGRESS_WATCH], packet, sizeof(packet), MSG_DONTWAIT) < 0,
	        "and nothing of what was accepted or went to 127.0.0.1");
	launched_free(&j);
}

static void terminal(void)
{
	struct launched j = plain();
	const char *said =
	        say(&j, "tty; echo x >/dev/tty; stty size 2>/dev/null | wc -w", JAIL_MAKE_TTY);
	is_str(said, "/dev/pts/0\r\nx\r\n2\r", "a terminal of the jail's own");
	launched_free(&j);
}

static void ends(void)
{
	struct launched j = plain();
	struct rig_out o;
	ok(rig_run(&j,
	           "for i in 1 2 3 4 5; do setsid sh -c 'trap \"\" TERM HUP; sleep 1000' "
	           ">/dev/null 2>&1 & done; echo up",
	           0, &o, NULL) == 0 &&
	                strcmp(o.text, "up\n") == 0,
	        "daemons are left behind");
	ok(cgroup_populated(&j.kit->cgroup) == 1, "the cgroup is populated");
	ok(cgroup_kill(&j.kit->cgroup, NULL) == 0 && cgroup_wait_empty(&j.kit->cgroup, 10000) == 0,
	        "cgroup.kill empties it");
	struct pollfd p = {j.pidfd, POLLIN, 0};
	ok(poll(&p, 1, 10000) == 1 && launch_reap(&j) == 0, "PID 1 is collected");
	struct jail_resources u;
	cgroup_usage(&j.kit->cgroup, &u, NULL);
	ok(u.cpu_us > 0, "the kernel counted %llu us of cpu", (unsigned long long)u.cpu_us);
	launched_free(&j);

	j = plain();
	ok(rig_run(&j, "sleep 1000 >/dev/null 2>&1 & echo up", 0, &o, NULL) == 0, "another daemon");
	/* a signal is sent, and on a crowded machine not yet acted on */
	ok(launch_kill_all(&j, NULL) == 0 &&
	                rig_run(&j,
	                        "i=0; while pgrep sleep >/dev/null && [ $i -lt 200 ]; do "
	                        "i=$((i+1)); perl -e 'select undef,undef,undef,.05'; done; "
	                        "pgrep sleep | wc -l",
	                        0, &o, NULL) == 0,
	        "PID 1 kills everything else");
	is_str(o.text, "0\n", "and goes on serving");
	fd_close(take_fd(j.control));
	p.fd = j.pidfd;
	ok(poll(&p, 1, 10000) == 1, "EOF on its socket ends PID 1");
	launched_free(&j);

	if (!(cgroup_limits_in_force(&rig.tree) & LAYER_BIT(LAYER_LIMIT_PIDS))) {
		j = plain();
		ok(j.fallback & LAYER_BIT(LAYER_LIMIT_PIDS), "RLIMIT_NPROC stands in for pids.max");
		ok(rig_run(&j,
		           "i=0; while [ $i -lt 200 ]; do sleep 30 >/dev/null 2>&1 & i=$((i+1)); "
		           "done",
		           0, &o, NULL) == 0 &&
		                strstr(o.text, "fork"),
		        "and stops a fork loop");
		launched_free(&j);
	}
}

/* A session's directories, as agentboxd makes them. */
static int session_dir(const char *path)
{
	if (mkdir(path, 0700) < 0 ||
	        chown(path, ID_STORE_BASE + ID_INNER_AGENT, ID_STORE_BASE + ID_INNER_AGENT) < 0)
		return -1;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int worker_call(int sock, struct worker_request *r, size_t size, int fd,
        struct worker_reply *reply, int *ret_fd)
{
	static char buf[MSG_MAX];
	int fds[MSG_FDS];
	if (msg_send(sock, r, size, &fd, fd >= 0) < 0)
		return -1;
	int entries = 0;
	for (;;) {
		struct pollfd p = {sock, POLLIN, 0};
		if (poll(&p, 1, 20000) != 1 || msg_recv(sock, buf, fds) != (int)sizeof(*reply))
			return -1;
		memcpy(reply, buf, sizeof(*reply));
		if (reply->head.type == WORKER_DONE)
			break;
		entries++;
	}
	*ret_fd = fds[0];
	return entries;
}

/* Seen from outside, once it waits for its first request: the filter is its own last step. */
static void confined(const struct launch_worker *w)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/status", w->pid);
	static const char *const wanted[] = {"Seccomp:\t2\n", "NoNewPrivs:\t1\n",
	        "CapPrm:\t0000000000000000\n", "CapBnd:\t0000000000000000\n"};
	size_t found = 0;
	for (int tries = 0; tries < 1000 && found < ARRAY_LEN(wanted); tries++) {
		auto_free char *text = NULL;
		if (tries)
			usleep(10000);
		if (file_slurp(path, 1 << 16, &text, NULL) < 0)
			break;
		for (found = 0; found < ARRAY_LEN(wanted) && strstr(text, wanted[found]); found++)
			;
	}
	ok(found == ARRAY_LEN(wanted), "it is in its filter and has no capability");
}

static void worker(struct launched *j, const char *state)
{
	struct launch_worker w;
	struct err e = {.code = 0};
	int started = launch_worker(j, rig.worker, &w, &e);
	if (started < 0)
		printf("# %s\n", e.text);
	must(started == 0, "a file worker starts (%s)", state);
	confined(&w);
	static struct worker_request r;
	static struct worker_reply reply;
	int fd = -1;
	r = (struct worker_request){.head.type = WORKER_LIST};
	int n = worker_call(w.socket, &r, sizeof(r), -1, &reply, &fd);
	ok(n >= 5 && reply.status == 0, "it lists %d entries", n);
	r = (struct worker_request){.head.type = WORKER_OPEN, .path = "d/file"};
	ok(worker_call(w.socket, &r, sizeof(r), -1, &reply, &fd) == 0 && reply.status == 0 &&
	                fd >= 0,
	        "opens a file");
	char text[32] = "";
	ok(fd_read_full(fd, text, sizeof(text)) == 6 && strcmp(text, "hello\n") == 0,
	        "whose bytes we read");
	fd_close(fd);
	static const struct {
		const char *path;
		int status;
	} refused[] = {
	        {"link", -ELOOP},
	        {"dirlink/file", -ELOOP},
	        {"fifo", -EINVAL},
	        {"d", -EISDIR},
	        {"../home/agent", -EXDEV},
	        {"/etc/passwd", -EXDEV},
	        {"nothing", -ENOENT},
	};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		r = (struct worker_request){.head.type = WORKER_OPEN};
		(void)str_copy(r.path, sizeof(r.path), refused[i].path);
		ok(worker_call(w.socket, &r, sizeof(r), -1, &reply, &fd) == 0 &&
		                reply.status == refused[i].status && fd < 0,
		        "refuses %s (%s)", refused[i].path, strerror(-reply.status));
	}
	auto_close int bytes = fd_sealed_memfd("bytes", "new\n", 4);
	r = (struct worker_request){
	        .head.type = WORKER_WRITE, .bytes = 4, .mode = 0644, .path = "a/b/link"};
	ok(worker_call(w.socket, &r, sizeof(r), bytes, &reply, &fd) == 0 && reply.status == 0,
	        "writes, making directories");
	r.flags = WORKER_NO_REPLACE;
	(void)str_copy(r.path, sizeof(r.path), "a/b/link");
	ok(worker_call(w.socket, &r, sizeof(r), bytes, &reply, &fd) == 0 && reply.status == -EEXIST,
	        "keeps what is there");
	r = (struct worker_request){
	        .head.type = WORKER_WRITE, .bytes = 4, .mode = 0644, .path = "dirlink/x"};
	ok(worker_call(w.socket, &r, sizeof(r), bytes, &reply, &fd) == 0 &&
	                reply.status == -ENOTDIR,
	        "not through a link");
	launch_worker_end(&w);
}

static void session(void)
{
	char top[] = "/var/tmp/agentbox-test-XXXXXX";
	must(mkdtemp(top) != NULL, "a place for a session");
	auto_free char *ws = xasprintf("%s/workspace", top), *home = xasprintf("%s/home", top);
	auto_close int wfd = session_dir(ws), hfd = session_dir(home);
	must(wfd >= 0 && hfd >= 0, "with its two directories");
	auto_free char *shared = xasprintf("%s/shared", top);
	must(mkdir(shared, 0755) == 0 && chown(shared, 4242, 4242) == 0,
	        "and a directory of user 4242");
	auto_close int sfd = open(shared, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct launch_bind binds[] = {
	        {.source = sfd, .target = "/mnt/a/shared", .writable = true},
	        {.source = sfd, .target = "/workspace/in/side", .writable = false},
	};
	struct launch_spec spec = rig_spec(&rig, rig_kit(&rig, NULL));
	spec.workspace = wfd;
	spec.home = hfd;
	spec.binds = binds;
	spec.nbinds = ARRAY_LEN(binds);
	struct launched j = launch(&spec);
	is_str(say(&j,
	               "mkdir d && echo hello >d/file && ln -s /etc/passwd link && ln -s /tmp "
	               "dirlink && mkfifo fifo && stat -c %u:%g d",
	               0),
	        "1000:1000", "the agent owns what it makes");
	auto_free char *file = xasprintf("%s/d/file", ws);
	struct stat st;
	ok(stat(file, &st) == 0 && st.st_uid == ID_STORE_BASE + 1000 &&
	                st.st_gid == ID_STORE_BASE + 1000,
	        "stored under the reserved ids");
	is_str(say(&j,
	               "echo x >/mnt/a/shared/f && stat -c %U /mnt/a/shared/f; touch "
	               "/workspace/in/side/g 2>&1 | grep -c Read-only; touch /mnt/x 2>&1 | grep -c "
	               "Read-only",
	               0),
	        "agent\n1\n1", "binds: one to write, one to read");
	auto_free char *made = xasprintf("%s/f", shared);
	ok(stat(made, &st) == 0 && st.st_uid == 4242, "what is written to a bind is its owner's");
	is_str(say(&j, "ln /usr/bin/id hard 2>&1 | grep -c -e cross-device -e permitted", 0), "1",
	        "no hard link to another mount");
	worker(&j, "beside a live jail");
	ok(cgroup_kill(&j.kit->cgroup, NULL) == 0 && cgroup_wait_empty(&j.kit->cgroup, 10000) == 0,
	        "the jail ends");
	auto_free char *rm = xasprintf("rm -rf %s/a", ws);
	ok(system(rm) == 0, "what the worker wrote is removed");
	worker(&j, "after its end");
	launched_free(&j);
	auto_free char *all = xasprintf("rm -rf %s", top);
	ok(system(all) == 0, "cleaned up");
}

static int mounts_here(void)
{
	char *text = NULL;
	int n = 0;
	if (file_slurp("/proc/self/mountinfo", 1 << 20, &text, NULL) == 0)
		for (const char *p = text; (p = strchr(p, '\n')); p++)
			n++;
	free(text);
	return n;
}

static int cgroups_here(void)
{
	struct stat st;
	return fstat(rig.tree.dirfd, &st) == 0 ? (int)st.st_nlink : -1;
}

static void leaks(void)
{
	enum { ROUNDS = 200 };
	int fds = fd_count(), mounts = mounts_here(), cgroups = cgroups_here(), good = 0;
	int64_t total = 0;
	for (int i = 0; i < ROUNDS; i++) {
		auto_close int memfd = rig_sh("echo hi");
		struct launch_program p = {.exec = 1, .memfd = memfd};
		struct kit *k = rig_kit(&rig, NULL);
		struct launched j;
		if (!k)
			break;
		struct launch_spec spec = rig_spec(&rig, k);
		spec.program = &p;
		if (launch_jail(&spec, &j, NULL) < 0)
			break;
		struct rig_out o = {.code = 0};
		rig_read(&j.stdio, &o, 20000);
		good += strcmp(o.text, "hi\n") == 0;
		total += j.make_us;
		launched_free(&j);
	}
	ok(good == ROUNDS, "%d of %d jails said hi (%lld us a launch)", good, ROUNDS,
	        (long long)total / ROUNDS);
	ok(fd_count() == fds, "no descriptor leaked (%d, %d)", fds, fd_count());
	ok(mounts_here() == mounts, "no mount leaked");
	ok(cgroups_here() == cgroups, "no cgroup leaked");
	ok(waitpid(-1, NULL, __WALL | WNOHANG) == 0, "no child left but the rig's closer");
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("making jails takes root");
	struct err e = {.code = 0};
	int r = rig_open(&rig, &e);
	if (r < 0)
		printf("# %s\n", e.text);
	must(r == 0, "template, cgroup tree and programs");
	from_inside();
	roots();
	keyrings();
	errors();
	network();
	terminal();
	ends();
	session();
	leaks();
	rig_close(&rig);
	return done();
}
