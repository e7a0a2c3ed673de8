#include "jail/etc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/mounts.h"
#include "proto/egress.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/openat2.h>

enum { COPY_MAX = 512 << 10 }; /* ld.so.cache of a large desktop is 200 KB */

#define AGENT_USER  "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
#define AGENT_GROUP "agent:x:1000:\n"

static const struct {
	const char *name, *text;
} written[] = {
        {"passwd", "root:x:0:0:root:/root:/bin/sh\n" AGENT_USER
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
        {"group", "root:x:0:\ntty:x:5:\n" AGENT_GROUP "nogroup:x:65534:\n"},
        {"hosts", "127.0.0.1\tlocalhost jail\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
        {"hostname", "jail\n"},
        {"resolv.conf", "nameserver " EGRESS_RESOLVER "\n"},
        {"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                          "networks: files\nprotocols: files\nservices: files\n"},
        {"shells", "/bin/sh\n/bin/bash\n"},
        {"host.conf", "multi on\n"},
};

/* Public on every distribution; what is absent is skipped. */
static const char *const copied[] = {
        "ld.so.cache",
        "ld.so.conf",
        "localtime",
        "timezone",
        "os-release",
        "services",
        "protocols",
        "networks",
        "debian_version",
        "bash.bashrc",
        "inputrc",
        "profile",
        "ssl/openssl.cnf",
        "ca-certificates.conf",
};

#define ETC "/etc/"
static const char *const cloned[] = {
        ETC "alternatives", /* /usr/bin/editor -> /etc/alternatives/editor -> ... */
        ETC "ssl/certs", ETC "pki", ETC "ca-certificates", ETC "crypto-policies", /* TLS roots */
        ETC "fonts", ETC "chromium.d", /* fontconfig; Debian's chromium wrapper stops without it */
        ETC "ld.so.conf.d", ETC "java-11-openjdk", ETC "java-17-openjdk", ETC "java-21-openjdk",
        ETC "java-25-openjdk", /* lib/security of Debian's is links to there; java stops without */
};

const char *etc_shown(unsigned i)
{
	return i < ARRAY_LEN(cloned) ? cloned[i] : NULL;
}

static int put(int etc, const char *name, const void *p, size_t n, struct err *e)
{
	auto_close int fd =
	        openat(etc, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(e, "layer rootfs: /etc/%s", name);
	int r = fd_write_all(fd, p, n);
	return r < 0 ? err_set(e, r, "layer rootfs: /etc/%s cannot be written", name) : 0;
}

/* Its fd or -errno: source/etc/name as a program inside would find it: links are resolved in that
 * root. */
static int open_source(int source, const char *name, uint64_t flags)
{
	auto_free char *path = xasprintf("etc/%s", name);
	return fd_openat2(source, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* What a host does not have, its jails do not get. */
static int unopened(const char *name, int r, struct err *e)
{
	return r == -ENOENT ? 0 : err_set(e, r, "layer rootfs: /etc/%s: %s", name, strerror(-r));
}

static int make_parent(int etc, const char *name, struct err *e)
{
	const char *slash = strchr(name, '/');
	if (!slash)
		return 0;
	auto_free char *dir = xstrndup(name, (size_t)(slash - name));
	if (mkdirat(etc, dir, 0755) < 0 && errno != EEXIST)
		return err_errno(e, "layer rootfs: /etc/%s", dir);
	return 0;
}

static int copy(int etc, int source, const char *name, struct err *e)
{
	auto_close int fd = open_source(source, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return unopened(name, fd, e);
	struct stat st;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0; /* not public: not for jails */
	auto_free char *bytes = NULL;
	size_t n = 0;
	int r = fd_slurp(fd, COPY_MAX, &bytes, &n);
	if (r < 0)
		return err_set(e, r, "layer rootfs: /etc/%s: %s", name, strerror(-r));
	r = make_parent(etc, name, e);
	return r < 0 ? r : put(etc, name, bytes, n, e);
}

static int clone(int etc, int source, const char *name, struct err *e)
{
	auto_close int fd = open_source(source, name, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return unopened(name, fd, e);
	int r = make_parent(etc, name, e);
	if (r < 0)
		return r;
	if (mkdirat(etc, name, 0755) < 0)
		return err_errno(e, "layer rootfs: /etc/%s", name);
	int mount = mounts_clone(fd, "", MOUNTS_RO | MOUNT_ATTR_NOEXEC, -1, e);
	return mount < 0 ? mount : mounts_attach(mount, etc, name, e);
}

int etc_fill(int etc, int source, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(written); i++)
		r = put(etc, written[i].name, written[i].text, strlen(written[i].text), e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(copied); i++)
		r = copy(etc, source, copied[i], e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(cloned); i++)
		r = clone(etc, source, cloned[i] + strlen(ETC), e);
	if (r == 0 && symlinkat("../proc/self/mounts", etc, "mtab") < 0)
		return err_errno(e, "layer rootfs: /etc/mtab");
	return r;
}

/* The image's file and one line more; a name that is there twice means the first. */
static int append(int upper, int source, const char *name, const char *line, struct err *e)
{
	auto_close int fd = open_source(source, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return unopened(name, fd, e);
	auto_free char *bytes = NULL;
	size_t n = 0;
	int r = fd_slurp(fd, COPY_MAX, &bytes, &n);
	if (r < 0)
		return err_set(e, r, "layer rootfs: /etc/%s: %s", name, strerror(-r));
	auto_free char *text =
	        xasprintf("%s%s%s", bytes, n && bytes[n - 1] != '\n' ? "\n" : "", line);
	return put(upper, name, text, strlen(text), e);
}

int etc_personal(int upper, int source, uint32_t owner, struct err *e)
{
	static const char *const ours[] = {"hosts", "hostname", "resolv.conf"};
	static const char *const made[] = {"hosts", "hostname", "resolv.conf", "passwd", "group"};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(written); i++)
		for (size_t k = 0; r == 0 && k < ARRAY_LEN(ours); k++)
			if (strcmp(written[i].name, ours[k]) == 0)
				r = put(upper, ours[k], written[i].text, strlen(written[i].text),
				        e);
	if (r == 0)
		r = append(upper, source, "passwd", AGENT_USER, e);
	if (r == 0)
		r = append(upper, source, "group", AGENT_GROUP, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(made); i++)
		if ((fchownat(upper, made[i], owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ||
		            fchmodat(upper, made[i], 0644, 0) < 0) &&
		        errno != ENOENT)
			r = err_errno(e, "layer rootfs: /etc/%s", made[i]);
	return r;
}
