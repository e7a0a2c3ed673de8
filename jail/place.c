/*
 * Theory of operation: a session's directory is opened in the state it is in.
 * What it lacks is said, made by a child, and then it is opened again:
 *
 *	image, right size	mount it, set the ballast
 *	image, wrong size	BARE: a new one with the old one's tree, renamed over it
 *	no image, quota here	marked: set the limits
 *				empty: mark it; else COUNTED: mark what is there, itself last
 *	no image, image here	BARE: a new one with the directories as they are
 *
 * The new image has no name (O_TMPFILE) until it is complete, so that a daemon
 * that dies leaves nothing and loses nothing.
 */
#include "jail/place.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/copy.h"
#include "jail/layers.h"
#include "jail/merge.h"
#include "jail/mounts.h"
#include "jail/projects.h"
#include "jail/sessions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define IMAGE     DISKS_IMAGE
#define NEW_IMAGE "disk.new"

enum {
	/* Where the policy does not count files: one for each 16 KiB, as mke2fs does. */
	BYTES_PER_INODE = 16384,
	MIN_INODES = 16384,
};

void place_done(struct place *p)
{
	disk_done(&p->disk, NULL);
	fd_close(take_fd(p->dir));
	fd_close(take_fd(p->image));
	fd_close(take_fd(p->source));
}

/* ---- an image ---- */

/* The names that a session's directory has, lost+found and the like not counted. */
static bool has_files(int dir)
{
	return faccessat(dir, "workspace", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(dir, "home", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool limited(const struct limits *l)
{
	return l->disk_bytes || l->inodes;
}

/* No image has more: a harness that may ask for any number must not get one that cannot be made. */
static uint64_t image_inodes(uint64_t limit, uint64_t files)
{
	uint64_t most = limit < IMAGE_INODES_MAX ? limit : IMAGE_INODES_MAX;
	return most > files || !limit ? most : files;
}

/* Bytes for the most that the policy gives, so that harnesses which take less do not have it made
 * anew; inodes cannot be occupied by a ballast, so they are what is asked, or the `files` there are
 * already: they stay, and none can be added. */
static int size_of(const struct disks *d, const struct disks_ask *ask, uint64_t files,
        struct image_size *ret, struct err *e)
{
	struct statvfs fs;
	if (fstatvfs(d->state->sessions, &fs) < 0)
		return err_errno(e, "statvfs of the state directory");
	uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize, ceiling = ask->ceiling.disk_bytes;
	if (ask->limits.disk_bytes > IMAGE_BYTES_MAX)
		return err_set(e, -E2BIG,
		        "no image holds more than %llu TiB (remedy: a lower limits.disk, or "
		        "project quota)",
		        (unsigned long long)(IMAGE_BYTES_MAX >> 40));
	ret->bytes = ceiling && ceiling < all ? ceiling : all;
	ret->bytes = ret->bytes < IMAGE_BYTES_MAX ? ret->bytes : IMAGE_BYTES_MAX;
	uint64_t some = ret->bytes / BYTES_PER_INODE;
	some = some < MIN_INODES ? MIN_INODES : some > IMAGE_INODES_MAX ? IMAGE_INODES_MAX : some;
	ret->inodes = ask->limits.inodes ? image_inodes(ask->limits.inodes, files) : some;
	return 0;
}

/* mke2fs opens it by /proc/self/fd, as who it is. */
static int nameless(struct place *p, int dir, struct err *e)
{
	p->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	p->image = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (p->dir < 0 || p->image < 0 || fchown(p->image, ID_IMAGES, ID_IMAGES) < 0)
		return err_errno(e, "a file for the image");
	return 0;
}

/* mke2fs copies a tree without the attributes that say what is deleted of the layer below it. */
static int may_be_copied(int dir, struct err *e)
{
	return layers_has(dir) ? err_set(e, -EOPNOTSUPP,
	                                 "it stands on a snapshot and its files cannot be moved "
	                                 "into another image (remedy: the limits.inodes, and the "
	                                 "kind of limits, that it was made under)")
	                       : 0;
}

static int new_image(const struct disks *d, const struct disks_ask *ask, int dir, int tree,
        struct place *p, struct err *e)
{
	int copied = tree >= 0 || has_files(dir) ? may_be_copied(dir, e) : 0;
	if (copied < 0)
		return copied;
	struct image_usage used = {.bytes = 0};
	uint64_t limit = ask->limits.disk_bytes;
	int r = tree >= 0 ? image_usage(tree, &used, e) : 0;
	if (r == 0) /* the copy, and then what may be written besides */
		r = disks_check_room(
		        d, ask->promised, used.bytes + disk_left(limit, used.bytes), e);
	if (r == 0)
		r = size_of(d, ask, used.inodes, &p->size, e);
	if (r == 0)
		r = nameless(p, dir, e);
	if (r < 0)
		return r;
	p->state = PLACE_BARE;
	p->replaces = tree >= 0;
	if (!p->replaces) {
		if (has_files(dir))
			p->source = mounts_clone(dir, "", MOUNTS_NSD | MOUNT_ATTR_RDONLY, -1, e);
		return has_files(dir) && p->source < 0 ? p->source : 0;
	}
	if (unlinkat(tree, "ballast", 0) < 0 && errno != ENOENT) /* not to be copied */
		return err_errno(e, "ballast");
	r = mounts_restrict(tree, MOUNT_ATTR_RDONLY, e);
	p->source = fcntl(tree, F_DUPFD_CLOEXEC, 0);
	return r < 0 ? r : p->source < 0 ? err_errno(e, IMAGE) : 0;
}

/* The directories that were copied into the image. */
static int drop_originals(const struct disks *d, int dir, struct err *e)
{
	static const char *const names[] = {"workspace", "home"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int r = trash_put(d->state, dir, names[i]);
		if (r < 0 && r != -ENOENT)
			return err_set(
			        e, r, "%s, copied into " IMAGE ": %s", names[i], strerror(-r));
	}
	return 0;
}

static int open_image(
        const struct disks *d, const struct disks_ask *ask, int dir, struct place *p, struct err *e)
{
	const struct limits *l = &ask->limits;
	auto_close int root = image_mount(dir, IMAGE, e);
	if (root == -EAGAIN) {
		p->state = PLACE_BUSY;
		return 0;
	}
	if (root < 0)
		return root;
	/* To pass through, as the session's directory on the host's file system is: 0700 of root.
	 */
	if (fchmodat(root, ".", 0700, 0) < 0 || fchownat(root, ".", 0, 0, 0) < 0)
		return err_errno(e, IMAGE);
	struct image_usage used;
	int r = image_usage(root, &used, e);
	if (r < 0)
		return r;
	const struct image_size need = {
	        .bytes = l->disk_bytes, .inodes = image_inodes(l->inodes, used.inodes)};
	int fits = limited(l) ? image_fits(root, &need, e) : 1;
	if (fits < 0)
		return fits;
	if (!fits && !ask->as_it_is)
		return d->method == JAIL_DISK_NONE ? err_set(e, d->why.code, "%s", d->why.text)
		                                   : new_image(d, ask, dir, root, p, e);
	r = drop_originals(d, dir, e);
	int set = r < 0 ? r : image_limit(root, l->disk_bytes, e);
	r = set < 0 ? set
	            : disks_check_room(d, ask->promised, disk_left(l->disk_bytes, used.bytes), e);
	if (r == 0)
		r = session_places(root, &p->disk.workspace, &p->disk.home, e);
	if (r < 0)
		return r;
	p->disk.method = fits ? JAIL_DISK_IMAGE : JAIL_DISK_NONE;
	p->disk.above = set == 0;
	p->disk.tree = take_fd(root);
	return 0;
}

int place_put_image(int dir, int image, bool replaces, struct err *e)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", image);
	const char *name = replaces ? NEW_IMAGE : IMAGE;
	if (fchown(image, 0, 0) < 0 || fsync(image) < 0)
		return err_errno(e, "%s", name);
	if (replaces && unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return err_errno(e, "%s of a former daemon", name);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return err_errno(e, "naming %s", name);
	if (replaces && renameat(dir, name, dir, IMAGE) < 0)
		return err_errno(e, "replacing " IMAGE);
	if (fsync(dir) < 0)
		return err_errno(e, "directory of the session");
	return 0;
}

/* ---- a project ---- */

static int mark_new(int dir, uint32_t *ret, struct err *e)
{
	int r = projects_new(dir, ret, e);
	if (r < 0)
		return r;
	r = projects_mark(dir, *ret);
	return r < 0 ? err_set(e, r, "no project number: %s", strerror(-r)) : 0;
}

int place_count(int dir, struct err *e)
{
	uint32_t project;
	int r = projects_new(dir, &project, e);
	return r < 0 ? r : session_adopt(dir, project, e);
}

static int open_quota(
        const struct disks *d, const struct disks_ask *ask, int dir, struct place *p, struct err *e)
{
	const struct limits *l = &ask->limits;
	struct disk *k = &p->disk;
	struct projects_usage used;
	int r = projects_of(dir, &k->project, e);
	if (r == 0 && !k->project) {
		if (has_files(dir)) {
			p->state = PLACE_COUNTED;
			p->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
			return p->dir < 0 ? err_errno(e, "directory of the session") : 0;
		}
		r = mark_new(dir, &k->project, e);
	}
	if (r == 0)
		r = projects_limit(dir, k->project, l->disk_bytes, l->inodes, e);
	if (r == 0)
		r = projects_usage(dir, k->project, &used, e);
	if (r == 0)
		r = disks_check_room(d, ask->promised, disk_left(l->disk_bytes, used.bytes), e);
	if (r == 0)
		r = session_places(dir, &k->workspace, &k->home, e);
	k->method = JAIL_DISK_QUOTA;
	k->state = d->state->sessions;
	return r;
}

/* ---- the session ---- */

/* Files from before there were limits, and none is wanted now. */
static bool stays_plain(const struct disks_ask *ask, int dir)
{
	uint32_t project = 0;
	return !limited(&ask->limits) && has_files(dir) && projects_of(dir, &project, NULL) == 0 &&
	       !project;
}

static int open_one(
        const struct disks *d, const struct disks_ask *ask, int dir, struct place *p, struct err *e)
{
	if (faccessat(dir, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return open_image(d, ask, dir, p, e);
	/* without a limit too: one that gets a limit some day need not be taken over then */
	if (d->method == JAIL_DISK_QUOTA && !stays_plain(ask, dir))
		return open_quota(d, ask, dir, p, e);
	if (!limited(&ask->limits) || ask->as_it_is)
		return session_places(dir, &p->disk.workspace, &p->disk.home, e);
	if (d->method == JAIL_DISK_IMAGE)
		return new_image(d, ask, dir, -1, p, e);
	if (ask->may_be_lost && !has_files(dir)) {
		p->disk.method = JAIL_DISK_TMPFS; /* the kit's; no directories */
		return 0;
	}
	return err_set(e, d->why.code, "%s", d->why.text);
}

/* Before anything is in it, and never over what is. */
static int choose_layer(const struct disks *d, const struct disks_ask *ask, int dir, struct err *e)
{
	bool fresh = !has_files(dir) && faccessat(dir, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (!fresh)
		return 0;
	int r = ask->snapshot[0] ? layers_choose(d->state, dir, ask->snapshot, e) : 0;
	if (r < 0)
		return err_wrap(e, "workspace.snapshot");
	return template_choose(dir, ask->template, e);
}

static int open_layer(const struct disks *d, int dir, struct place *p, struct err *e)
{
	int r = layers_open(d->state, dir, &p->disk.lower, e);
	if (r < 0 || p->disk.lower < 0 || p->disk.workspace < 0)
		return r < 0 ? r : template_copy(dir, d->templates, p->disk.workspace, e);
	r = merge_prepare(p->disk.workspace, ID_STORE_BASE + ID_INNER_AGENT, e);
	if (r < 0)
		return r;
	/* What is in this part hides what is below it: as if it were copied there. */
	auto_close int upper =
	        openat(p->disk.workspace, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return upper < 0 ? err_errno(e, "upper") : template_copy(dir, d->templates, upper, e);
}

static int open_as(
        const struct disks *d, const struct disks_ask *ask, struct place *ret, struct err *e)
{
	auto_place struct place p = PLACE_NONE;
	auto_close int dir = session_dir(d->state, ask->session, e);
	int r = dir < 0 ? dir : choose_layer(d, ask, dir, e);
	if (r == 0)
		r = open_one(d, ask, dir, &p, e);
	if (r == 0 && p.state == PLACE_OPEN)
		r = open_layer(d, dir, &p, e);
	if (r < 0)
		return dir < 0 ? r
		               : err_wrap(e, "%ssession %s",
		                         limited(&ask->limits) ? "layer limit.disk: " : "",
		                         ask->session);
	struct disk *k = &p.disk;
	if (k->method != JAIL_DISK_NONE) {
		k->bytes = ask->limits.disk_bytes;
		k->inodes = ask->limits.inodes;
	}
	if (p.state == PLACE_OPEN)
		(void)disk_look(k); /* what is full already is told by the first look in the run */
	k->told = 0;
	*ret = p;
	p = (struct place)PLACE_NONE;
	return 0;
}

/* What could not be done for the limits of a session is refused.  Where the host has nothing that
 * could, and the policy does not require it, the session is opened as it is, and the run's record
 * says what is missing. */
int place_open(const struct disks *d, const struct disks_ask *ask, struct place *ret, struct err *e)
{
	struct err why = {0};
	int r = open_as(d, ask, ret, &why);
	if (r == 0)
		return 0;
	/* Without room least of all: the host's disk is what the limit is for. */
	if (d->method != JAIL_DISK_NONE || r == -ENOSPC || ask->required)
		return err_set(e, r, "%s", why.text);
	struct disks_ask plain = *ask;
	plain.as_it_is = true;
	r = open_as(d, &plain, ret, e);
	if (r == 0)
		ret->without = why;
	return r;
}

bool place_is_there(const struct disks *d, const struct disks_ask *ask)
{
	static const struct {
		const char *name;
		bool there;
	} rows[] = {{IMAGE, false}, {"template", false}, {"workspace", true}, {"home", true}};
	char name[SESSION_NAME];
	bool as_wanted =
	        !limited(&ask->limits) && session_name(d->state, ask->session, name, NULL) == 0;
	for (size_t i = 0; i < ARRAY_LEN(rows) && as_wanted; i++) {
		char path[SESSION_NAME + 16];
		(void)snprintf(path, sizeof(path), "%s/%s", name, rows[i].name);
		bool there = faccessat(d->state->sessions, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
		as_wanted = there == rows[i].there;
	}
	return as_wanted;
}

/* ---- from child to parent ---- */

enum { PACKED = 7 };
_Static_assert(PACKED <= (int)JOB_FDS && sizeof(struct place) <= JOB_BYTES, "an answer has room");

static void fds_of(struct place *p, int *ret[PACKED])
{
	int *all[] = {&p->disk.workspace, &p->disk.home, &p->disk.lower, &p->disk.tree, &p->dir,
	        &p->image, &p->source};
	_Static_assert(ARRAY_LEN(all) == PACKED, "all of them");
	memcpy(ret, all, sizeof(all));
}

void place_pack(struct place *p, struct job_out *out)
{
	int *fds[PACKED];
	fds_of(p, fds);
	for (int i = 0; i < PACKED; i++)
		out->fds[i] = take_fd(*fds[i]);
	memcpy(out->bytes, p, sizeof(*p));
	out->size = sizeof(*p);
}

int place_unpack(struct job_out *in, struct place *ret, struct err *e)
{
	if (in->size != sizeof(*ret))
		return err_set(e, -EBADMSG, "an answer of %zu bytes", in->size);
	memcpy(ret, in->bytes, sizeof(*ret));
	int *fds[PACKED];
	fds_of(ret, fds);
	for (int i = 0; i < PACKED; i++)
		*fds[i] = take_fd(in->fds[i]);
	return 0;
}
