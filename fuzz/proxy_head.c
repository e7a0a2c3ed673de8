/*
 * Any bytes as the headers of a request or of an answer, a line each behind a first line with
 * method, path and Host: nothing but whole headers may come of them, and of those that make a
 * second message none.
 */
#include "supervisor/proxy_head.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 3 };

static void plain(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((*p > 0 && *p < 0x20 && *p != '\t') || *p == 0x7f)
			abort();
}

static void on_answer(void *ctx, const char *name, const char *value)
{
	static const char *const never[] = {
	        "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Clear-Site-Data"};
	const struct proxy_target *t = ctx;
	plain(name);
	plain(value);
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (strcasecmp(name, never[i]) == 0)
			abort();
	if (t->form == PROXY_BY_PATH && strcasecmp(name, "Set-Cookie") == 0)
		abort();
}

/* One line each, of which one is the Host and one says how the connection goes on. */
static void look_at_request(const struct buf *head)
{
	unsigned hosts = 0, connections = 0;
	if (head->len < 4 || memcmp(head->p + head->len - 4, "\r\n\r\n", 4) != 0)
		abort();
	for (const char *p = head->p; *p;) {
		const char *end = strstr(p, "\r\n");
		if (!end || memchr(p, '\n', (size_t)(end - p)) ||
		        (end == p && end + 2 != head->p + head->len))
			abort();
		hosts += strncasecmp(p, "Host:", 5) == 0;
		connections += strncasecmp(p, "Connection:", 11) == 0;
		p = end + 2;
	}
	if (hosts != 1 || connections != 1)
		abort();
}

static char *line(char **at)
{
	char *s = *at, *lf = strchr(s, '\n');
	*at = lf ? lf + 1 : s + strlen(s);
	if (lf)
		*lf = '\0';
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xstrndup((const char *)data, size);
	char *at = text, *words[WORDS] = {NULL}, *first = line(&at), *rest = NULL;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = strtok_r(i ? NULL : first, " ", &rest);
	struct proxy_fields f = PROXY_FIELDS_INIT;
	while (*at) {
		char *name = line(&at), *colon = strchr(name, ':');
		if (colon)
			*colon = '\0';
		if (proxy_fields_add(&f, name, colon ? colon + 1 : "") == -ENOBUFS)
			break;
	}
	struct proxy_target t;
	const char *host = words[2] ? words[2] : "";
	if (!proxy_by_name(host, &t))
		t = (struct proxy_target){
		        .session = "ses_01jd0000000000000000000000", .port = 3000};
	proxy_answer_head(&t, &f, on_answer, &t);
	const struct proxy_request q = {.target = &t,
	        .method = words[0] ? words[0] : "",
	        .path = words[1] ? words[1] : "",
	        .host = host,
	        .upgrade = size % 3 ? NULL : "websocket",
	        .chunked = size % 2,
	        .fields = &f};
	auto_buf struct buf head = BUF_INIT(PROXY_REQUEST_MAX);
	/* The Host of a name has been a header's value before. */
	if (proxy_fields_add(&f, "Host", host) == 0 && proxy_request_head(&q, &head) == 0)
		look_at_request(&head);
	proxy_fields_done(&f);
	return 0;
}
