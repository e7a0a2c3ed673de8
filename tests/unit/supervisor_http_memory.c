/* What clients can make the HTTP server hold: bodies that stay incomplete, answers and streams that
 * nobody takes. */
#include "supervisor/http.h"

#include "base/fd.h"
#include "tests/t.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
	LARGE = 15 << 20,
	MANY = 40, /* 600 MiB */
	KEPT_KIB = T_KEPT_MIB << 10,
	MOST_KIB = (288 << 10) + KEPT_KIB,
};

/* ---- the server, in a child ---- */

static struct loop *loop;

static int64_t on_headers(void *ctx, struct http_request *r)
{
	(void)ctx;
	(void)r;
	return 16 << 20;
}

struct source {
	struct http_request *r;
	bool silent; /* or without end, and LARGE is held for it */
	char *held;  /* owned; NULL: there was no room yet */
};

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct source *s = ctx;
	if (s->silent)
		return HTTP_WAIT;
	if (!s->held && !http_room(s->r, LARGE)) {
		http_starve(s->r);
		return HTTP_WAIT;
	}
	if (!s->held) {
		s->held = xcalloc(LARGE, 1);
		memset(s->held, 's', LARGE);
		http_hold(s->r, LARGE);
	}
	memset(p, 's', max);
	return (ssize_t)max;
}

static void gone(void *ctx)
{
	struct source *s = ctx;
	free(s->held);
	free(s);
}

static void stream(struct http_request *r, bool silent)
{
	struct source *s = xnew(struct source);
	*s = (struct source){.r = r, .silent = silent};
	const struct http_source source = {.pull = pull, .gone = gone, .ctx = s};
	http_stream(r, 200, "text/plain", -1, &source);
}

static void on_request(void *ctx, struct http_request *r)
{
	(void)ctx;
	const char *path = http_path(r);
	auto_buf struct buf b = BUF_INIT(LARGE);
	size_t n;
	if (strcmp(path, "/stream") == 0 || strcmp(path, "/silent") == 0) {
		stream(r, path[2] == 'i');
		return;
	}
	if (strcmp(path, "/quit") == 0)
		loop_stop(loop);
	(void)http_body(r, &n);
	buf_printf(&b, "%zu bytes", n);
	if (strcmp(path, "/large") == 0 && buf_reserve(&b, LARGE - b.len) == 0) {
		memset(b.p + b.len, 'l', LARGE - b.len);
		b.len = LARGE;
	}
	http_reply(r, 200, "text/plain", &b);
}

static void on_too_large(void *ctx, struct http_request *r)
{
	(void)ctx;
	http_reply(r, 413, NULL, NULL);
}

static void on_malformed(void *ctx, struct http_request *r, const struct err *e)
{
	(void)ctx;
	http_reply(r, e->code == -EBUSY ? 503 : 400, NULL, NULL);
}

static int serve(int listen_fd)
{
	struct err e;
	const struct http_service s = {
	        NULL, on_headers, on_request, on_too_large, on_malformed, NULL};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	loop = loop_new(64, &e);
	if (!loop || loop_enable(loop, &e) < 0)
		return 77;
	struct http *server = http_new(loop, listen_fd, -1, 12345, &s, &e);
	if (!server || loop_run(loop, &e) < 0)
		return 1;
	http_free(server);
	return 0;
}

/* ---- the clients ---- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;
static pid_t child;
static char block[LARGE];

static int dial(const char *method, const char *path, size_t length)
{
	char head[128];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(head, sizeof(head),
	        "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", method, path, length);
	if (connect(fd, (struct sockaddr *)&address, address_len) < 0 ||
	        send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
		printf("# %s %s: %s\n", method, path, strerror(errno));
	return fd;
}

static bool take_in(int fd, char *to, size_t n, int seconds)
{
	const struct timeval most = {.tv_sec = seconds};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* The status that comes, or 0. */
static int status(int fd)
{
	char text[16] = "";
	return take_in(fd, text, 12, 20) ? atoi(text + 9) : 0;
}

static int small(void)
{
	auto_close int fd = dial("POST", "/", 5);
	(void)!send(fd, "small", 5, MSG_NOSIGNAL);
	return status(fd);
}

static long rss_kib(void)
{
	char path[64];
	auto_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/status", child);
	if (file_slurp(path, 64 << 10, &text, NULL) < 0)
		return -1;
	const char *at = strstr(text, "VmRSS:");
	return at ? strtol(at + 6, NULL, 10) : -1;
}

static void close_all(int fds[MANY])
{
	for (int i = 0; i < MANY; i++)
		fd_close(fds[i]);
	for (int i = 0; i < 200 && rss_kib() > (64 << 10) + KEPT_KIB; i++)
		usleep(50000);
}

static void test_bodies(void)
{
	int fds[MANY], refused = 0;
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial("POST", "/", LARGE);
		(void)!send(fds[i], block, LARGE - 1, MSG_NOSIGNAL);
	}
	ok(small() == 200, "a small one is served beside large ones that stay incomplete");
	ok(rss_kib() < MOST_KIB, "which hold %ld MiB", rss_kib() >> 10);
	for (int i = MANY - 1; i >= MANY / 2; i--) {
		(void)!send(fds[i], block, 1, MSG_NOSIGNAL);
		refused += status(fds[i]) == 503;
	}
	ok(refused == MANY / 2, "what is beyond is refused: %d of %d", refused, MANY / 2);
	(void)!send(fds[0], block, 1, MSG_NOSIGNAL);
	ok(status(fds[0]) == 200, "what was there before is served");
	close_all(fds);
	auto_close int fd = dial("POST", "/", LARGE);
	(void)!send(fd, block, LARGE, MSG_NOSIGNAL);
	ok(status(fd) == 200, "and room comes back");
}

static void test_bodies_of_streams(void)
{
	int fds[MANY], fine = 0;
	for (int i = 0; i < MANY; i++) {
		fds[i] = dial("POST", "/silent", LARGE);
		(void)!send(fds[i], block, LARGE, MSG_NOSIGNAL);
		fine += status(fds[i]) == 200;
	}
	ok(fine == MANY && rss_kib() < (72 << 10) + KEPT_KIB,
	        "a stream does not keep what it was asked with: %d, %ld MiB", fine,
	        rss_kib() >> 10);
	close_all(fds);
}

static void test_answers(void)
{
	int fds[MANY], first, last;
	for (int i = 0; i < MANY; i++)
		fds[i] = dial("GET", "/large", 0);
	ok(small() == 200, "a small one is served beside answers that nobody takes");
	first = status(fds[0]);
	last = status(fds[MANY - 1]);
	ok(rss_kib() < MOST_KIB, "which hold %ld MiB", rss_kib() >> 10);
	ok(first == 200 && last == 503, "those beyond are refused: %d, %d", first, last);
	close_all(fds);
}

static void test_streams(void)
{
	int fds[MANY];
	for (int i = 0; i < MANY; i++)
		fds[i] = dial("GET", "/stream", 0);
	ok(small() == 200, "a small one is served beside streams that nobody takes");
	ok(rss_kib() < MOST_KIB, "which hold %ld MiB", rss_kib() >> 10);
	int last = fds[MANY - 1];
	bool begun = status(last) == 200;
	while (take_in(last, block, 1, 1))
		; /* the rest of its head */
	for (int i = 0; i < MANY - 1; i++)
		fd_close(take_fd(fds[i]));
	ok(begun && take_in(last, block, 100000, 20),
	        "who waits for room goes on when others leave");
	close_all(fds);
}

int main(void)
{
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address_len = (socklen_t)(sizeof(sa_family_t) + 1 +
	                          (size_t)snprintf(address.sun_path + 1, 64, "held-%d", getpid()));
	must(bind(l, (struct sockaddr *)&address, address_len) == 0 && listen(l, 4096) == 0,
	        "listen");
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child == 0)
		exit(serve(l));
	fd_close(l);
	test_bodies();
	test_bodies_of_streams();
	test_answers();
	test_streams();
	fd_close(dial("GET", "/quit", 0));
	int how = -1;
	must(waitpid(child, &how, 0) == child, "the server ends");
	ok(WIFEXITED(how) && WEXITSTATUS(how) == 0, "cleanly (%x)", how);
	return done();
}
