#include "supervisor/seed.h"

#include "base/mem.h"
#include "supervisor/files.h"

#include <string.h>

struct seed {
	struct files *files; /* owned */
	const struct harness *harness;
	const struct driver_command *command;
	size_t nworkspace; /* of harness->seed; the rest are the driver's */
	size_t next;
	seed_done_fn *done;
	void *ctx;
};

static void step(struct seed *s);

bool seed_needed(const struct harness *h, bool first_run, const struct driver_command *c)
{
	return (first_run && h->nseed) || c->nfiles;
}

static const char *name_of(const struct seed *s, size_t i)
{
	return i < s->nworkspace ? s->harness->seed[i].name
	                         : s->command->files[i - s->nworkspace].path;
}

static void wrote(void *ctx, int status, int fd, bool truncated)
{
	(void)fd;
	(void)truncated;
	struct seed *s = ctx;
	/* A file of an earlier attempt, or one the user put there: theirs wins. */
	if (status == -EEXIST && s->next < s->nworkspace)
		status = 0;
	if (status < 0) {
		struct err e;
		err_set(&e, status, "write '%.160s' before the start: %s", name_of(s, s->next),
		        strerror(-status));
		s->done(s->ctx, status, &e);
		return;
	}
	s->next++;
	step(s);
}

static void step(struct seed *s)
{
	if (s->next < s->nworkspace) {
		const struct harness_pair *p = &s->harness->seed[s->next];
		files_write(s->files, p->name, WORKER_NO_REPLACE, 0644, p->value, strlen(p->value),
		        wrote, s);
	} else if (s->next - s->nworkspace < s->command->nfiles) {
		const struct driver_file *f = &s->command->files[s->next - s->nworkspace];
		files_write(s->files, f->path, WORKER_IN_HOME, 0644, f->text, strlen(f->text),
		        wrote, s);
	} else {
		s->done(s->ctx, 0, NULL);
	}
}

struct seed *seed_start(struct loop *l, int worker_fd, const struct harness *h, bool first_run,
        const struct driver_command *c, seed_done_fn *done, void *ctx)
{
	struct seed *s = xnew(struct seed);
	s->files = files_new(l, worker_fd);
	s->harness = h;
	s->command = c;
	s->nworkspace = first_run ? h->nseed : 0;
	s->done = done;
	s->ctx = ctx;
	step(s);
	return s;
}

void seed_close(struct seed *s)
{
	if (!s)
		return;
	files_close(s->files);
	free(s);
}
