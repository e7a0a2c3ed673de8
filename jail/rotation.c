/*
 * Secrets that change while we run: at a reload, and when a file of theirs is written or replaced.
 *
 * Directories are watched, not files, because a file is best replaced by another one.  What a link
 * leads to elsewhere is not watched; `abctl reload` reads that.
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/secrets.h"
#include "proto/egress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Several files are often written together. */
enum { SETTLE_MS = 200, SAID_MAX = 8 << 10 };

void daemon_log_lines(enum log_level level, struct buf *b, const char *except)
{
	if (b->len == 0)
		return;
	char *save = NULL;
	for (char *line = strtok_r(b->p, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strcmp(line, except) != 0)
			log_at(level, "%s", line);
}

int secrets_reload(
        const struct daemon *d, const struct policy_set *set, bool files_only, struct err *e)
{
	auto_buf struct buf missing = BUF_INIT(SAID_MAX);
	auto_buf struct buf troubles = BUF_INIT(SAID_MAX);
	const struct secrets_places places = {.dir = SECRETS_DIR,
	        .credentials = d->credentials,
	        .previous = d->secrets,
	        .files_only = files_only,
	        .troubles = &troubles};
	int fd = secrets_load(set, &places, &missing, e);
	if (missing.len > 0)
		log_debug("secrets without a value:");
	daemon_log_lines(LOG_LEVEL_DEBUG, &missing, "");
	daemon_log_lines(LOG_LEVEL_WARN, &troubles, "");
	return fd;
}

static bool same(int a, int b)
{
	struct egress_secret x, y;
	ssize_t n = 0, k = 0;
	bool equal = true;
	for (off_t at = 0; equal; at += n) {
		n = fd_pread_full(a, &x, sizeof(x), at);
		k = fd_pread_full(b, &y, sizeof(y), at);
		equal = n == k && (n <= 0 || memcmp(&x, &y, (size_t)n) == 0);
		if (n <= 0)
			break;
	}
	explicit_bzero(&x, sizeof(x));
	explicit_bzero(&y, sizeof(y));
	return equal;
}

static void on_settled(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, secrets_alarm);
	struct err e;
	auto_close int fd = secrets_reload(d, d->policies->set, true, &e);
	if (fd < 0) {
		log_err("a file of secrets has changed and is not used: %s", e.text);
		return;
	}
	if (same(fd, d->secrets))
		return;
	fd_close(d->secrets);
	d->secrets = take_fd(fd);
	log_info("secrets have changed");
	peers_tell_secrets(d);
}

static void on_change(struct watch *w, uint32_t events)
{
	(void)events;
	struct daemon *d = container_of(w, struct daemon, secret_files_watch);
	char bytes[4096];
	while (read(d->secret_files, bytes, sizeof(bytes)) > 0)
		;
	secrets_look_again(d);
}

void secrets_look_again(struct daemon *d)
{
	/* Not moved by what comes meanwhile, so that it comes at all. */
	if (list_empty(&d->secrets_alarm.link))
		alarm_set(&d->poller, &d->secrets_alarm, SETTLE_MS);
}

void secrets_mind(struct daemon *d)
{
	d->secret_files = -1;
	alarm_init(&d->secrets_alarm, on_settled);
}

void secrets_forget(struct daemon *d)
{
	poller_remove(&d->poller, &d->secret_files_watch);
	alarm_clear(&d->secrets_alarm);
	fd_close(d->secret_files);
	d->secret_files = -1;
}

static int watch_directory(int inotify, const char *path)
{
	return inotify_add_watch(inotify, path,
	        IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR);
}

/* A directory that is not there has no secret; another reload looks again. */
static int watch_all(int inotify, const struct daemon_config *c)
{
	int r = watch_directory(inotify, SECRETS_DIR);
	for (uint32_t i = 0; i < c->nsecrets; i++) {
		const char *path = c->secrets[i].where;
		if (c->secrets[i].source != SECRET_FILE || (r < 0 && errno != ENOENT))
			continue;
		const char *slash = strrchr(path, '/');
		auto_free char *dir = xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
		r = watch_directory(inotify, dir);
	}
	return r < 0 && errno != ENOENT ? -errno : 0;
}

void secrets_follow(struct daemon *d)
{
	struct err e = {0};
	secrets_forget(d);
	d->secret_files = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	int r = d->secret_files < 0 ? -errno
	                            : watch_all(d->secret_files, &d->policies->set->config);
	if (r == 0)
		r = poller_add(&d->poller, &d->secret_files_watch, d->secret_files, EPOLLIN,
		        on_change, &e);
	if (r < 0)
		log_warn("changed files of secrets are noticed by `abctl reload` alone: %s",
		        e.code ? e.text : strerror(-r));
}
