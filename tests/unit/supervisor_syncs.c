/* Several files synced at once: each gets its own answer. */
#include "supervisor/syncs.h"

#include "base/fd.h"
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FILES = 40, ROUNDS = 50 };

int main(void)
{
	struct sync_item items[FILES];
	struct syncs *s = syncs_new();
	char dir[] = "/tmp/syncs.XXXXXX", name[64];
	int bad = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	must(mkdtemp(dir) && null >= 0, "a directory");
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/%d", dir, i);
		items[i].fd = i % 4 == 3 ? null : open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		bad += items[i].fd < 0;
	}
	for (int r = 0; r < ROUNDS; r++) {
		size_t n = (size_t)(r * 7 % FILES) + 1;
		for (size_t i = 0; i < n; i++) {
			items[i].rc = 1;
			if (items[i].fd != null)
				bad += write(items[i].fd, "x", 1) != 1;
		}
		syncs_run(s, items, n);
		for (size_t i = 0; i < n; i++)
			bad += items[i].rc != (items[i].fd == null ? -EINVAL : 0);
	}
	ok(bad == 0, "%d rounds, each file has its own answer", ROUNDS);
	syncs_run(s, items, 0);
	syncs_free(s);
	syncs_free(NULL);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s/%d", dir, i);
		(void)!unlink(name);
		if (items[i].fd != null)
			fd_close(items[i].fd);
	}
	fd_close(null);
	(void)!rmdir(dir);
	return done();
}
