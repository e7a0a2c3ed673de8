/* The audit log: lines, files that follow each other, bounds, readers. */
#include "supervisor/audit.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/t.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static char dir[] = "/tmp/agentbox-audit-XXXXXX";
static struct err e;
static int woken;

static struct audit *begin(uint64_t most)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct audit *a = audit_new(fd, most, &e);
	must(a != NULL, "begun %s", a ? "" : e.text);
	return a;
}

static void put(struct audit *a, const char *path, bool refused)
{
	const struct audit_entry x = {.uid = 7,
	        .key = "k",
	        .tenant = "t",
	        .key_id = "key_x",
	        .method = "POST",
	        .path = path,
	        .status = refused ? 403 : 200,
	        .refused = refused};
	audit_write(a, &x);
}

static unsigned files(void)
{
	unsigned n = 0;
	DIR *d = opendir(dir);
	const struct dirent *x;
	while (d && (x = readdir(d)))
		n += x->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void empty(void)
{
	DIR *d = opendir(dir);
	const struct dirent *x;
	while (d && (x = readdir(d)))
		if (x->d_name[0] != '.')
			(void)unlinkat(dirfd(d), x->d_name, 0);
	if (d)
		closedir(d);
}

/* Owned: all that is to be read now. */
static char *read_all(struct audit_reader *r)
{
	struct buf b = BUF_INIT(64 << 20);
	char p[1000];
	ssize_t n;
	while ((n = audit_read(r, p, sizeof(p))) > 0)
		(void)buf_put(&b, p, (size_t)n);
	(void)buf_putc(&b, '\0');
	return b.p;
}

static unsigned lines(const char *text, bool *ret_whole)
{
	unsigned n = 0;
	*ret_whole = true;
	for (const char *p = text; *p; n++) {
		size_t len = strcspn(p, "\n");
		auto_json struct json *j = json_parse(p, len, &e);
		*ret_whole = *ret_whole && j && p[len] == '\n';
		p += len + (p[len] == '\n');
	}
	return n;
}

static void wake(struct audit_reader *r)
{
	(void)r;
	woken++;
}

static void test_lines(void)
{
	char path[3000], *text;
	bool whole;
	struct audit *a = begin(AUDIT_FILE);
	struct audit_reader r = {.wake = wake};
	audit_follow(a, &r);
	put(a, "/v1/runs", false);
	ok(woken == 1, "who follows is woken");
	text = read_all(&r);
	ok(lines(text, &whole) == 1 && whole, "a line");
	auto_json struct json *j = json_parse(text, strlen(text), &e);
	is_str(json_str(j, "key", ""), "k", "who");
	ok(json_int(j, "uid", 0) == 7 && json_int(j, "status", 0) == 200 && !json_get(j, "refused"),
	        "what");
	free(text);
	memset(path, '"', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	put(a, path, false);
	put(a, "/\xff\n", false);
	text = read_all(&r);
	ok(lines(text, &whole) == 2 && whole && strlen(text) < 2 * AUDIT_LINE,
	        "a path of any bytes and any length is one line");
	free(text);
	audit_leave(&r);
	audit_free(a);
}

static void test_refusals(void)
{
	bool whole;
	struct audit *a = begin(AUDIT_FILE);
	struct audit_reader r = {.wake = wake};
	audit_follow(a, &r);
	free(read_all(&r));
	for (int i = 0; i < 5000; i++)
		put(a, "/v1/runs", true);
	char *text = read_all(&r);
	unsigned n = lines(text, &whole);
	ok(n >= 200 && n < 1000 && whole, "of 5000 refusals some are told: %u", n);
	free(text);
	put(a, "/v1/sessions", false);
	text = read_all(&r);
	const char *lost = strstr(text, "\"lost\":");
	ok(lines(text, &whole) == 1 && lost && strtol(lost + 7, NULL, 10) == 5000 - (long)n,
	        "what changes something always is, and how many are missing: %s", text);
	free(text);
	audit_leave(&r);
	audit_free(a);
}

static void test_files(void)
{
	bool whole;
	struct audit *a = begin(1000);
	struct audit_reader early = {.wake = wake}, late = {.wake = wake};
	audit_follow(a, &early);
	for (int i = 0; i < 20; i++)
		put(a, "/v1/runs", false);
	char *text = read_all(&early);
	ok(lines(text, &whole) == 20 && whole, "over files, nothing missing");
	free(text);
	for (int i = 0; i < 1000; i++)
		put(a, "/v1/runs", false);
	ok(files() == AUDIT_FILES, "so many files and no more: %u", files());
	text = read_all(&early);
	ok(lines(text, &whole) > 10 && whole, "who is slow goes on where there is something");
	free(text);
	audit_leave(&early);
	audit_free(a);
	a = begin(1000);
	put(a, "/v1/last", false);
	ok(files() == AUDIT_FILES, "begun anew, it goes on");
	audit_follow(a, &late);
	text = read_all(&late);
	ok(lines(text, &whole) > 20 && whole && strstr(text, "/v1/last"), "to the last line");
	free(text);
	audit_leave(&late);
	audit_free(a);
}

int main(void)
{
	must(mkdtemp(dir) != NULL, "a directory");
	test_lines();
	empty();
	test_refusals();
	empty();
	test_files();
	empty();
	rmdir(dir);
	return done();
}
