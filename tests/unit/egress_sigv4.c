/* Signature Version 4: the examples that its authors have published for S3. */
#include "egress/sigv4.h"
#include "base/mem.h"
#include "tests/t.h"

#define HOST  "examplebucket.s3.amazonaws.com"
#define STAMP "20130524T000000Z"
enum { AT_S = 1369353600 };

static const struct sigv4_keys keys = {.access = "AKIAIOSFODNN7EXAMPLE",
        .naccess = 20,
        .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .nsecret = 40,
        .region = "us-east-1"};
static struct err e;

static const char *signature(const char *method, const char *path, const char *query,
        const struct sigv4_field *fields, size_t n, const char *payload)
{
	static struct buf b = BUF_INIT(4096);
	const struct sigv4_request r = {.method = method,
	        .path = path,
	        .query = query,
	        .fields = fields,
	        .nfields = n,
	        .payload = payload,
	        .at_ms = AT_S * 1000LL};
	buf_clear(&b);
	must(sigv4_authorize(&keys, &r, &b, &e) == 0, "%s %s is signed", method, path);
	const char *at = strstr(b.p, "Signature=");
	return at ? at + strlen("Signature=") : "none";
}

static void headers(void)
{
	static const struct sigv4_field part[] = {{"host", HOST}, {"range", "bytes=0-9"},
	        {"x-amz-content-sha256", SIGV4_EMPTY}, {"x-amz-date", STAMP}};
	static const char body[] =
	        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
	static const struct sigv4_field put[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
	        {"host", HOST}, {"x-amz-content-sha256", body}, {"x-amz-date", STAMP},
	        {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
	static const struct sigv4_field plain[] = {
	        {"host", HOST}, {"x-amz-content-sha256", SIGV4_EMPTY}, {"x-amz-date", STAMP}};
	is_str(signature("GET", "/test.txt", "", part, ARRAY_LEN(part), SIGV4_EMPTY),
	        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41", "GET, a part");
	is_str(signature("PUT", "/test%24file.text", "", put, ARRAY_LEN(put), body),
	        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
	        "PUT, a name that is encoded");
	is_str(signature("GET", "/", "lifecycle=", plain, ARRAY_LEN(plain), SIGV4_EMPTY),
	        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
	        "a query without a value");
	is_str(signature("GET", "/", "max-keys=2&prefix=J", plain, ARRAY_LEN(plain), SIGV4_EMPTY),
	        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
	        "a query with values");
}

static void links(void)
{
	auto_buf struct buf b = BUF_INIT(4096), c = BUF_INIT(4096), few = BUF_INIT(64);
	must(sigv4_link(&keys, HOST, "/test.txt", "", AT_S * 1000LL, 86400, &b, &e) == 0, "a link");
	is_str(b.p,
	        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
	        "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
	        "&X-Amz-SignedHeaders=host&X-Amz-Signature="
	        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
	        "is that of the example");
	must(sigv4_link(&keys, HOST, "/x", "a/b+c=", AT_S * 1000LL, 60, &c, &e) == 0,
	        "one with a token");
	ok(strstr(c.p, "&X-Amz-Security-Token=a%2Fb%2Bc%3D&X-Amz-SignedHeaders=host&"),
	        "which is encoded, in its place");
	ok(sigv4_link(&keys, HOST, "/x", "", 0, 60, &few, &e) == -ENOBUFS, "one that does not fit");
}

static void encoding(void)
{
	static const char odd[] = "a b/\xc3\xa9\n%2f~'(*)";
	auto_buf struct buf b = BUF_INIT(256);
	sigv4_encode(&b, odd, strlen(odd), true);
	is_str(b.p, "a%20b/%C3%A9%0A%252f~%27%28%2A%29", "a path");
	buf_clear(&b);
	sigv4_encode(&b, "a/b", 3, false);
	is_str(b.p, "a%2Fb", "a value");
}

int main(void)
{
	headers();
	links();
	encoding();
	return done();
}
