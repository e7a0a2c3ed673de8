/* Heads of requests: what is taken, what is refused, and why. */
#include "egress/http.h"

#include "base/mem.h"
#include "tests/t.h"

#define H "Host: a.agentbox\r\n"

static int parse(const char *text, struct http_head *h, struct err *e)
{
	int n = http_head_length(text, strlen(text), 0);
	return n <= 0 ? n - 1000 : http_request_parse(text, (size_t)n, h, e);
}

static bool text_is(struct http_text t, const char *want)
{
	return t.n == strlen(want) && !memcmp(t.p, want, t.n);
}

static void test_taken(void)
{
	struct http_head h;
	struct err e;
	must(parse("POST /v1/m?x=%2e HTTP/1.1\r\nhOsT: a.agentbox.:80\r\nContent-Length:\t12 "
	           "\r\nA:\r\n\r\nrest",
	             &h, &e) == 0,
	        "a request");
	ok(text_is(h.method, "POST") && text_is(h.target, "/v1/m?x=%2e"), "method and target");
	ok(text_is(h.host, "a.agentbox") && h.port == 80, "host without its dot, port");
	ok(h.content_length == 12 && !h.chunked && h.keep_alive && h.minor == 1,
	        "body and persistence");
	ok(h.nfields == 3 && text_is(h.fields[1].value, "12") && h.fields[2].value.n == 0,
	        "fields, trimmed");
	ok(parse("GET / HTTP/1.1\r\n" H "Connection: foo, Close\r\n\r\n", &h, &e) == 0 &&
	                !h.keep_alive,
	        "close in a list");
	ok(parse("GET / HTTP/1.0\r\n" H "\r\n", &h, &e) == 0 && !h.keep_alive, "HTTP/1.0 closes");
	ok(h.port == HTTP_NO_PORT, "a Host without a port");
	ok(parse("GET / HTTP/1.0\r\n" H "Connection: keep-alive\r\n\r\n", &h, &e) == 0 &&
	                h.keep_alive,
	        "unless asked");
	ok(parse("POST / HTTP/1.1\r\n" H
	         "Transfer-Encoding: Chunked\r\nExpect: 100-Continue\r\n\r\n",
	           &h, &e) == 0 &&
	                h.chunked && h.expect_continue,
	        "chunked, expecting");
	ok(parse("GET / HTTP/1.1\r\n" H "Upgrade: h2c\r\n\r\n", &h, &e) == 0 && h.upgrade,
	        "an upgrade is seen");
	ok(parse("GET /a/.b/c..d/.../%40a%2fb/..%/.%zz/;..?/../ HTTP/1.1\r\n" H "\r\n", &h, &e) ==
	                0,
	        "dots that are no dot segments");
	static const char old[] = "GET http://a/ HTTP/1.0\r\n\r\n";
	ok(http_head_parse(old, sizeof(old) - 1, &h, &e) == 0 && !h.host.p,
	        "a head may be well-formed that no jail may send");
	struct http_field f[2] = {{{"Connection", 10}, {"x-a , X-B", 9}}, {{"X-B", 3}, {"1", 1}}};
	ok(http_hop_by_hop(f[1].name, f, 2) && http_hop_by_hop((struct http_text){"TE", 2}, f, 0) &&
	                !http_hop_by_hop((struct http_text){"x", 1}, f, 2),
	        "fields of one connection only");
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		int code;
		const char *what;
	} all[] = {
	        {"GET / HTTP/1.1\r\n\r\n", -EINVAL, "no Host"},
	        {"GET / HTTP/1.0\r\n\r\n", -EINVAL, "no Host in HTTP/1.0 either"},
	        {"GET / HTTP/1.1\r\n" H H "\r\n", -EINVAL, "two Hosts"},
	        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", -EINVAL, "a Host with a blank"},
	        {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", -EINVAL, "a Host with a user"},
	        {"GET / HTTP/1.1\r\nHost: a:8o\r\n\r\n", -EINVAL, "a port that is none"},
	        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", -EINVAL, "an empty Host"},
	        {"GET / HTTP/1.1\n" H "\r\n\r\n", -EINVAL, "a bare line feed"},
	        {"GET / HTTP/1.1\r\n" H "a: b\rc\r\n\r\n", -EINVAL, "a bare carriage return"},
	        {"GET / HTTP/1.1\r\n" H "a: 1\r\n b\r\n\r\n", -EINVAL, "a folded line"},
	        {"GET / HTTP/1.1\r\n" H "a : 1\r\n\r\n", -EINVAL, "a blank before the colon"},
	        {"GET / HTTP/1.1\r\n" H "a\r\n\r\n", -EINVAL, "a line without a colon"},
	        {"GET / HTTP/1.1\r\n" H ": a\r\n\r\n", -EINVAL, "a field without a name"},
	        {"GET / HTTP/1.1\r\n" H "a: \x01\r\n\r\n", -EINVAL, "a control character"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", -EINVAL,
	                "two lengths"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", -EINVAL,
	                "a list of lengths"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", -EINVAL, "a signed length"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", -EINVAL, "an empty length"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length: 9999999999999999999999\r\n\r\n", -EINVAL,
	                "an endless length"},
	        {"GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	                -EINVAL, "length and chunks"},
	        {"GET / HTTP/1.1\r\n" H
	         "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	                -EINVAL, "chunks twice"},
	        {"GET / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", -EINVAL,
	                "chunks in HTTP/1.0"},
	        {"GET / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", -EOPNOTSUPP,
	                "another coding"},
	        {"GET / HTTP/1.1\r\n" H "Expect: more\r\n\r\n", -EOPNOTSUPP, "another expectation"},
	        {"CONNECT a:443 HTTP/1.1\r\n" H "\r\n", -EACCES, "CONNECT"},
	        {"GET http://a/ HTTP/1.1\r\n" H "\r\n", -EACCES, "an absolute target"},
	        {"OPTIONS * HTTP/1.1\r\n" H "\r\n", -EACCES, "no target"},
	        {"PRI * HTTP/2.0\r\n\r\n", -EACCES, "HTTP/2 with prior knowledge"},
	        {"GET / HTTP/1.2\r\n" H "\r\n", -EPROTONOSUPPORT, "a version of the future"},
	        {"GET / HTTP/11\r\n" H "\r\n", -EINVAL, "a version that is none"},
	        {"GET /a b HTTP/1.1\r\n" H "\r\n", -EINVAL, "a blank in the target"},
	        {"GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n", -EINVAL, "a target that is not ASCII"},
	        {"GET /a#b HTTP/1.1\r\n" H "\r\n", -EINVAL, "a fragment"},
	        {"GET /a/../b HTTP/1.1\r\n" H "\r\n", -EINVAL, "two dots"},
	        {"GET /a/%2E%2e HTTP/1.1\r\n" H "\r\n", -EINVAL, "two encoded dots"},
	        {"GET /.%2e/b HTTP/1.1\r\n" H "\r\n", -EINVAL, "half encoded dots"},
	        {"GET /./b HTTP/1.1\r\n" H "\r\n", -EINVAL, "one dot"},
	        {"GET /..%2fb HTTP/1.1\r\n" H "\r\n", -EINVAL, "two dots and an encoded slash"},
	        {"GET /a%2F..%2fb HTTP/1.1\r\n" H "\r\n", -EINVAL, "between two of them"},
	        {"GET /a%5c..%5Cb HTTP/1.1\r\n" H "\r\n", -EINVAL, "between encoded backslashes"},
	        {"GET /..;/b HTTP/1.1\r\n" H "\r\n", -EINVAL, "two dots with parameters"},
	        {"GET /%2e.%3Bx=1/b HTTP/1.1\r\n" H "\r\n", -EINVAL, "encoded, too"},
	        {"GET /..%00/b HTTP/1.1\r\n" H "\r\n", -EINVAL, "two dots and NUL"},
	        {"GET\t/ HTTP/1.1\r\n" H "\r\n", -EINVAL, "a tab for a blank"},
	        {"G\"T / HTTP/1.1\r\n" H "\r\n", -EINVAL, "a method that is no token"},
	        {"\r\nGET / HTTP/1.1\r\n" H "\r\n", -EINVAL, "an empty line in front"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct http_head h;
		struct err e = {0};
		int r = parse(all[i].text, &h, &e);
		ok(r == all[i].code && e.code == r && e.text[0], "%s: %d %s", all[i].what, r,
		        e.text);
	}
}

static void test_limits(void)
{
	char big[HTTP_HEAD_MAX + 16], fields[8192] = "GET / HTTP/1.1\r\n" H;
	memset(big, 'a', sizeof(big));
	ok(http_head_length(big, HTTP_HEAD_MAX, 0) == 0, "a head that may still end");
	ok(http_head_length(big, sizeof(big), 0) == -E2BIG, "a head that may not");
	memcpy(big + HTTP_HEAD_MAX - 4, "\r\n\r\n", 4);
	ok(http_head_length(big, sizeof(big), 0) == HTTP_HEAD_MAX, "the longest head");
	ok(http_head_length(big, sizeof(big), HTTP_HEAD_MAX - 2) == HTTP_HEAD_MAX,
	        "its end is found across two reads");
	for (int i = 0; i < HTTP_FIELDS; i++)
		strcat(fields, "a: 1\r\n");
	strcat(fields, "\r\n");
	struct http_head h;
	struct err e;
	ok(parse(fields, &h, &e) == -E2BIG, "too many fields");
}

int main(void)
{
	test_taken();
	test_refused();
	test_limits();
	return done();
}
