/* The HTTP server against raw sockets: well-behaved, broken, slow and rude clients. */
#include "supervisor/conns.h"
#include "supervisor/http.h"

#include "base/fd.h"
#include "base/limits.h"
#include "tests/t.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

/* ---- the server, in a child ---- */

static struct loop *loop;
static struct http *server;
static int said; /* pipe: a byte for each thing the test wants to hear of */

struct later {
	struct op op;
	struct http_request *r; /* NULL once the client is gone */
	int pieces;
	bool due;
};

static void say(char c)
{
	if (write(said, &c, 1) != 1)
		_exit(1);
}

static void on_later(struct op *op, int res, uint32_t flags)
{
	struct later *l = container_of(op, struct later, op);
	(void)res;
	(void)flags;
	auto_buf struct buf b = BUF_INIT(100);
	buf_puts(&b, "later");
	if (l->r)
		http_reply(l->r, 200, "text/plain", &b);
	free(l);
}

/* The timer may have fired already; then its completion finds no request. */
static void later_gone(void *ctx)
{
	struct later *l = ctx;
	l->r = NULL;
	loop_cancel(loop, &l->op);
}

static void gone(void *ctx)
{
	(void)ctx;
	say('g');
}

static void on_tick(struct op *op, int res, uint32_t flags)
{
	struct later *l = container_of(op, struct later, op);
	(void)res;
	(void)flags;
	if (!l->r) {
		say('s');
		free(l);
		return;
	}
	l->due = true;
	http_wake(l->r);
	loop_timeout(loop, &l->op, 20, on_tick);
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct later *l = ctx;
	if (l->pieces == 0)
		return HTTP_END;
	if (!l->due || max < 6)
		return HTTP_WAIT;
	l->due = false;
	memcpy(p, "piece\n", 6);
	l->pieces--;
	return 6;
}

static ssize_t pull_flood(void *ctx, char *p, size_t max)
{
	(void)ctx;
	memset(p, 'f', max);
	return (ssize_t)max;
}

static void stream(struct http_request *r, int pieces)
{
	struct later *l = xnew(struct later);
	l->r = r;
	l->pieces = pieces;
	struct http_source s = {.pull = pull, .gone = later_gone, .ctx = l};
	loop_timeout(loop, &l->op, 20, on_tick);
	http_stream(r, 200, "text/plain", -1, &s);
}

static void upgraded(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n)
{
	(void)ctx;
	auto_buf struct buf b = BUF_INIT(1000);
	buf_puts(&b, "up:");
	buf_put(&b, p, n);
	if (write(fd, b.p, b.len) != (ssize_t)b.len)
		say('!');
	http_upgraded_close(u);
}

static void echo(struct http_request *r)
{
	size_t n;
	const char *p = http_body(r, &n), *q = http_query(r, "q");
	auto_buf struct buf b = BUF_INIT(2 << 20);
	buf_printf(&b, "%s %s q=%s n=%zu role=%d\n", http_method(r), http_path(r), q ? q : "-", n,
	        http_peer(r)->role);
	buf_put(&b, p, n);
	http_reply(r, 200, "text/plain", &b);
}

/* A sink that takes little at once, and nothing while it is busy with that. */
struct flow {
	struct op op;
	struct http_request *r; /* NULL once the client is gone */
	size_t n, sum;
	bool busy;
};

static void flow_on(struct op *op, int res, uint32_t flags)
{
	struct flow *f = container_of(op, struct flow, op);
	(void)res;
	(void)flags;
	f->busy = false;
	if (f->r)
		http_wake(f->r);
	else
		free(f);
}

static size_t flow_room(void *ctx)
{
	const struct flow *f = ctx;
	return f->busy ? 0 : 1000;
}

static void flow_push(void *ctx, const char *p, size_t n)
{
	struct flow *f = ctx;
	if (f->busy || n > 1000 || n == 0)
		say('!');
	for (size_t i = 0; i < n; i++)
		f->sum += (unsigned char)p[i];
	f->n += n;
	f->busy = true;
	loop_timeout(loop, &f->op, 1, flow_on);
}

static void flow_gone(void *ctx)
{
	struct flow *f = ctx;
	f->r = NULL;
	say('w');
	if (f->busy)
		loop_cancel(loop, &f->op);
	else
		free(f);
}

static void flow_end(void *ctx)
{
	struct flow *f = ctx;
	auto_buf struct buf b = BUF_INIT(100);
	buf_printf(&b, "flown n=%zu sum=%zu", f->n, f->sum);
	http_reply(take(f->r), 200, "text/plain", &b);
	if (!f->busy)
		free(f);
}

static int count_header(void *ctx, const char *name, const char *value)
{
	(void)name;
	(void)value;
	++*(int *)ctx;
	return 0;
}

static void flow(struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(1000);
	int headers = 0;
	if (http_raw_query(r)) {
		(void)http_each_header(r, count_header, &headers);
		buf_printf(&b, "%s headers=%d", http_raw_query(r), headers);
		http_reply(r, 413, "text/plain", &b);
		return;
	}
	struct flow *f = xnew(struct flow);
	f->r = r;
	const struct http_sink sink = {
	        .room = flow_room, .push = flow_push, .end = flow_end, .ctx = f};
	http_take_body(r, &sink);
	http_on_gone(r, flow_gone, f);
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
	(void)ctx;
	if (strcmp(http_path(r), "/flow") == 0)
		return HTTP_BODY_FLOWS;
	if (strncmp(http_path(r), "/refused", 8) == 0) {
		http_reply(r, 404, NULL, NULL);
		return -1;
	}
	return 1 << 20;
}

static void on_request(void *ctx, struct http_request *r)
{
	(void)ctx;
	const char *path = http_path(r);
	if (strcmp(path, "/later") == 0) {
		struct later *l = xnew(struct later);
		l->r = r;
		http_on_gone(r, later_gone, l);
		loop_timeout(loop, &l->op, 50, on_later);
	} else if (strcmp(path, "/never") == 0) {
		http_on_gone(r, gone, NULL);
	} else if (strcmp(path, "/stream") == 0) {
		stream(r, 3);
	} else if (strcmp(path, "/forever") == 0) {
		stream(r, 1 << 30);
	} else if (strcmp(path, "/flood") == 0) {
		struct http_source s = {.pull = pull_flood, .gone = gone};
		http_stream(r, 200, "text/plain", -1, &s);
	} else if (strcmp(path, "/flow") == 0) {
		flow(r);
	} else if (strcmp(path, "/up") == 0) {
		http_upgrade(r, "test", upgraded, NULL);
	} else if (strcmp(path, "/quit") == 0) {
		echo(r);
		loop_stop(loop);
	} else {
		echo(r);
	}
}

static void on_too_large(void *ctx, struct http_request *r)
{
	(void)ctx;
	http_reply(r, 413, NULL, NULL);
}

static void on_malformed(void *ctx, struct http_request *r, const struct err *e)
{
	(void)ctx;
	auto_buf struct buf b = BUF_INIT(1000);
	buf_printf(&b, "malformed: %s\n", e->text);
	http_reply(r, e->code == -E2BIG || e->code == -ENAMETOOLONG ? 431 : 400, "text/plain", &b);
}

static void stop(struct op *op, int res, uint32_t flags)
{
	(void)op;
	(void)res;
	(void)flags;
	loop_stop(loop);
}

static int serve(int listen_fd)
{
	struct err e;
	struct op timer = {.magic = 0};
	struct http_service s = {NULL, on_headers, on_request, on_too_large, on_malformed, NULL};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	loop = loop_new(64, &e);
	if (!loop || loop_enable(loop, &e) < 0)
		return 77;
	server = http_new(loop, listen_fd, -1, 12345, &s, &e);
	if (!server || loop_run(loop, &e) < 0)
		return 1;
	/* The end, as the daemon does it: what is in flight comes back, then all is freed. */
	http_free(server);
	loop_timeout(loop, &timer, 100, stop);
	if (loop_run(loop, &e) < 0)
		return 1;
	loop_free(loop);
	return 0;
}

/* ---- the clients ---- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&address, address_len) < 0) {
		fd_close(fd);
		return -1;
	}
	struct timeval tv = {.tv_sec = 20};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

static void put(int fd, const char *s)
{
	if (send(fd, s, strlen(s), MSG_NOSIGNAL) < 0)
		printf("# send: %s\n", strerror(errno));
}

/* Reads until `end` appears (NULL: until EOF), or time is up. */
static const char *get(int fd, const char *end)
{
	static char text[4 << 20];
	size_t n = 0;
	ssize_t k;
	text[0] = '\0';
	while (n + 1 < sizeof(text) && (k = recv(fd, text + n, sizeof(text) - 1 - n, 0)) > 0) {
		n += (size_t)k;
		text[n] = '\0';
		if (end && strstr(text, end))
			break;
	}
	return text;
}

static const char *ask(const char *request, const char *end)
{
	auto_close int fd = dial();
	put(fd, request);
	return get(fd, end);
}

static void millis(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&t, NULL);
}

static int hear(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;
	if (poll(&p, 1, 20000) != 1 || read(fd, &c, 1) != 1)
		return 0;
	return c;
}

#define H "Host: x\r\n"

static void test_plain(void)
{
	const char *a = ask("GET /a%2Fb?q=x%20y&z=1 HTTP/1.1\r\n" H "\r\n", "role=");
	ok(strstr(a, "HTTP/1.1 200") && strstr(a, "GET /a%2Fb q=x y n=0"),
	        "a request, decoded once");
	ok(strstr(a, getuid() == 0 ? "role=2" : "role="), "and its peer");
	a = ask("POST /e HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", "hello");
	ok(strstr(a, "n=5") && strstr(a, "hello"), "a body");
	a = ask("POST /e HTTP/1.1\r\n" H
	        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	        "abcde");
	ok(strstr(a, "n=5") && strstr(a, "abcde"), "a chunked body");
	a = ask("GET /later HTTP/1.1\r\n" H "\r\n", "later");
	ok(strstr(a, "200") && strstr(a, "later"), "an answer that comes later");
	a = ask("GET /stream HTTP/1.1\r\n" H "\r\n", "\r\n0\r\n");
	ok(strstr(a, "chunked") && strstr(a, "piece") && strstr(a, "\r\n0\r\n"),
	        "a stream, chunked");
	a = ask("GET /stream HTTP/1.0\r\n\r\n", NULL);
	ok(strstr(a, "piece\npiece\npiece\n"), "the same for HTTP/1.0, plain");
	a = ask("HEAD /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n", NULL);
	ok(strstr(a, "200") && !strstr(a, "role="), "HEAD has no body");
}

static void test_pipelined(void)
{
	auto_close int fd = dial();
	put(fd, "GET /1 HTTP/1.1\r\n" H "\r\nGET /later HTTP/1.1\r\n" H "\r\n"
	        "POST /3 HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nxyz"
	        "GET /4 HTTP/1.1\r\n" H "\r\n");
	const char *a = get(fd, "GET /4");
	const char *one = strstr(a, "GET /1"), *two = strstr(a, "later"), *three = strstr(a, "xyz"),
	           *four = strstr(a, "GET /4");
	ok(one && two && three && four && one < two && two < three && three < four,
	        "four requests in one packet are answered in order");
}

static void test_broken(void)
{
	static const struct {
		const char *request, *what;
	} all[] = {
	        {"\x16\x03\x01", "no letter to begin with"},
	        {"GET /x HTTP/1.1\n" H "\n", "bare line feeds"},
	        {"GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 without Host"},
	        {"GET /x HTTP/9.9\r\n" H "\r\n", "an unknown version"},
	        {"GET  /x HTTP/1.1\r\n" H "\r\n", "two blanks"},
	        {"GET /x HTTP/1.1\r\n" H "a : b\r\n\r\n", "a blank before a colon"},
	        {"POST /x HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\n",
	                "an absurd length"},
	        {"POST /x HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", "a negative length"},
	        {"POST /x HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
	                "two lengths"},
	        {"POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	                "a broken chunk"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		const char *a = ask(all[i].request, NULL);
		ok(strncmp(a, "HTTP/1.1 400 Bad Request\r\n", 26) == 0 &&
		                strstr(a, "Connection: close\r\n") &&
		                strstr(a, "\r\n\r\nmalformed: "),
		        "refused by the service, and closed: %s", all[i].what);
	}
	auto_close int cut = dial();
	put(cut, "GET /x HTT");
	shutdown(cut, SHUT_WR);
	ok(strstr(get(cut, NULL), "malformed: the request ends"), "refused: half a head");
	auto_close int second = dial();
	put(second, "GET /1 HTTP/1.1\r\n" H "\r\nNONSENSE\r\n\r\nGET /3 HTTP/1.1\r\n" H "\r\n");
	const char *a = get(second, NULL);
	ok(strstr(a, "GET /1") && strstr(a, "malformed: ") && !strstr(a, "GET /3"),
	        "what stands before a broken request is answered, and nothing behind it");
	a = ask("\r\n\r\nGET /x HTTP/1.1\r\n" H "Connection: close\r\n\r\n", NULL);
	ok(strstr(a, "GET /x"), "empty lines in front are none of it");
}

static void test_large(void)
{
	enum { N = 200000 };
	char *big = malloc(N + 64);
	int n = sprintf(big, "GET /x HTTP/1.1\r\n" H "A: ");
	memset(big + n, 'a', N - n);
	strcpy(big + N, "\r\n\r\n");
	const char *a = ask(big, NULL);
	ok(strstr(a, " 431 ") || strstr(a, " 413 "), "headers beyond the limit");
	n = sprintf(big, "GET /");
	memset(big + n, 'a', N - n);
	strcpy(big + N, " HTTP/1.1\r\n" H "\r\n");
	a = ask(big, NULL);
	ok(strstr(a, " 414 ") || strstr(a, " 431 "), "a path beyond the limit");
	free(big);
	a = ask("POST /x HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n",
	        "\r\n\r\n");
	ok(strstr(a, " 413 ") && !strstr(a, "100 Continue"), "too large: said before it is sent");
	a = ask("POST /refused HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 9\r\n\r\n",
	        "\r\n\r\n");
	ok(strstr(a, " 404 "), "refused: said before it is sent");
	/* A client that sends all the same can read the answer. */
	char *body = malloc(2000001);
	memset(body, 'b', 2000000);
	body[2000000] = '\0';
	auto_close int fd = dial();
	put(fd, "POST /x HTTP/1.1\r\n" H "Content-Length: 2000000\r\n\r\n");
	put(fd, body);
	a = get(fd, "\r\n\r\n");
	ok(strstr(a, " 413 "), "too large: said to one that does not ask");
	auto_close int chunked = dial();
	put(chunked, "POST /x HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1e8480\r\n");
	put(chunked, body);
	put(chunked, "\r\n0\r\n\r\n");
	a = get(chunked, "\r\n\r\n");
	ok(strstr(a, " 413 "), "too large: found out while reading");
	free(body);
}

static void test_rude(int heard)
{
	auto_close int slow = dial();
	for (const char *p = "GET /slow HTTP/1.1\r\n" H "\r\n"; *p; p++) {
		char c[2] = {*p, 0};
		put(slow, c);
		millis(2);
	}
	ok(strstr(get(slow, "role="), "GET /slow"), "a byte at a time");
	auto_close int half = dial();
	put(half, "GET /x HTTP/1.1\r\n" H "\r\n");
	shutdown(half, SHUT_WR);
	ok(strstr(get(half, NULL), "GET /x"), "half-closed: an answer still comes");
	auto_close int early = dial();
	put(early, "GET /later HTTP/1.1\r\n" H "\r\n");
	shutdown(early, SHUT_WR);
	ok(strstr(get(early, NULL), "later"), "half-closed: also one that comes later");
	auto_close int two = dial();
	put(two, "GET /later HTTP/1.1\r\n" H "\r\nGET /x HTTP/1.1\r\n" H "\r\n");
	shutdown(two, SHUT_WR);
	const char *both = get(two, NULL);
	ok(strstr(both, "later") && strstr(both, "GET /x"), "half-closed: and the one behind it");
	int left = dial();
	put(left, "GET /never HTTP/1.1\r\n" H "\r\n");
	shutdown(left, SHUT_WR);
	millis(50);
	fd_close(left);
	ok(hear(heard) == 'g', "half-closed, and then gone: it is noticed");
	auto_close int stream = dial();
	put(stream, "GET /stream HTTP/1.1\r\n" H "\r\n");
	(void)get(stream, "piece");
	shutdown(stream, SHUT_WR);
	ok(strstr(get(stream, NULL), "\r\n0\r\n"), "half-closed: a stream goes on to its end");
	ok(hear(heard) == 's', "which is told");
	int fd = dial();
	put(fd, "GET /never HTTP/1.1\r\n" H "\r\n");
	millis(50);
	fd_close(fd);
	ok(hear(heard) == 'g', "leaving before the answer is noticed at once");
	fd = dial();
	put(fd, "GET /forever HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(fd, "piece"), "piece"), "following");
	fd_close(fd);
	ok(hear(heard) == 's', "leaving a stream is noticed");
	fd = dial();
	put(fd, "GET /flood HTTP/1.1\r\n" H "\r\n");
	millis(100);
	ok(strstr(ask("GET /x HTTP/1.1\r\n" H "\r\n", "role="), "GET /x"),
	        "one that does not read holds up nobody");
	fd_close(fd);
	ok(hear(heard) == 'g', "and goes");
	for (int i = 0; i < 200; i++) {
		fd = dial();
		put(fd, i % 2 ? "GET /later HTTP/1.1\r\n" H "\r\n"
		              : "POST /x HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nab");
		millis(i % 4 < 2 ? 0 : 2); /* half of them when their request has been taken in */
		fd_close(fd);
	}
	ok(strstr(ask("GET /x HTTP/1.1\r\n" H "\r\n", "role="), "GET /x"), "200 that hang up");
}

static void test_upgrade(void)
{
	const char *a = ask(
	        "GET /up HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: test\r\n\r\nextra", NULL);
	ok(strstr(a, "HTTP/1.1 101") && strstr(a, "Upgrade: test"), "101");
	ok(strstr(a, "up:extra"), "what was sent ahead is not lost");
}

/* The handler has the request before its body is there, and sets the pace. */
static void test_flow(int heard)
{
	auto_close int fd = dial();
	char piece[5000], want[64];
	size_t sum = 0;
	for (size_t i = 0; i < sizeof(piece); i++)
		sum += (unsigned char)(piece[i] = (char)(i % 251));
	put(fd, "POST /flow HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\n");
	for (int i = 0; i < 20; i++)
		if (send(fd, piece, sizeof(piece), MSG_NOSIGNAL) != sizeof(piece))
			ok(0, "sent");
	snprintf(want, sizeof(want), "flown n=100000 sum=%zu", 20 * sum);
	ok(strstr(get(fd, "sum="), want), "a body that flows is taken piece by piece");
	put(fd, "POST /flow HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
	put(fd, "5\r\nabcde\r\n7d0\r\n");
	for (int i = 0; i < 2000; i++)
		put(fd, "x");
	put(fd, "\r\n0\r\n\r\n");
	snprintf(want, sizeof(want), "flown n=2005 sum=%d", 2000 * 'x' + 495);
	ok(strstr(get(fd, "sum="), want), "in chunks, on the same connection");
	put(fd, "POST /flow HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(fd, "sum="), "flown n=0 sum=0"), "one that is not there");
	put(fd, "POST /flow?a=b+c&d&e=%2f HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nabcde");
	ok(strstr(get(fd, "headers="), "a=b+c&d&e=%2f headers=2"),
	        "answered at once, with the query as it was sent");
	put(fd, "GET /x HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(fd, "role="), "GET /x q=- n=0"), "and the body dropped");
	int left = dial();
	put(left, "POST /flow HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\nabc");
	int broken = dial();
	put(broken,
	        "POST /flow HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdeX\r\n");
	ok(strstr(get(broken, "400"), "HTTP/1.1 400") && hear(heard) == 'w',
	        "chunks that are none: answered, and told of");
	fd_close(broken);
	millis(200); /* else it has left before it asked */
	fd_close(left);
	ok(hear(heard) == 'w', "a client that leaves in the middle is told of");
}

static void test_crowd(void)
{
	static int fds[LIMIT_CONNECTIONS];
	const int crowd = (int)conns_affordable(); /* as the server, which has the same limit */
	/* One user may have three quarters of all; beyond them its longest idle ones make room. */
	int open = 0, cut = 0;
	for (int i = 0; i < crowd; i++) {
		fds[i] = dial();
		open += fds[i] >= 0;
	}
	ok(open == crowd, "%d connections opened", open);
	put(fds[crowd - 1], "GET /x HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(fds[crowd - 1], "role="), "GET /x"), "the last one is served");
	put(fds[crowd / 2], "GET /x HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(fds[crowd / 2], "role="), "GET /x"), "and one of the middle");
	for (int i = 0; i < crowd; i++) {
		char c;
		struct pollfd p = {.fd = fds[i], .events = POLLIN};
		cut += poll(&p, 1, i ? 0 : 5000) == 1 && recv(fds[i], &c, 1, MSG_PEEK) == 0;
	}
	ok(cut >= crowd / 4 - 8 && cut <= crowd / 4 + 8, "the oldest were cut: %d", cut);
	for (int i = 0; i < crowd; i++)
		fd_close(fds[i]);
	millis(100);
	ok(strstr(ask("GET /x HTTP/1.1\r\n" H "\r\n", "role="), "GET /x"), "and room comes back");
	/* All of its share busy: then there is nothing to cut. */
	for (int i = 0; i < crowd; i++) {
		fds[i] = dial();
		put(fds[i], "GET /never HTTP/1.1\r\n" H "\r\n");
	}
	const char *a = get(fds[crowd - 1], NULL);
	ok(strstr(a, " 503 ") && strstr(a, "all busy"), "nothing idle: refused, and told why");
	for (int i = 0; i < crowd; i++)
		fd_close(fds[i]);
	millis(100);
	ok(strstr(ask("GET /x HTTP/1.1\r\n" H "\r\n", "role="), "GET /x"), "and again");
}

/* Large heads that do not end are few at once, and cost others nothing. */
static void test_big_heads(void)
{
	enum { HEADS = 520, FEW = 512, LARGE = 20 << 10 };
	static int fds[HEADS];
	static char head[LARGE + 1];
	int refused = 0;
	static const char begin[] = "GET /x HTTP/1.1\r\n" H "X: ";
	memset(head, 'a', LARGE);
	memcpy(head, begin, sizeof(begin) - 1);
	for (int i = 0; i < HEADS; i++) {
		fds[i] = dial();
		put(fds[i], head);
	}
	for (int i = 0; i < HEADS; i++) {
		struct pollfd p = {.fd = fds[i], .events = POLLIN};
		if (poll(&p, 1, i ? 0 : 500) == 1)
			refused += strstr(get(fds[i], "400"), "heads of more than 16 KiB") != NULL;
	}
	ok(refused == HEADS - FEW, "large heads that do not end: %d refused", refused);
	ok(strstr(ask("GET /x HTTP/1.1\r\n" H "\r\n", "role="), "GET /x"), "small ones are served");
	put(fds[0], "\r\n\r\n");
	ok(strstr(get(fds[0], "role="), "GET /x"), "and a large one that was there before");
	for (int i = 0; i < HEADS; i++)
		fd_close(fds[i]);
	millis(100);
	auto_close int fd = dial();
	put(fd, head);
	put(fd, "\r\n\r\n");
	ok(strstr(get(fd, "role="), "GET /x"), "room for them comes back");
}

/* Waits at the listener as the ring of a killed supervisor does until the kernel has taken it down:
 * of those that wait exclusively only the first is woken, and this one takes nobody. */
static pid_t somebody_waits(int l)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET | EPOLLEXCLUSIVE};
	if (epoll_ctl(ep, EPOLL_CTL_ADD, l, &ev) < 0)
		_exit(1);
	for (;;)
		(void)epoll_wait(ep, &ev, 1, -1);
}

int main(void)
{
	int p[2], l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address_len = (socklen_t)(sizeof(sa_family_t) + 1 +
	                          (size_t)snprintf(address.sun_path + 1, 64, "http-%d", getpid()));
	must(bind(l, (struct sockaddr *)&address, address_len) == 0 && listen(l, 4096) == 0,
	        "listen");
	must(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	signal(SIGPIPE, SIG_IGN);
	struct rlimit lim;
	must(getrlimit(RLIMIT_NOFILE, &lim) == 0, "the limit of descriptors");
	lim.rlim_cur = lim.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	pid_t other = somebody_waits(l);
	usleep(100000); /* it is the first */
	pid_t child = fork();
	if (child == 0) {
		said = p[1];
		exit(serve(l));
	}
	/* Only the server holds these: when it dies, the test does not wait for it. */
	fd_close(l);
	fd_close(p[1]);
	test_plain();
	ok(hear(p[0]) == 's' && hear(p[0]) == 's', "both streams told of their end");
	test_pipelined();
	test_broken();
	test_large();
	test_rude(p[0]);
	test_upgrade();
	test_flow(p[0]);
	test_crowd();
	test_big_heads();
	/* Ends with a request that waits and a stream that runs. */
	auto_close int waits = dial();
	put(waits, "GET /never HTTP/1.1\r\n" H "\r\n");
	auto_close int runs = dial();
	put(runs, "GET /forever HTTP/1.1\r\n" H "\r\n");
	ok(strstr(get(runs, "piece"), "piece"), "a stream runs");
	(void)ask("GET /quit HTTP/1.1\r\n" H "\r\n", NULL);
	int status = -1;
	must(waitpid(child, &status, 0) == child, "the server ends");
	kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "cleanly (%x)", status);
	return done();
}
