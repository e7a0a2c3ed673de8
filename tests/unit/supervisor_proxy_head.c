/* What goes into a jail, what comes out of it, and whose pages may ask. */
#include "supervisor/proxy_head.h"

#include "base/mem.h"
#include "tests/t.h"

#define ID "01jd0000000000000000000000"

static void names(void)
{
	static const struct {
		const char *host;
		unsigned port; /* 0: not one */
	} rows[] = {
	        {"3000--ses_" ID ".localhost", 3000},
	        {"3000--ses-" ID ".localhost:8080", 3000},
	        {"3000--SES-01JD0000000000000000000000.Example.com", 3000},
	        {"1--ses-" ID ".a", 1},
	        {"65536--ses-" ID ".a", 0},
	        {"0--ses-" ID ".a", 0},
	        {"3000--ses-" ID, 0},
	        {"3000--ses-" ID ":80", 0},
	        {"3000--run-" ID ".a", 0},
	        {"3000-ses-" ID ".a", 0},
	        {"--ses-" ID ".a", 0},
	        {"3000--ses-01jd.a", 0},
	        {"3000--ses-" ID "0.a", 0},
	        {"3000--.a", 0},
	        {"x3000--ses-" ID ".a", 0},
	        {"localhost", 0},
	        {"", 0},
	        {NULL, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct proxy_target t = {.port = 0};
		bool is = proxy_by_name(rows[i].host, &t);
		ok(is == (rows[i].port != 0) &&
		                (!is || (t.port == rows[i].port && t.form == PROXY_BY_NAME &&
		                                strcmp(t.session, "ses_" ID) == 0)),
		        "%s: %s", rows[i].host ? rows[i].host : "no Host", is ? "a port" : "none");
	}
}

static void pages(void)
{
	static const char host[] = "3000--ses-" ID ".localhost:8080";
	static const struct {
		const char *what, *origin, *site, *mode, *method;
		bool api, own;
	} rows[] = {
	        {"a program", NULL, NULL, NULL, "POST", true, true},
	        {"an address that was typed", NULL, "none", "navigate", "GET", true, true},
	        {"its own page", NULL, "same-origin", "cors", "GET", false, true},
	        {"its own page's form", "http://3000--ses-" ID ".localhost:8080", "same-origin",
	                "navigate", "POST", false, true},
	        {"a page of the next port", "http://3001--ses-" ID ".localhost:8080", "same-site",
	                "cors", "POST", false, false},
	        {"the same name on another port", "http://3000--ses-" ID ".localhost:80", NULL,
	                NULL, "GET", false, false},
	        {"a sandboxed page", "null", NULL, NULL, "POST", false, false},
	        {"another site's image", NULL, "cross-site", "no-cors", "GET", false, false},
	        {"another site's form", NULL, "cross-site", "navigate", "POST", false, false},
	        {"another site's link", NULL, "cross-site", "navigate", "GET", false, true},
	        {"an origin that is no URL", "3000--ses-" ID ".localhost:8080", NULL, NULL, "GET",
	                false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct proxy_page p = {
		        rows[i].origin, rows[i].site, rows[i].mode, rows[i].method, host};
		ok(!proxy_no_page(&p) == rows[i].api && !proxy_own_page(&p) == rows[i].own, "%s",
		        rows[i].what);
	}
}

static const char *head(struct proxy_request *q, struct buf *b)
{
	static const char *const fields[][2] = {{"Host", "front:1"}, {"A", "b"},
	        {"Connection", "close, X-Hop"}, {"connection", "Y-Hop"}, {"X-Hop", "1"},
	        {"y-hop", "1"}, {"Keep-Alive", "1"}, {"TE", "trailers"},
	        {"Transfer-Encoding", "chunked"}, {"Upgrade", "websocket"},
	        {"Expect", "100-continue"}, {"Cookie", "c"}, {"Authorization", "a"},
	        {"X-Forwarded-Prefix", "/evil"}, {"Content-Length", "5"}};
	struct proxy_fields f = PROXY_FIELDS_INIT;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		must(proxy_fields_add(&f, fields[i][0], fields[i][1]) == 0, "%s", fields[i][0]);
	q->fields = &f;
	buf_clear(b);
	int r = proxy_request_head(q, b);
	proxy_fields_done(&f);
	return r < 0 ? NULL : b->p;
}

static void requests(void)
{
	auto_buf struct buf b = BUF_INIT(PROXY_REQUEST_MAX);
	struct proxy_target t = {.form = PROXY_BY_PATH, .session = "ses_" ID, .port = 3000};
	struct proxy_request q = {.target = &t, .method = "GET", .path = "/a?b", .host = "front:1"};
	is_str(head(&q, &b),
	        "GET /a?b HTTP/1.1\r\nHost: localhost:3000\r\nA: b\r\nContent-Length: 5\r\n"
	        "X-Forwarded-Prefix: /v1/sessions/ses_" ID "/ports/3000\r\n"
	        "X-Forwarded-Host: front:1\r\nConnection: close\r\n\r\n",
	        "by path");
	t.form = PROXY_BY_NAME;
	q.upgrade = "websocket";
	q.chunked = true;
	is_str(head(&q, &b),
	        "GET /a?b HTTP/1.1\r\nHost: front:1\r\nA: b\r\nCookie: c\r\nAuthorization: a\r\n"
	        "X-Forwarded-Prefix: /evil\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
	        "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	        "by name");
	static const struct {
		const char *method, *path, *upgrade;
	} bad[] = {{"CONNECT", "/", NULL}, {"", "/", NULL}, {"A B", "/", NULL}, {"GET", "*", NULL},
	        {"GET", "", NULL}, {"GET", "/a b", NULL}, {"GET", "/\r\nX: y", NULL},
	        {"GET", "/\x7f", NULL}, {"GET", "/", "a\r\nb"}, {"GET", "/", "a b"}};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		q.method = bad[i].method;
		q.path = bad[i].path;
		q.upgrade = bad[i].upgrade;
		ok(!head(&q, &b), "'%s %s' is not sent on", bad[i].method,
		        i == 6 ? "CR LF" : bad[i].path);
	}
}

static void note(void *ctx, const char *name, const char *value)
{
	buf_printf(ctx, "%s: %s\n", name, value);
}

static const char *answer(
        enum proxy_form form, const char *const (*fields)[2], size_t n, struct buf *b)
{
	struct proxy_target t = {.form = form, .session = "ses_" ID, .port = 3000};
	struct proxy_fields f = PROXY_FIELDS_INIT;
	for (size_t i = 0; i < n; i++)
		must(proxy_fields_add(&f, fields[i][0], fields[i][1]) == 0, "%s", fields[i][0]);
	buf_clear(b);
	proxy_answer_head(&t, &f, note, b);
	proxy_fields_done(&f);
	return b->p;
}

static void answers(void)
{
	static const char *const fields[][2] = {{"Content-Type", "text/html"},
	        {"Connection", "X-Hop"}, {"X-Hop", "1"}, {"Transfer-Encoding", "chunked"},
	        {"Content-Length", "5"}, {"Set-Cookie", "a=b; Path=/"},
	        {"Set-Cookie", "a=b; HttpOnly;domain=localhost"}, {"Set-Cookie", "a=domain=b"},
	        {"Alt-Svc", "x"}, {"Clear-Site-Data", "*"}, {"Strict-Transport-Security", "x"},
	        {"Refresh", "0; url=/v1/runs"}, {"Service-Worker-Allowed", "/"},
	        {"Access-Control-Allow-Origin", "*"}, {"Location", "/b"}};
	auto_buf struct buf b = BUF_INIT(10000);
	is_str(answer(PROXY_BY_PATH, fields, ARRAY_LEN(fields), &b),
	        "Content-Type: text/html\nLocation: /v1/sessions/ses_" ID "/ports/3000/b\n"
	        "Content-Security-Policy: sandbox\nX-Content-Type-Options: nosniff\n",
	        "by path");
	is_str(answer(PROXY_BY_NAME, fields, ARRAY_LEN(fields), &b),
	        "Content-Type: text/html\nSet-Cookie: a=b; Path=/\nSet-Cookie: a=domain=b\n"
	        "Refresh: 0; url=/v1/runs\nService-Worker-Allowed: /\n"
	        "Access-Control-Allow-Origin: *\nLocation: /b\n",
	        "by name");
	static const char *const places[][3] = {{"Location", "http://LocalHost:3000/x", "P/x"},
	        {"Location", "http://127.0.0.1:3000", "P"},
	        {"Location", "http://[::1]:3000/?a", "P/?a"}, {"Location", "//evil/x", NULL},
	        {"Location", "http://localhost:30001/", NULL},
	        {"Location", "https://localhost:3000/", NULL}, {"Location", "x/y", NULL},
	        {"X-Location", "/x", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *const one[][2] = {{places[i][0], places[i][1]}};
		const char *got = answer(PROXY_BY_PATH, one, 1, &b);
		auto_free char *want = places[i][2]
		                               ? xasprintf("/v1/sessions/ses_" ID "/ports/3000%s\n",
		                                         places[i][2] + 1)
		                               : xasprintf("%s: %s\n", places[i][0], places[i][1]);
		ok(strstr(got, want) != NULL, "%s: %s", places[i][0], places[i][1]);
	}
}

static void fields(void)
{
	static const char *const bad[][2] = {{"", "x"}, {"A B", "x"}, {"A ", "x"}, {"A\n", "x"},
	        {"A", "x\r\ny"}, {"A", "x\x01"}, {"A", "\x7f"}, {"\xc3\xa9", "x"}};
	struct proxy_fields f = PROXY_FIELDS_INIT;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(proxy_fields_add(&f, bad[i][0], bad[i][1]) == -EBADMSG, "field %zu is none", i);
	ok(proxy_fields_add(&f, "A", "x\ty \xc3\xa9") == 0, "a tab and other letters are fine");
	int r = 0, n = 0;
	for (; r == 0 && n < 1000; n++)
		r = proxy_fields_add(&f, "A", "b");
	ok(r == -ENOBUFS && n <= PROXY_FIELDS, "%d are too many", n);
	proxy_fields_clear(&f);
	auto_free char *large = xcalloc(1, PROXY_FIELDS_MAX + 1);
	memset(large, 'x', PROXY_FIELDS_MAX);
	ok(proxy_fields_add(&f, "A", large) == -ENOBUFS, "or too large");
	proxy_fields_done(&f);
}

int main(void)
{
	names();
	pages();
	requests();
	answers();
	fields();
	return done();
}
