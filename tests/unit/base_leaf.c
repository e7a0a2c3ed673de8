/* err, buf, mem, id, fd, clock, list: the small ones. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "tests/t.h"

#include <fcntl.h>

static void errors(void)
{
	struct err e;
	ok(err_set(&e, -EINVAL, "line %d", 3) == -EINVAL, "err_set returns its code");
	ok(err_wrap(&e, "policy %s", "x") == -EINVAL, "err_wrap keeps it");
	is_str(e.text, "policy x: line 3", "context goes in front");
	char longer[ERR_TEXT_MAX + 100];
	memset(longer, 'c', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_wrap(&e, "%s", longer);
	ok(strlen(e.text) == ERR_TEXT_MAX - 1 && strstr(e.text, ": policy x: line 3"),
	        "a long context is cut, the cause never");
	ok(err_set(NULL, -EIO, "x") == -EIO, "no error object is fine");
	errno = ENOENT;
	err_errno(&e, "opening %s", "f");
	ok(e.code == -ENOENT && strncmp(e.text, "opening f: ", 11) == 0, "errno becomes text");
	struct err ours = {.code = -EINVAL, .text = "mount: Invalid argument"};
	ok(err_not_theirs(&ours, -EINVAL) == -EIO && ours.code == -EIO &&
	                strcmp(ours.text, "mount: Invalid argument") == 0,
	        "what the kernel refused is not the caller's fault");
	ok(err_not_theirs(&ours, -EAGAIN) == -EAGAIN && err_not_theirs(NULL, -ENOPKG) == -ENOPKG,
	        "what the caller may wait for or change stays");
	ok(err_http_status(-EINVAL) == 400 && err_http_status(-EAGAIN) == 429 &&
	                err_http_status(-EIO) == 500 && err_http_status(-ESRCH) == 409,
	        "codes become HTTP statuses");
}

static void buffers(void)
{
	auto_buf struct buf b = BUF_INIT(10);
	ok(buf_puts(&b, "12345") == 0 && buf_printf(&b, "%d", 678) == 0, "appends fit");
	ok(buf_puts(&b, "xyz") == -ENOBUFS && b.len == 8 && strcmp(b.p, "12345678") == 0,
	        "beyond the limit nothing is appended");
	ok(buf_putc(&b, 'a') == -ENOBUFS, "and the failure stays");
	buf_clear(&b);
	ok(buf_puts(&b, "0123456789") == 0 && b.len == 10, "a cleared buffer takes its limit");
	buf_consume(&b, 4);
	is_str(b.p, "456789", "consumed from the front");
	buf_consume(&b, 100);
	ok(b.len == 0 && b.p[0] == '\0', "consuming more than there is empties it");
	auto_buf struct buf none = BUF_INIT(5);
	char *taken = buf_take(&none);
	is_str(taken, "", "an empty buffer hands over an empty string");
	free(taken);
	ok(buf_reserve(&none, SIZE_MAX) == -ENOBUFS, "no overflow in sizes");
}

static void ids(void)
{
	char a[ID_MAX], b[ID_MAX];
	id_new("run", a);
	id_new("run", b);
	ok(id_valid(a, "run") && strcmp(a, b) != 0, "ids are valid and differ (%s)", a);
	ok(!id_valid(a, "ses") && !id_valid("run_", "run") &&
	                !id_valid("run_../../../../../../../x", "run"),
	        "foreign ones are not");
	a[10] = 'U';
	ok(!id_valid(a, "run"), "upper case is not");
	ok(name_valid("a") && name_valid("0-._z") && !name_valid("") && !name_valid("-a") &&
	                !name_valid("A") && !name_valid("a/b") && !name_valid(".."),
	        "names");
	char longest[NAME_MAX_LEN + 1];
	memset(longest, 'n', NAME_MAX_LEN);
	longest[NAME_MAX_LEN] = '\0';
	ok(!name_valid(longest) && name_valid(longest + 1), "names have a longest");
	char small[4];
	ok(str_copy(small, 4, "abc") && !str_copy(small, 4, "abcd") && strcmp(small, "abc") == 0,
	        "a cut copy says so");
}

static void descriptors(void)
{
	int before = fd_count();
	{
		auto_close int fd = fd_sealed_memfd("t", "hello", 5);
		must(fd >= 0, "a sealed memfd");
		ok(write(fd, "x", 1) < 0 && errno == EPERM, "cannot be written");
		char *text;
		size_t n;
		ok(fd_slurp(fd, 5, &text, &n) == 0 && n == 5 && strcmp(text, "hello") == 0,
		        "read whole");
		free(text);
		ok(lseek(fd, 0, SEEK_SET) == 0 && fd_slurp(fd, 4, &text, &n) == -E2BIG,
		        "more than the limit is refused");
	}
	ok(fd_count() == before, "the cleanup closed it");
	char *text;
	ok(file_slurp("/", 10, &text, NULL) == -EISDIR &&
	                file_slurp("/nonexistent", 1, &text, NULL) == -ENOENT,
	        "directories and absent files are errors");
	char stamp[CLOCK_TEXT_MAX];
	clock_rfc3339(1793825808769, stamp);
	is_str(stamp, "2026-11-04T20:56:48.769Z", "a time in RFC 3339");
	static const int64_t times[] = {0, 951782399999, 951782400000, 1709164800001, 1735689599999,
	        1793825808769, 4107542400000};
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		clock_rfc3339(times[i], stamp);
		ok(clock_from_rfc3339(stamp, strlen(stamp)) == times[i], "%s and back", stamp);
	}
	static const char *const none[] = {"", "2026-11-04T20:56:48Z", "2026-11-04 20:56:48.769Z",
	        "2026-13-04T20:56:48.769Z", "2026-11-04T20:56:48.769+", "2026-1x-04T20:56:48.769Z"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		ok(clock_from_rfc3339(none[i], strlen(none[i])) == -1, "'%s' is none", none[i]);
}

struct item {
	int v;
	struct list link; /* in head */
};

static void lists(void)
{
	struct list head = LIST_INIT(head);
	struct item a = {.v = 1}, b = {.v = 2}, c = {.v = 3};
	list_append(&head, &b.link);
	list_append(&head, &c.link);
	list_prepend(&head, &a.link);
	int seen = 0;
	list_for_each (it, &head, struct item, link) {
		seen = seen * 10 + it->v;
		if (it->v == 2)
			list_remove(&it->link);
	}
	ok(seen == 123, "in order, removal inside the loop is fine");
	ok(list_first(&head, struct item, link)->v == 1 && b.link.next == &b.link,
	        "removed is alone");
	list_remove(&b.link);
	list_remove(&a.link);
	list_remove(&c.link);
	ok(list_empty(&head) && !list_first(&head, struct item, link), "empty");
}

static void levels(void)
{
	ok(log_level_by_name("err") == LOG_LEVEL_ERR && log_level_by_name("loud") == -1,
	        "a log level by its word");
	is_str(log_level_name(LOG_LEVEL_DEBUG), "debug", "and back");
	ok(log_format_by_name("json") == LOG_JSON && log_format_by_name("xml") == -1,
	        "and a format");
}

/* What log_at writes meanwhile. */
static const char *logged(char *to, size_t room, void (*say)(void))
{
	int ends[2], before = dup(STDERR_FILENO);
	must(before >= 0 && pipe(ends) == 0, "a pipe");
	(void)dup2(ends[1], STDERR_FILENO);
	say();
	(void)dup2(before, STDERR_FILENO);
	close(ends[1]);
	close(before);
	ssize_t n = read(ends[0], to, room - 1);
	close(ends[0]);
	to[n < 0 ? 0 : n] = '\0';
	return to;
}

static void say_of_run(void)
{
	log_warn("s=%s r=%s: it says %s", "ses_1", "run_2",
	        "\"}\n{\"level\":\"err\",\"run\":\"run_9\"\xff\x1b[2J");
}

static void say_like_run(void)
{
	log_err("%s", "s=ses_1 r=run_2: forged");
}

static void say_long(void)
{
	char text[4096];
	memset(text, 1, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_err("r=%s: %s", "run_2", text);
}

static void say_debug(void)
{
	log_debug("not to be seen");
}

static void records(void)
{
	static char line[16384];
	struct err e;
	unsetenv("JOURNAL_STREAM");
	log_init("leaf", LOG_LEVEL_INFO);
	logged(line, sizeof(line), say_of_run);
	is_str(line,
	        "leaf: warning: s=ses_1 r=run_2: it says \"} {\"level\":\"err\","
	        "\"run\":\"run_9\"\xff [2J\n",
	        "text: one line");
	log_use(LOG_JSON, 0);
	logged(line, sizeof(line), say_of_run);
	ok(strchr(line, '\n') == line + strlen(line) - 1, "one line");
	auto_json struct json *j = json_parse(line, strlen(line), &e);
	must(j != NULL, "one object");
	is_str(json_str(j, "level", ""), "warn", "its level");
	is_str(json_str(j, "program", ""), "leaf", "who");
	is_str(json_str(j, "session", ""), "ses_1", "the session");
	is_str(json_str(j, "run", ""), "run_2", "the run");
	is_str(json_str(j, "msg", ""),
	        "it says \"}\n{\"level\":\"err\",\"run\":\"run_9\"\xef\xbf\xbd\x1b[2J",
	        "what was said, as data");
	ok(strlen(json_str(j, "ts", "")) == 24 && json_int(j, "pid", 0) == getpid(), "when");
	auto_json struct json *k =
	        json_parse(line, strlen(logged(line, sizeof(line), say_like_run)), &e);
	ok(k && !json_get(k, "run") && !json_get(k, "session"),
	        "ids come from the format, not from what was said");
	auto_json struct json *l =
	        json_parse(line, strlen(logged(line, sizeof(line), say_long)), &e);
	ok(l && strlen(json_str(l, "msg", "")) > 2000,
	        "the longest of bytes to be escaped is whole");
	is_str(logged(line, sizeof(line), say_debug), "", "debug is not logged");
	log_use(LOG_JSON, LOG_LEVEL_DEBUG);
	ok(strstr(logged(line, sizeof(line), say_debug), "not to be seen"), "now it is");
	log_use(LOG_TEXT, 0);
	is_str(logged(line, sizeof(line), say_debug), "", "and as at the start");
}

static void id_times(void)
{
	char id[ID_MAX];
	id_from("run", INT64_C(1796074180781), id);
	ok(id_ms(id) == INT64_C(1796074180781), "when an id was made");
	ok(id_ms("run") == 0 && id_ms("run_01") == 0 && id_ms("run_u") == 0, "of none: never");
}

int main(void)
{
	id_times();
	levels();
	records();
	errors();
	buffers();
	ids();
	descriptors();
	lists();
	return done();
}
