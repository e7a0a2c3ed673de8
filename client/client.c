#include "client/client.h"
#include "client/remote.h"
#include "base/http1.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/version.h"

#include <inttypes.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEY_MAX = 1024 };

struct client {
	int fd; /* owned */
	struct http1 http;
	bool any_version; /* it is asked for that */
	void (*told)(const char *version);
	struct buf body; /* decoded, not yet taken */
	size_t taken;    /* bytes of `body` given out as lines */
	size_t searched; /* no new line between `taken` and here */
	struct buf rest; /* after 101 */
	int mode;        /* -1: not said */
	int64_t length;  /* likewise */
};

static int connect_to(const char *path, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if (!path[0])
		return err_set(e, -EINVAL,
		        "the path of the control socket is empty (--socket, "
		        "AGENTBOX_SOCKET)");
	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(e, -ENAMETOOLONG, "'%.100s' cannot be a socket: at most %zu bytes",
		        path, sizeof(a.sun_path) - 1);
	memcpy(a.sun_path, path, strlen(path) + 1);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(e, "socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return take_fd(fd);
	if (errno == EACCES || errno == EPERM)
		return err_set(e, -EACCES,
		        "no permission for %s: be in group agentbox "
		        "(usermod -aG agentbox USER, then log in again)",
		        path);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(e, -errno,
		        "no daemon answers on %s: start one with `systemctl start agentboxd` or "
		        "`agentboxd --state DIR --socket %s`",
		        path, path);
	return err_errno(e, "connecting to %s", path);
}

int client_send_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	while (n > 0) {
		ssize_t k = send(fd, at, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

/* Nobody wants a header smuggled in by a strange file name. */
static bool plain(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s <= 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* What ends early, or was cut meanwhile, ends the connection: the daemon sees that it is not all.
 */
static int send_body(int fd, const struct client_request *q, struct err *e)
{
	char p[LIMIT_PUMP_READ];
	for (uint64_t left = q->from_len; left;) {
		ssize_t n = read(q->from, p, left < sizeof(p) ? (size_t)left : sizeof(p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "reading what is to be sent");
		if (n == 0)
			return err_set(e, -EINVAL, "it was cut short while it was sent");
		int r = client_send_all(fd, p, (size_t)n);
		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return err_set(e, r, "sending the file: %s", strerror(-r));
		left -= (uint64_t)n;
	}
	return 0;
}

/* The key of a file, without the new line behind it; owned. */
static char *key_of(const char *path, struct err *e)
{
	auto_free char *text = NULL;
	size_t n;
	int rc = file_slurp(path, KEY_MAX, &text, &n);
	if (rc < 0) {
		err_set(e, rc, "key file %s: %s", path, strerror(-rc));
		return NULL;
	}
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r' || text[n - 1] == ' '))
		text[--n] = '\0';
	if (n == 0 || strlen(text) != n || !plain(text)) {
		err_set(e, -EINVAL, "key file %s: is not one key", path);
		return NULL;
	}
	return take(text);
}

static int send_request(int fd, const struct client_request *q, const char *key_file, struct err *e)
{
	auto_free char *key = key_file ? key_of(key_file, e) : NULL;
	if (key_file && !key)
		return e->code;
	if (!plain(q->path))
		return err_set(e, -EINVAL, "invalid character in a request path");
	auto_buf struct buf b = BUF_INIT(LIMIT_HTTP_BODY + HTTP1_HEAD);
	buf_printf(&b,
	        "%s %s HTTP/1.1\r\nHost: agentbox\r\nUser-Agent: libagentbox\r\nAccept: %s\r\n",
	        q->method, q->path, q->accept ? q->accept : "application/json");
	if (q->upgrade)
		buf_printf(&b, "Connection: Upgrade\r\nUpgrade: %s\r\n", q->upgrade);
	else
		buf_puts(&b, "Connection: close\r\n");
	if (key)
		buf_printf(&b, "Authorization: Bearer %s\r\n", key);
	if (q->last_event_id > 0)
		buf_printf(&b, "Last-Event-ID: %" PRId64 "\r\n", q->last_event_id);
	if (q->range_from)
		buf_printf(&b, "Range: bytes=%" PRIu64 "-\r\nIf-Range: \"%s\"\r\n", q->range_from,
		        q->if_range);
	if (q->body)
		buf_printf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
		        q->body_len);
	else if (q->from_len)
		buf_printf(&b,
		        "Content-Type: application/octet-stream\r\nContent-Length: %" PRIu64 "\r\n",
		        q->from_len);
	else if (strcmp(q->method, "POST") == 0 || strcmp(q->method, "PUT") == 0)
		buf_puts(&b, "Content-Length: 0\r\n");
	buf_puts(&b, "\r\n");
	if (q->body)
		buf_put(&b, q->body, q->body_len);
	if (b.failed)
		return err_set(e, b.failed, "the request is larger than %d bytes", LIMIT_HTTP_BODY);
	int r = client_send_all(fd, b.p, b.len);
	/* A refusal may come before the body is read: then the answer says why. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_set(e, r, "sending the request: %s", strerror(-r));
	return r == 0 ? send_body(fd, q, e) : 0;
}

/* What an answer of another number of the API means cannot be known. */
static int check_api(const char *told, struct err *e)
{
	static const char mark[] = "; api=";
	const char *api = strstr(told, mark);
	if (!api || strcmp(api + sizeof(mark) - 1, AGENTBOX_API) == 0)
		return 0;
	return err_set(e, -EPROTO,
	        "the daemon (%.*s, API %.16s) and this client (" AGENTBOX_VERSION
	        ", API " AGENTBOX_API ") do not understand each other: use the client that was "
	        "installed with the daemon, or `abctl reload` after an upgrade",
	        (int)(api - told), told, api + sizeof(mark) - 1);
}

static int on_field(void *ctx, const char *name, const char *value, struct err *e)
{
	struct client *c = ctx;
	if (name && strcasecmp(name, "Agentbox-Mode") == 0)
		c->mode = (int)(strtoul(value, NULL, 8) & 0777);
	if (name && strcasecmp(name, "Content-Length") == 0)
		c->length = (int64_t)strtoull(value, NULL, 10);
	if (!name || c->any_version || strcasecmp(name, AGENTBOX_VERSION_FIELD) != 0)
		return 0;
	int r = check_api(value, e);
	if (r == 0 && c->told)
		c->told(value);
	return r;
}

struct client *client_open(
        const struct client_peer *peer, const struct client_request *req, struct err *e)
{
	auto_close int fd =
	        peer->url ? remote_open(peer->url, peer->ca_file, e) : connect_to(peer->socket, e);
	if (fd < 0 || send_request(fd, req, peer->key_file, e) < 0)
		return NULL;
	struct client *c = xnew(struct client);
	*c = (struct client){
	        .fd = take_fd(fd),
	        .http = HTTP1_INIT,
	        /* A list of everything, or an event of full size and the read after it. */
	        .body = BUF_INIT(64 << 20),
	        .rest = BUF_INIT(LIMIT_PUMP_READ),
	        .told = peer->told,
	        .any_version = strcmp(req->path, "/v1/version") == 0,
	        .mode = -1,
	        .length = -1,
	};
	c->http.field = on_field;
	c->http.ctx = c;
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	fd_close(c->fd);
	http1_done(&c->http);
	buf_done(&c->body);
	buf_done(&c->rest);
	free(c);
}

int client_pump(struct client *c, struct err *e)
{
	if (c->http.state == HTTP1_DONE)
		return 0;
	char p[LIMIT_PUMP_READ];
	ssize_t n;
	do
		n = read(c->fd, p, sizeof(p));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(e, "reading from the daemon");
	if (n == 0 && http1_eof(&c->http, e) < 0)
		return err_set(e, e->code, "the daemon closed the connection in the middle");
	if (n == 0)
		return 0;
	ssize_t used = http1_feed(&c->http, p, (size_t)n, &c->body, e);
	if (used < 0)
		return (int)used;
	if (c->http.state == HTTP1_UPGRADED && used < n)
		buf_put(&c->rest, p + used, (size_t)(n - used));
	return c->http.state != HTTP1_DONE;
}

int client_status(struct client *c, struct err *e)
{
	while (!http1_has_head(&c->http)) {
		int r = client_pump(c, e);
		if (r < 0)
			return r;
	}
	return c->http.status;
}

bool client_has_head(const struct client *c)
{
	return http1_has_head(&c->http);
}

bool client_unread(const struct client *c)
{
	struct sockaddr_storage a = {0};
	socklen_t n = sizeof(a);
	int bytes = 0;
	return getsockname(c->fd, (struct sockaddr *)&a, &n) == 0 && a.ss_family == AF_UNIX &&
	       ioctl(c->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

const char *client_content_type(const struct client *c)
{
	return c->http.content_type;
}

int64_t client_retry_after(const struct client *c)
{
	return c->http.retry_after;
}

int64_t client_length(const struct client *c)
{
	return c->length;
}

int client_mode(const struct client *c)
{
	return c->mode;
}

int client_body(struct client *c, const char **ret, size_t *ret_len, struct err *e)
{
	int r;
	do
		r = client_pump(c, e);
	while (r > 0);
	if (r < 0)
		return r;
	*ret = c->body.p ? c->body.p : "";
	*ret_len = c->body.len;
	return 0;
}

const char *client_line(struct client *c, size_t *ret_len)
{
	char *from = c->body.p + c->taken;
	char *nl = c->searched < c->body.len
	                   ? memchr(c->body.p + c->searched, '\n', c->body.len - c->searched)
	                   : NULL;
	if (!nl) {
		/* Moved only here, once a read, so that many lines cost one move. */
		if (c->taken)
			buf_consume(&c->body, c->taken);
		c->taken = 0;
		c->searched = c->body.len;
		return NULL;
	}
	*nl = '\0';
	*ret_len = (size_t)(nl - from);
	if (*ret_len && from[*ret_len - 1] == '\r')
		from[--*ret_len] = '\0';
	c->taken = c->searched = (size_t)(nl + 1 - c->body.p);
	return from;
}

void client_drain(struct client *c, struct buf *to)
{
	buf_put(to, c->body.p + c->taken, c->body.len - c->taken);
	buf_clear(&c->body);
	c->taken = c->searched = 0;
}

int client_copy(struct client *c, int fd, uint64_t most, struct digest *d, struct err *e)
{
	/* What one read can bring, and what came with the head. */
	auto_buf struct buf b = BUF_INIT(4 * (size_t)LIMIT_PUMP_READ);
	int more;
	do {
		more = client_pump(c, e);
		client_drain(c, &b);
		if (b.len > most)
			return err_set(e, -EBADMSG, "more bytes come than were announced");
		int r = fd_write_all(fd, b.p, b.len);
		if (r < 0)
			return err_set(e, r, "%s", strerror(-r));
		if (d && b.len)
			digest_add(d, b.p, b.len);
		most -= b.len;
		buf_clear(&b);
	} while (more > 0);
	return more;
}

int client_fd(const struct client *c)
{
	return c->fd;
}

int client_upgraded(struct client *c, struct buf *ret_rest)
{
	buf_put(ret_rest, c->rest.p, c->rest.len);
	buf_clear(&c->rest);
	return take_fd(c->fd);
}
