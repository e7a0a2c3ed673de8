#include "egress/hello.h"

#include <stdbool.h>
#include <string.h>

/* RFC 8446, 4.1.2 and 5.1; RFC 6066, 3. */
enum { RECORD_HANDSHAKE = 22, HANDSHAKE_CLIENT_HELLO = 1, EXT_SERVER_NAME = 0, NAME_HOST = 0 };

struct bytes {
	const uint8_t *p;
	size_t n;
	bool bad; /* sticky: something was longer than what holds it */
};

static struct bytes cut(struct bytes *b, size_t n)
{
	struct bytes part = {b->p, n, false};
	if (b->bad || n > b->n) {
		b->bad = true;
		return (struct bytes){b->p, 0, true};
	}
	b->p += n;
	b->n -= n;
	return part;
}

static size_t number(struct bytes *b, size_t width)
{
	struct bytes part = cut(b, width);
	size_t v = 0;
	for (size_t i = 0; i < part.n; i++)
		v = v << 8 | part.p[i];
	return v;
}

static struct bytes vector(struct bytes *b, size_t width)
{
	return cut(b, number(b, width));
}

/* One name and no other: of two the server might take the second. */
static bool name_from(struct bytes list, char name[POLICY_HOST_MAX])
{
	size_t kind = number(&list, 1);
	struct bytes host = vector(&list, 2);
	if (list.n || kind != NAME_HOST || host.bad || !host.n || host.n >= POLICY_HOST_MAX)
		return false;
	for (size_t i = 0; i < host.n; i++)
		if (host.p[i] <= 0x20 || host.p[i] >= 0x7f)
			return false;
	memcpy(name, host.p, host.n);
	name[host.n] = '\0';
	return true;
}

static enum hello_verdict read_body(struct bytes b, char name[POLICY_HOST_MAX])
{
	(void)cut(&b, 2 + 32); /* version, random */
	(void)vector(&b, 1);   /* session id */
	(void)vector(&b, 2);   /* cipher suites */
	(void)vector(&b, 1);   /* compression methods */
	struct bytes exts = vector(&b, 2);
	enum hello_verdict found = HELLO_NO_NAME;
	while (exts.n && !exts.bad) {
		size_t type = number(&exts, 2);
		struct bytes body = vector(&exts, 2);
		if (type != EXT_SERVER_NAME || body.bad)
			continue;
		if (found == HELLO_NAME || !name_from(vector(&body, 2), name))
			return HELLO_NO_NAME;
		found = HELLO_NAME;
	}
	return exts.bad ? HELLO_NO_NAME : found;
}

/* The handshake message in joined[have], as far as it is there. */
static enum hello_verdict read_message(
        const uint8_t *joined, size_t have, char name[POLICY_HOST_MAX])
{
	if (have < 4)
		return HELLO_MORE;
	size_t want = (size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3];
	if (joined[0] != HANDSHAKE_CLIENT_HELLO || want > HELLO_MAX - 4)
		return HELLO_NOT_TLS;
	if (have < 4 + want)
		return HELLO_MORE;
	return read_body((struct bytes){joined + 4, want, false}, name);
}

enum hello_verdict hello_read(const uint8_t *p, size_t n, char name[POLICY_HOST_MAX])
{
	uint8_t joined[HELLO_MAX];
	size_t have = 0;
	enum hello_verdict v = HELLO_MORE;
	struct bytes in = {p, n, false};
	/* A hello may be spread over several records; they are joined before it is read.  What
	 * comes after it (early data) is the server's. */
	while (v == HELLO_MORE && in.n >= 5) {
		if (in.p[0] != RECORD_HANDSHAKE || in.p[1] != 3)
			return HELLO_NOT_TLS;
		size_t len = (size_t)in.p[3] << 8 | in.p[4];
		size_t here = len < in.n - 5 ? len : in.n - 5;
		if (len == 0 || here > sizeof(joined) - have)
			return HELLO_NOT_TLS;
		memcpy(joined + have, in.p + 5, here);
		have += here;
		(void)cut(&in, 5 + here);
		v = read_message(joined, have, name);
		if (here < len)
			break;
	}
	return v == HELLO_MORE && n && p[0] != RECORD_HANDSHAKE ? HELLO_NOT_TLS : v;
}
