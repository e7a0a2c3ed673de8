/* Work in a child: what comes back, what it sees, what becomes of one that is killed. */
#include "tests/t.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct question {
	int kept, other;
};

static int answers(const void *arg, struct job_out *out, struct err *e)
{
	const struct question *q = arg;
	bool other = fcntl(q->other, F_GETFD) >= 0;
	out->fds[1] = q->kept;
	out->fds[3] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	out->size = sizeof(other);
	memcpy(out->bytes, &other, sizeof(other));
	return getppid() > 1 ? 0 : err_set(e, -ESRCH, "no parent");
}

static int fails(const void *arg, struct job_out *out, struct err *e)
{
	(void)arg;
	out->fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return err_set(e, -EDQUOT, "the reason");
}

static int never(const void *arg, struct job_out *out, struct err *e)
{
	(void)arg;
	(void)out;
	(void)e;
	while (pause() < 0)
		;
	return 0;
}

static int run(const struct job_spec *spec, bool killed, struct job_out *out, struct err *e)
{
	struct job j = JOB_NONE;
	must(job_start(spec, &j, e) == 0, "a job");
	if (killed) {
		ok(child_reap(&j.child, 50) == -ETIME, "it goes on");
		child_kill(&j.child);
	}
	int status = child_reap(&j.child, 20000);
	return job_end(&j, status, out, e);
}

int main(void)
{
	struct stat a, b;
	struct err e = {0};
	int fds = fd_count();
	const struct question q = {open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	        open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	const int keep[] = {-1, q.kept, -1};
	struct job_out out = JOB_OUT_NONE;
	struct job_spec spec = {answers, &q, keep, ARRAY_LEN(keep)};
	must(run(&spec, false, &out, &e) == 0, "is done %s", e.text);
	bool other = true;
	memcpy(&other, out.bytes, sizeof(other));
	ok(out.size == sizeof(other) && !other, "it has no descriptor but those it keeps");
	ok(fstat(out.fds[1], &a) == 0 && fstat(q.kept, &b) == 0 && a.st_ino == b.st_ino,
	        "those under their numbers");
	ok(out.fds[0] < 0 && out.fds[2] < 0 && out.fds[3] >= 0,
	        "what it opens comes back in its place");
	ok(fcntl(out.fds[3], F_GETFD) & FD_CLOEXEC, "and is not inherited");
	job_out_close(&out);

	spec.work = fails;
	ok(run(&spec, false, &out, &e) == -EDQUOT, "an error");
	is_str(e.text, "the reason", "is told as it was");
	spec.work = never;
	ok(run(&spec, true, &out, &e) == -EIO && strstr(e.text, "signal 9"),
	        "one that is killed answers nothing: %s", e.text);
	ok(out.fds[1] < 0 && out.fds[3] < 0, "and then nothing is taken");
	fd_close(q.kept);
	fd_close(q.other);
	ok(fd_count() == fds, "no descriptor is left");
	return done();
}
