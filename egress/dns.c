#include "egress/dns.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* RFC 1035, RFC 6891 (OPT), RFC 9619 (exactly one question). */
enum { DNS_HEAD = 12, DNS_WIRE_NAME = 255, DNS_LABEL = 63 };
enum { TYPE_A = 1, TYPE_OPT = 41, TYPE_IXFR = 251, TYPE_AXFR = 252, CLASS_IN = 1 };
enum { RCODE_OK = 0, RCODE_FORMERR = 1, RCODE_NOTIMP = 4, RCODE_REFUSED = 5 };
enum { FLAG_QR = 0x80, FLAG_RD = 0x01, FLAG_AA = 0x04, FLAG_RA = 0x80 };

struct question {
	size_t bytes; /* name, type and class in the query */
	uint16_t type, class;
	bool plain;      /* labels are host name characters only */
	size_t host_len; /* without the final dot */
	char host[DNS_WIRE_NAME + 1];
};

static uint16_t u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/* One question at p.  A compression pointer has nothing to point at in a first question, so
 * any byte above 63 is malformed: loops cannot arise. */
static bool parse_question(const uint8_t *p, size_t n, struct question *q)
{
	size_t at = 0, len = 0;
	q->plain = true;
	for (;;) {
		if (at >= n || p[at] > DNS_LABEL || at + 1 + p[at] > DNS_WIRE_NAME)
			return false;
		size_t label = p[at++];
		if (label == 0)
			break;
		if (label > n - at)
			return false;
		if (len)
			q->host[len++] = '.';
		for (size_t i = 0; i < label; i++) {
			uint8_t c = p[at + i];
			if (c <= 0x20 || c >= 0x7f || c == '.' || c == '\\' || c == '"')
				q->plain = false;
			q->host[len++] = (char)c;
		}
		at += label;
	}
	if (n - at < 4)
		return false;
	q->host_len = len;
	q->type = u16(p + at);
	q->class = u16(p + at + 2);
	q->bytes = at + 4;
	return true;
}

static void write_name(const struct question *q, char to[DNS_NAME_TEXT])
{
	size_t at = 0;
	if (q->host_len == 0)
		(void)str_copy(to, DNS_NAME_TEXT, ".");
	for (size_t i = 0; i < q->host_len; i++) {
		unsigned char c = (unsigned char)q->host[i];
		if (at + 8 > DNS_NAME_TEXT) {
			memcpy(to + at, "...", 4);
			return;
		}
		if (c > 0x20 && c < 0x7f && c != '\\' && c != '"')
			to[at++] = (char)c;
		else
			at += (size_t)snprintf(to + at, 5, "\\%03u", c);
		to[at] = '\0';
	}
}

/* Header and, where it could be read, the question as it came (its letter case included). */
static uint8_t *begin(struct dns_reply *r, const uint8_t *query, unsigned rcode, size_t question)
{
	uint8_t *p = r->bytes;
	memcpy(p, query, 2);
	p[2] = (uint8_t)(FLAG_QR | (query[2] & 0x78) | (query[2] & FLAG_RD) |
	                 (rcode == RCODE_OK ? FLAG_AA : 0));
	p[3] = (uint8_t)(FLAG_RA | rcode);
	memset(p + 4, 0, 8);
	p[5] = question ? 1 : 0;
	memcpy(p + DNS_HEAD, query + DNS_HEAD, question);
	return p + DNS_HEAD + question;
}

static uint8_t *put_address(struct dns_reply *r, uint8_t *p, uint32_t address)
{
	r->bytes[7] = 1;
	p = put16(p, 0xc000 | DNS_HEAD); /* the name of the question */
	p = put16(p, TYPE_A);
	p = put16(p, CLASS_IN);
	p = put16(p, 0);
	p = put16(p, DNS_TTL_S);
	p = put16(p, 4);
	p = put16(p, address >> 16);
	return put16(p, address & 0xffff);
}

/* Whoever sent an OPT record gets one back (RFC 6891, 6.1.1); its options are not looked at. */
static uint8_t *put_opt(struct dns_reply *r, uint8_t *p, const uint8_t *query, size_t n, size_t end)
{
	bool asked = u16(query + 10) == 1 && u16(query + 6) == 0 && u16(query + 8) == 0 &&
	             n - end >= 11 && query[end] == 0 && u16(query + end + 1) == TYPE_OPT;
	if (!asked)
		return p;
	r->bytes[11] = 1;
	*p++ = 0;
	p = put16(p, TYPE_OPT);
	p = put16(p, 1232); /* what fits every path (DNS flag day 2020) */
	memset(p, 0, 6);
	return p + 6;
}

void dns_answer(struct names *t, const uint8_t *query, size_t n, struct dns_reply *ret)
{
	struct question q;
	ret->verdict = DNS_DROP;
	ret->n = 0;
	ret->name[0] = '\0';
	if (n < DNS_HEAD || query[2] & FLAG_QR)
		return; /* answering an answer could start an endless exchange */
	ret->verdict = DNS_MALFORMED;
	unsigned bad = query[2] & 0x78 ? RCODE_NOTIMP : RCODE_FORMERR;
	if (bad == RCODE_NOTIMP || u16(query + 4) != 1 ||
	        !parse_question(query + DNS_HEAD, n - DNS_HEAD, &q)) {
		ret->n = (size_t)(begin(ret, query, bad, 0) - ret->bytes);
		return;
	}
	write_name(&q, ret->name);
	uint32_t address = 0;
	int r = q.plain ? names_address(t, q.host, q.host_len, &address) : -ENOENT;
	bool ours = r == 0 && q.class == CLASS_IN && q.type != TYPE_AXFR && q.type != TYPE_IXFR;
	uint8_t *p = begin(ret, query, ours ? RCODE_OK : RCODE_REFUSED, q.bytes);
	if (ours && q.type == TYPE_A)
		p = put_address(ret, p, address);
	p = put_opt(ret, p, query, n, DNS_HEAD + q.bytes);
	ret->verdict = ours ? DNS_ANSWERED : r == -ENOSPC ? DNS_FULL : DNS_REFUSED;
	ret->n = (size_t)(p - ret->bytes);
}
