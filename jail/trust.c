#include "jail/trust.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/mounts.h"
#include "jail/template.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/openat2.h>

/* Debian's bundle is 220 KB. */
enum { BUNDLE_MAX = 4 << 20 };

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static int put(int dir, const char *name, const struct buf *b, uint32_t owner, struct err *e)
{
	auto_close int fd =
	        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchown(fd, owner, owner) < 0 || fchmod(fd, 0644) < 0)
		return err_errno(e, "%s", name);
	int r = b->failed ? b->failed : fd_write_all(fd, b->p, b->len);
	return r < 0 ? err_set(e, r, "%s: %s", name, strerror(-r)) : 0;
}

/* What is trusted already; a root may have nothing of that. */
static int read_bundle(int root, struct buf *to, struct err *e)
{
	auto_close int fd = fd_openat2(root, &POLICY_TRUST_FILE[1],
	        O_RDONLY | O_NOCTTY | O_NONBLOCK, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	auto_free char *bytes = NULL;
	size_t n = 0;
	int r = fd < 0 ? fd : fd_slurp(fd, BUNDLE_MAX, &bytes, &n);
	if (r < 0)
		return r == -ENOENT ? 0 : err_set(e, r, POLICY_TRUST_FILE ": %s", strerror(-r));
	r = buf_put(to, bytes, n);
	if (r == 0 && n && bytes[n - 1] != '\n')
		r = buf_puts(to, "\n");
	return r;
}

int trust_fill(int dir, int root, const struct authority *a, uint32_t owner, struct err *e)
{
	auto_buf struct buf all = BUF_INIT(BUNDLE_MAX + AUTHORITY_CERT_MAX + 1);
	auto_buf struct buf own = BUF_INIT(AUTHORITY_CERT_MAX);
	int r = read_bundle(root, &all, e);
	if (r < 0)
		return r;
	(void)buf_put(&all, a->cert, a->cert_bytes); /* the buffers remember */
	(void)buf_put(&own, a->cert, a->cert_bytes);
	r = put(dir, base_name(POLICY_TRUST_FILE), &all, owner, e);
	if (r == 0)
		r = put(dir, base_name(POLICY_TRUST_OWN), &own, owner, e);
	if (r == 0 && symlinkat(base_name(POLICY_TRUST_OWN), dir, a->hash) < 0)
		r = err_errno(e, "%s", a->hash);
	return r;
}

int trust_add(int dir, const struct authority *a, uint32_t owner, struct err *e)
{
	auto_buf struct buf own = BUF_INIT(AUTHORITY_CERT_MAX);
	(void)buf_put(&own, a->cert, a->cert_bytes);
	return put(dir, "agentbox-egress.crt", &own, owner, e);
}

static int cover(int root, const struct authority *a, struct err *e)
{
	static const char *const small[] = {"size", "8m", "nr_inodes", "8", "mode", "0755", NULL};
	static const char *const both[] = {"lowerdir", TEMPLATE_PLACE ":.", NULL};
	int files = mounts_new("tmpfs", MOUNTS_NSD | MOUNT_ATTR_NOEXEC, small, e);
	if (files < 0)
		return files;
	int r = trust_fill(files, root, a, 0, e);
	if (r < 0) {
		fd_close(files);
		return r;
	}
	r = mounts_attach(files, AT_FDCWD, TEMPLATE_PLACE, e);
	if (r < 0)
		return r;
	int fd = chdir(POLICY_TRUST_DIR) < 0
	                 ? err_errno(e,
	                           POLICY_TRUST_DIR " (remedy: ca-certificates in the root of the "
	                                            "policy)")
	                 : mounts_new("overlay", MOUNTS_RO | MOUNT_ATTR_NOEXEC, both, e);
	if (umount2(TEMPLATE_PLACE, MNT_DETACH | UMOUNT_NOFOLLOW) < 0) {
		fd_close(fd);
		return err_errno(e, "unmounting " TEMPLATE_PLACE);
	}
	return fd;
}

int trust_layer(const struct authority *a, struct err *e)
{
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = root < 0 ? err_errno(e, "/") : cover(root, a, e);
	return fd < 0 ? err_wrap(e, "layer egress: what the jail trusts") : fd;
}
