/* What the program of the changes may say, and what is kept of it. */
#include "supervisor/changes.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN    "run_00000000000000000000000000"
#define OBJECT "0123456789abcdef0123456789abcdef01234567"
#define OTHER  "fedcba9876543210fedcba9876543210fedcba98"
#define HEAD   "base " OBJECT "\nhead " OBJECT "\ntip " OTHER "\nnested 2\npartial 1\nheadLost 0\n"

static int root_fd = -1;

static int feed(struct changes *c, const char *text, size_t step, struct err *e)
{
	int rc = 0;
	for (size_t at = 0, n = strlen(text); rc == 0 && at < n; at += step)
		rc = changes_feed(c, text + at, n - at < step ? n - at : step, e);
	return rc == 0 ? changes_end(c, e) : rc;
}

static bool has(size_t n, const char *want)
{
	struct err e;
	auto_free char *text = NULL;
	size_t len;
	auto_close int fd = artifacts_open(root_fd, RUN, n, &e);
	return fd >= 0 && fd_slurp(fd, 1024, &text, &len) == 0 && strcmp(text, want) == 0;
}

static void one(const char *name)
{
	struct artifacts_result *k = xnew(struct artifacts_result);
	k->files = xcalloc(1, sizeof(*k->files));
	k->nfiles = 1;
	k->files[0].path = xstrdup(name);
	struct err e;
	struct changes *c = changes_new(root_fd, RUN, k);
	ok(feed(c, HEAD "patch 6\nend\nx\nbundle 3\nabcend\n", 3, &e) == 0, "all of it");
	ok(k->nfiles == 3 && has(1, "end\nx\n") && has(2, "abc"), "is kept behind what was there");
	is_str(k->files[1].path, CHANGES_PATCH, "the patch");
	is_str(k->files[2].path, CHANGES_BUNDLE, "the bundle");
	ok(k->files[1].bytes == 6, "its size");
	is_str(k->files[2].sha256,
	        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "its digest");
	bool gives = strcmp(name, CHANGES_PATCH) == 0;
	is_str(k->files[0].path, gives ? CHANGES_PATCH CHANGES_THEIRS : name, "what gives way");
	struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	changes_members(c, &w);
	is_str(b.p,
	        "\"base\":\"" OBJECT "\",\"head\":\"" OBJECT "\",\"commit\":\"" OTHER
	        "\",\"changed\":true,\"patchBytes\":6,\"bundleBytes\":3,\"nestedLeftOut\":2,"
	        "\"incomplete\":true",
	        "what is told");
	buf_done(&b);
	changes_free(c);
	ok(has(1, "end\nx\n"), "stays");
	artifacts_result_done(k);
	free(k);
	(void)artifacts_remove(root_fd, RUN, &e);
}

static void test_whole(void)
{
	one("out");
	one(CHANGES_PATCH);
}

static void test_steps(void)
{
	for (size_t step = 1; step < 40; step++) {
		struct err e;
		struct artifacts_result k = {0};
		struct changes *c = changes_new(root_fd, RUN, &k);
		ok(feed(c, HEAD "patch 0\nbundle 5\na\nb\ncend\n", step, &e) == 0 && has(0, "") &&
		                has(1, "a\nb\nc"),
		        "%zu bytes at once", step);
		changes_free(c);
		artifacts_result_done(&k);
		(void)artifacts_remove(root_fd, RUN, &e);
	}
}

static void test_bad(void)
{
	static const char *const bad[] = {"", "end\n", HEAD "end\n", HEAD "patch 3\nab",
	        HEAD "patch 3\nabc", "patch 1\naend\n", HEAD "patch 3\nabcend\nx",
	        HEAD "patch -1\nend\n", HEAD "patch 3x\nabcend\n", HEAD "patch\nend\n",
	        HEAD "patch 9999999999999999999\n", HEAD "patch 999999999999\n",
	        HEAD "other 3\nabcend\n", HEAD "base x\npatch 0\nend\n",
	        HEAD "patch 0\npatch 0\npatch 0\nend\n",
	        "base " OBJECT OBJECT OBJECT OBJECT OBJECT "\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = {0};
		struct artifacts_result k = {0};
		struct changes *c = changes_new(root_fd, RUN, &k);
		ok(feed(c, bad[i], 7, &e) < 0 && e.text[0] && k.nfiles == 0, "refused: number %zu",
		        i);
		changes_free(c);
		ok(!has(0, "") && !has(0, "ab") && !has(0, "abc"), "and nothing is left");
		(void)unlinkat(root_fd, RUN, AT_REMOVEDIR);
	}
}

int main(void)
{
	char dir[] = "/tmp/changes.XXXXXX";
	if (!mkdtemp(dir))
		return 1;
	root_fd = open(dir, O_DIRECTORY | O_CLOEXEC);
	test_whole();
	test_steps();
	test_bad();
	fd_close(root_fd);
	ok(rmdir(dir) == 0, "nothing is left");
	return done();
}
