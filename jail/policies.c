#include "jail/policies.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "jail/child.h"
#include "jail/layout.h"
#include "policy/policyc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what policyc is given ---- */

enum { ARGV_MAX = 16 + 2 * LIMIT_POLICIES, FDS_MAX = 2 + LIMIT_POLICIES };
_Static_assert((int)FDS_MAX <= (int)CHILD_FDS_MAX, "a descriptor for each file");

struct inputs {
	int fds[FDS_MAX]; /* owned */
	int nfds;
	char *argv[ARGV_MAX]; /* owned, NULL-terminated */
	int argc;
};

static void inputs_done(struct inputs *in)
{
	for (int i = 0; i < in->nfds; i++)
		fd_close(in->fds[i]);
	for (int i = 0; i < in->argc; i++)
		free(in->argv[i]);
}
#define auto_inputs __attribute__((cleanup(inputs_done)))

static void add_arg(struct inputs *in, char *owned)
{
	in->argv[in->argc++] = owned;
}

/* Takes fd; returns the number it will have in the child. */
static int add_fd(struct inputs *in, int fd)
{
	in->fds[in->nfds++] = fd;
	return 3 + in->nfds - 1;
}

/* A regular file that only root may have written; -ENOENT when there is none. */
static int open_root_file(int dir, const char *name, const char *label, struct err *e)
{
	/* NONBLOCK: a FIFO put there must not stop the start. */
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return err_errno(e, "%s", label);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", label);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s is not a regular file", label);
	int r = root_owned(fd, label, e);
	return r < 0 ? r : take_fd(fd);
}

static int add_config(struct inputs *in, const struct policies_source *s, struct err *e)
{
	struct err why;
	int fd = open_root_file(AT_FDCWD, s->config, s->config, &why);
	if (fd == -ENOENT && !s->config_required)
		return 0;
	if (fd < 0)
		return err_set(e, fd, "%s", why.text);
	add_arg(in, xstrdup("--config"));
	add_arg(in, xasprintf("%d:%s", add_fd(in, fd), s->config));
	return 0;
}

static int is_policy_file(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".yaml") == 0;
}

static int add_policy(
        struct inputs *in, int dir, const char *dir_path, const char *file, struct err *e)
{
	auto_free char *name = xstrndup(file, strlen(file) - 5);
	auto_free char *label = xasprintf("%s/%s", dir_path, file);
	if (!name_valid(name))
		return err_set(e, -EINVAL, "%s: '%s' cannot be the name of a policy", label, name);
	if (in->nfds >= FDS_MAX)
		return err_set(e, -E2BIG, "%s: more than %d policies", label, LIMIT_POLICIES);
	int fd = open_root_file(dir, file, label, e);
	if (fd < 0)
		return fd;
	add_arg(in, xstrdup("--policy"));
	add_arg(in, xasprintf("%s=%d:%s", name, add_fd(in, fd), label));
	return 0;
}

static int add_policies(struct inputs *in, const char *dir_path, struct err *e)
{
	auto_close int dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_errno(e, "%s", dir_path);
	int r = root_owned(dir, dir_path, e);
	if (r < 0)
		return r;
	struct dirent **list = NULL;
	int n = scandirat(dir, ".", &list, is_policy_file, alphasort);
	if (n < 0)
		return err_errno(e, "%s", dir_path);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = add_policy(in, dir, dir_path, list[i]->d_name, e);
		free(list[i]);
	}
	free(list);
	return r;
}

static char *policy_dir(const char *config)
{
	const char *slash = strrchr(config, '/');
	return xasprintf("%.*s/policy", (int)(slash - config), config);
}

static int gather(struct inputs *in, const struct policies_source *s, struct err *e)
{
	int out = memfd_create("policies", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (out < 0)
		return err_errno(e, "memfd");
	add_arg(in, xstrdup("agentbox-policyc"));
	add_arg(in, xstrdup("compile"));
	add_arg(in, xstrdup("--out"));
	add_arg(in, xasprintf("%d", add_fd(in, out)));
	int r = add_config(in, s, e);
	auto_free char *dir = policy_dir(s->config);
	return r < 0 ? r : add_policies(in, dir, e);
}

/* ---- running it ---- */

static int verdict(int status, const struct buf *said, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == POLICYC_OK)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == POLICYC_REFUSED) {
		const char *text = said->p ? said->p : "no reason given";
		const char *line = text;
		while (strncmp(line, "note: ", 6) == 0 && strchr(line, '\n'))
			line = strchr(line, '\n') + 1;
		return err_set(e, -EINVAL, "%.*s", (int)strcspn(line, "\n"), line);
	}
	char how[32];
	child_status_text(status, how);
	return err_set(
	        e, -EIO, "agentbox-policyc ended with %s: %.400s", how, said->p ? said->p : "");
}

static int run_policyc(const struct inputs *in, const char *path, struct buf *said, struct err *e)
{
	const struct child_spec spec = {.path = path,
	        .argv = (const char *const *)in->argv,
	        .fds = in->fds,
	        .nfds = in->nfds,
	        .no_network = true};
	int status = child_run(&spec, POLICIES_COMPILE_MS, said, e);
	return status < 0 ? status : verdict(status, said, e);
}

/* ---- what comes back ---- */

/* Copied before it is checked: nobody else holds these bytes. */
static int take_set(struct policies *p, int out, uint64_t generation, struct err *e)
{
	const off_t most =
	        (off_t)(sizeof(struct policy_set) + LIMIT_POLICIES * sizeof(struct policy));
	struct stat st;
	if (fstat(out, &st) < 0)
		return err_errno(e, "compiled policies");
	if (st.st_size < (off_t)sizeof(struct policy_set) || st.st_size > most)
		return err_set(
		        e, -EBADMSG, "compiled policies of %lld bytes", (long long)st.st_size);
	size_t size = (size_t)st.st_size;
	p->set = xcalloc(1, size);
	if (fd_pread_full(out, p->set, size, 0) != (ssize_t)size)
		return err_set(e, -EIO, "compiled policies could not be read");
	int r = policy_set_check(p->set, size, e);
	if (r < 0)
		return err_wrap(e, "compiled policies");
	p->set->generation = generation;
	p->memfd = fd_sealed_memfd("policies", p->set, size);
	if (p->memfd < 0)
		return err_set(e, p->memfd, "sealing the policies: %s", strerror(-p->memfd));
	p->roots = xcalloc(p->set->count, sizeof(*p->roots));
	for (uint32_t i = 0; i < p->set->count; i++)
		p->roots[i] = (struct template)TEMPLATE_NONE;
	return 0;
}

struct policies *policies_again(int memfd, uint64_t generation, struct err *e)
{
	struct policies *p = xnew(struct policies);
	p->memfd = -1;
	if (take_set(p, memfd, generation, e) < 0) {
		policies_free(p);
		return NULL;
	}
	return p;
}

struct policies *policies_load(
        const struct policies_source *s, uint64_t generation, struct buf *said, struct err *e)
{
	auto_inputs struct inputs in = {.nfds = 0};
	int r = gather(&in, s, e);
	if (r == 0)
		r = run_policyc(&in, s->policyc, said, e);
	if (r < 0)
		return NULL;
	return policies_again(in.fds[0], generation, e);
}

void policies_free(struct policies *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; p->roots && i < p->set->count; i++)
		template_done(&p->roots[i]);
	free(p->roots);
	fd_close(p->memfd);
	free(p->set);
	free(p);
}

int policies_root(struct policies *p, uint32_t i, const struct template **ret, struct err *e)
{
	if (p->roots[i].mntns < 0) {
		int r = template_make(&p->set->policies[i], &p->roots[i], e);
		if (r < 0)
			return err_wrap(e, "root of policy '%s'", p->set->policies[i].name);
	}
	*ret = &p->roots[i];
	return 0;
}
