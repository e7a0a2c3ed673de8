/* The jail's resolver: what is answered, refused, dropped, byte for byte. */
#include "egress/dns.h"

#include "base/mem.h"
#include "proto/egress.h"
#include "tests/t.h"

static struct names names(void)
{
	struct policy p = {.name = "default", .ninject = 2};
	(void)str_copy(p.inject[0].host, sizeof(p.inject[0].host), "anthropic.agentbox");
	(void)str_copy(p.inject[1].host, sizeof(p.inject[1].host), "openai.agentbox");
	(void)str_copy(p.rules[0].host, sizeof(p.rules[0].host), ".cdn.example");
	p.rules[0].nports = 1;
	p.rules[0].ports[0] = 443;
	p.nrules = 1;
	struct names t;
	struct rulebook *b = rulebook_new(&p);
	names_init(&t, 7, NULL);
	names_follow(&t, b, "");
	rulebook_unref(b);
	return t;
}

/* Header with one question of this name (labels written as "\3abc"), type and class IN. */
static size_t query(uint8_t *p, const char *labels, size_t n, unsigned type)
{
	static const uint8_t head[12] = {0xab, 0xcd, 1, 0, 0, 1};
	memcpy(p, head, 12);
	memcpy(p + 12, labels, n);
	memcpy(p + 12 + n, (const uint8_t[]){0, (uint8_t)(type >> 8), (uint8_t)type, 0, 1}, 5);
	return 12 + n + 5;
}

#define ANTHROPIC          "\11anthropic\10agentbox"
#define Q(p, labels, type) query(p, labels, sizeof(labels) - 1, type)

static void test_types(struct names *t)
{
	static const struct {
		unsigned type;
		enum dns_verdict verdict;
		unsigned rcode, answers;
	} all[] = {
	        {1, DNS_ANSWERED, 0, 1},
	        {28, DNS_ANSWERED, 0, 0},
	        {5, DNS_ANSWERED, 0, 0},
	        {16, DNS_ANSWERED, 0, 0},
	        {65, DNS_ANSWERED, 0, 0},
	        {255, DNS_ANSWERED, 0, 0},
	        {252, DNS_REFUSED, 5, 0},
	        {251, DNS_REFUSED, 5, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		uint8_t p[64];
		struct dns_reply r;
		size_t n = Q(p, ANTHROPIC, all[i].type);
		dns_answer(t, p, n, &r);
		ok(r.verdict == all[i].verdict && (r.bytes[3] & 15u) == all[i].rcode &&
		                r.bytes[7] == all[i].answers,
		        "type %u of a known name", all[i].type);
		ok(r.bytes[0] == 0xab && r.bytes[1] == 0xcd && r.bytes[2] & 0x80,
		        "carries the id back, as an answer");
	}
}

static void test_names(struct names *t)
{
	uint8_t p[512];
	struct dns_reply r;
	dns_answer(t, p, Q(p, "\6OPENai\10AgentBox", 1), &r);
	static const uint8_t address[] = {0, 4, 198, 18, 1, 1};
	ok(r.verdict == DNS_ANSWERED && !memcmp(r.bytes + r.n - 6, address, 6),
	        "case is ignored; name 1 has address 1");
	ok(!memcmp(r.bytes + 12, p + 12, 12), "and kept in the answer");
	dns_answer(t, p, Q(p, "\10registry\7example", 1), &r);
	ok(r.verdict == DNS_REFUSED && (r.bytes[3] & 15) == 5, "another name is refused");
	is_str(r.name, "registry.example", "and named");
	dns_answer(t, p, Q(p, "\1x" ANTHROPIC, 1), &r);
	ok(r.verdict == DNS_REFUSED, "a name below one of ours is not ours");
	dns_answer(t, p, Q(p, "\22anthropic.agentbox", 1), &r);
	ok(r.verdict == DNS_REFUSED, "one label with a dot in it is not two labels");
	is_str(r.name, "anthropic.agentbox", "though it reads alike");
	dns_answer(t, p, Q(p, "", 2), &r);
	ok(r.verdict == DNS_REFUSED, "the root is refused");
	is_str(r.name, ".", "and named");
	dns_answer(t, p, Q(p, "\4a\1\n\"", 1), &r);
	is_str(r.name, "a\\001\\010\\034", "bytes that cannot be printed are escaped");
	struct names none = names();
	names_follow(&none, none.book, "nothing goes out of this jail");
	dns_answer(&none, p, Q(p, ANTHROPIC, 1), &r);
	ok(r.verdict == DNS_REFUSED, "a jail without names has none");
	names_done(&none);
	size_t n = Q(p, ANTHROPIC, 1);
	p[n - 1] = 3;
	dns_answer(t, p, n, &r);
	ok(r.verdict == DNS_REFUSED, "class CHAOS is refused");
}

static void test_odd(struct names *t)
{
	uint8_t p[4096] = {0};
	struct dns_reply r;
	dns_answer(t, p, 0, &r);
	ok(r.verdict == DNS_DROP && r.n == 0, "nothing");
	dns_answer(t, p, 11, &r);
	ok(r.verdict == DNS_DROP, "less than a header");
	dns_answer(t, p, 12, &r);
	ok(r.verdict == DNS_MALFORMED && (r.bytes[3] & 15) == 1 && r.n == 12, "no question");
	size_t n = Q(p, ANTHROPIC, 1);
	p[5] = 2;
	dns_answer(t, p, n, &r);
	ok(r.verdict == DNS_MALFORMED && (r.bytes[3] & 15) == 1, "two questions");
	n = Q(p, ANTHROPIC, 1);
	p[2] |= 0x80;
	dns_answer(t, p, n, &r);
	ok(r.verdict == DNS_DROP, "an answer is not answered");
	p[2] = 0x28;
	dns_answer(t, p, n, &r);
	ok(r.verdict == DNS_MALFORMED && (r.bytes[3] & 15) == 4, "an update is not implemented");
	n = Q(p, "\xc0\x0c", 1);
	dns_answer(t, p, n, &r);
	ok(r.verdict == DNS_MALFORMED, "a pointer to itself");
	n = Q(p, ANTHROPIC, 1);
	for (size_t i = 12; i < n; i++) {
		dns_answer(t, p, i, &r);
		if (r.verdict != DNS_MALFORMED)
			break;
		if (i == n - 1)
			ok(1, "cut anywhere it is malformed");
	}
	memset(p + 12, 1, sizeof(p) - 12);
	dns_answer(t, p, sizeof(p), &r);
	ok(r.verdict == DNS_MALFORMED, "a name of 4 KiB");
	for (int i = 0; i < 4; i++) {
		p[12 + 64 * i] = 63;
		memset(p + 13 + 64 * i, 'a', 63);
	}
	p[12 + 192] = 61; /* 3 * 64 + 62 + 1 = 255: the longest name there is */
	p[12 + 254] = 0;
	dns_answer(t, p, 12 + 255 + 4, &r);
	ok(r.verdict == DNS_REFUSED && r.n <= DNS_ANSWER_MAX, "the longest name");
	ok(strlen(r.name) < DNS_NAME_TEXT && !strcmp(r.name + strlen(r.name) - 3, "..."),
	        "is cut for people");
	p[12 + 192] = 62;
	p[12 + 255] = 0;
	dns_answer(t, p, 12 + 256 + 4, &r);
	ok(r.verdict == DNS_MALFORMED, "one byte more is malformed");
}

static void test_opt(struct names *t)
{
	uint8_t p[256];
	struct dns_reply r;
	size_t n = Q(p, ANTHROPIC, 1);
	p[11] = 1;
	/* EDNS with a cookie (option 10). */
	static const uint8_t opt[] = {
	        0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
	memcpy(p + n, opt, sizeof(opt));
	dns_answer(t, p, n + sizeof(opt), &r);
	ok(r.verdict == DNS_ANSWERED && r.bytes[11] == 1 && r.n == n + 16 + 11,
	        "OPT is answered by OPT, without options");
	dns_answer(t, p, n + 5, &r);
	ok(r.verdict == DNS_ANSWERED && r.bytes[11] == 0, "a cut one is ignored");
	p[11] = 0;
	dns_answer(t, p, n + sizeof(opt), &r);
	ok(r.verdict == DNS_ANSWERED && r.bytes[11] == 0, "so are bytes after the question");
}

static uint32_t address(const struct dns_reply *r)
{
	const uint8_t *p = r->bytes + r->n - 4;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Names below a suffix: each its own address, always the same one, up to a bound. */
static void test_suffix(struct names *t)
{
	uint8_t p[128];
	struct dns_reply r;
	static uint32_t seen[NAMES_MAX];
	size_t same = 0, outside = 0, refused = 0;
	dns_answer(t, p, Q(p, "\3cdn\7example", 1), &r);
	ok(r.verdict == DNS_REFUSED, "the bare suffix is refused");
	for (int i = 0; i < NAMES_MAX; i++) {
		char labels[32];
		snprintf(labels, sizeof(labels), "\6n%05d\3cdn\7example", i);
		dns_answer(t, p, query(p, labels, strlen(labels), 1), &r);
		refused += r.verdict != DNS_ANSWERED;
		seen[i] = address(&r);
		outside += seen[i] < EGRESS_NAMES || seen[i] >= EGRESS_NAMES + NAMES_SLOTS;
		for (int k = 0; k < i; k++)
			same += seen[k] == seen[i];
	}
	ok(refused == 0 && same == 0 && outside == 0, "%d names, %d addresses", NAMES_MAX,
	        NAMES_MAX);
	dns_answer(t, p, Q(p, "\4more\3cdn\7example", 1), &r);
	ok(r.verdict == DNS_FULL && (r.bytes[3] & 15) == 5, "one more is refused");
	dns_answer(t, p, Q(p, "\6N00007\3cdn\7EXAMPLE", 1), &r);
	ok(r.verdict == DNS_ANSWERED && address(&r) == seen[7], "a known one keeps its address");
	ok(names_at(t, seen[7]).kind == NAME_RULE &&
	                strcmp(names_at(t, seen[7]).host, "n00007.cdn.example") == 0,
	        "and is found by it, in lower case");
	ok(names_at(t, seen[7] ^ 1).kind == NAME_NONE || names_at(t, seen[7] ^ 1).host, "no more");
	/* Another table of the same jail: after a restart. */
	struct names again = names();
	dns_answer(&again, p, Q(p, "\6n00007\3cdn\7example", 1), &r);
	uint32_t first = address(&r);
	names_done(&again);
	again = names();
	ok(names_belong(&again, "n00007.cdn.example", 18, first),
	        "an address from before a restart is taken up");
	ok(!names_belong(&again, "n00008.cdn.example", 18, first), "by the name that had it alone");
	ok(!names_belong(&again, "other.example", 13, first + 1), "and only if a rule has it");
	names_done(&again);
}

int main(void)
{
	struct names t = names();
	test_types(&t);
	test_names(&t);
	test_odd(&t);
	test_opt(&t);
	test_suffix(&t);
	names_done(&t);
	return done();
}
