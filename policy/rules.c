#include "policy/rules.h"
#include "base/mem.h"
#include "policy/special.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

const char *rule_protocol_name(uint32_t protocol)
{
	static const char *const names[] = {
	        [RULE_TLS] = "tls", [RULE_HTTP] = "http", [RULE_RAW] = "raw"};
	return protocol < ARRAY_LEN(names) ? names[protocol] : "?";
}

/* ---- addresses ---- */

static bool is_v4(const struct cidr *c)
{
	return c->bits >= 96 && memcmp(c->bytes, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

static bool host_bits_zero(const struct cidr *c)
{
	for (uint32_t i = c->bits; i < 128; i++)
		if (c->bytes[i / 8] & (0x80u >> (i % 8)))
			return false;
	return true;
}

bool cidr_parse(const char *text, struct cidr *ret)
{
	char address[INET6_ADDRSTRLEN];
	size_t n = strcspn(text, "/");
	struct cidr c = {.bits = 0};
	if (n == 0 || n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	uint32_t base = 0, width = 128;
	if (inet_pton(AF_INET, address, c.bytes + 12) == 1) {
		memcpy(c.bytes, mapped_prefix, sizeof(mapped_prefix));
		base = 96;
		width = 32;
	} else if (inet_pton(AF_INET6, address, c.bytes) != 1) {
		return false;
	}
	uint32_t bits = width;
	if (text[n]) {
		const char *digits = text + n + 1;
		size_t len = strlen(digits);
		if (len < 1 || len > 3 || strspn(digits, "0123456789") != len ||
		        (len > 1 && digits[0] == '0'))
			return false;
		bits = (uint32_t)strtoul(digits, NULL, 10);
	}
	c.bits = base + bits;
	if (bits > width || !host_bits_zero(&c))
		return false;
	*ret = c;
	return true;
}

bool cidr_fine(const struct cidr *c)
{
	return c->bits <= 128 && host_bits_zero(c);
}

void cidr_text(const struct cidr *c, char to[RULE_TEXT_MAX])
{
	char address[INET6_ADDRSTRLEN] = "?";
	bool v4 = is_v4(c);
	(void)inet_ntop(
	        v4 ? AF_INET : AF_INET6, c->bytes + (v4 ? 12 : 0), address, sizeof(address));
	snprintf(to, RULE_TEXT_MAX, "%s/%u", address, c->bits - (v4 ? 96 : 0));
}

/* An IPv6 prefix, even ::/0, does not take in IPv4: who means both says both. */
bool cidr_has(const struct cidr *c, const uint8_t mapped[16])
{
	if (!is_v4(c) && memcmp(mapped, mapped_prefix, sizeof(mapped_prefix)) == 0)
		return false;
	uint32_t whole = c->bits / 8, rest = c->bits % 8;
	if (memcmp(c->bytes, mapped, whole) != 0)
		return false;
	return rest == 0 || ((c->bytes[whole] ^ mapped[whole]) & (0xff00u >> rest) & 0xff) == 0;
}

bool cidr_opens(const struct cidr *c, const uint8_t mapped[16])
{
	struct special s;
	return cidr_has(c, mapped) && (!special_of(mapped, &s) || c->bits >= s.range.bits);
}

bool cidrs_open(const struct cidr *c, size_t n, const uint8_t mapped[16])
{
	for (size_t i = 0; i < n; i++)
		if (cidr_opens(&c[i], mapped))
			return true;
	return false;
}

/* ---- rules ---- */

bool rule_has_port(const struct policy_rule *r, unsigned port)
{
	for (uint32_t i = 0; i < r->nports; i++)
		if (r->ports[i] == port)
			return true;
	return false;
}

bool rule_shows_requests(const struct policy_rule *r)
{
	return r->protocol == RULE_HTTP || (r->protocol == RULE_TLS && r->terminate);
}

bool rules_terminate(const struct policy_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rules[i].terminate)
			return true;
	return false;
}

/* How much of the name the rule says: more is decided first.  0: it is not about this name. */
static size_t names_how_much(const struct policy_rule *r, const char *host, size_t len)
{
	size_t n = strlen(r->host);
	if (n == 0 || n > len)
		return 0;
	if (r->host[0] == '.')
		return len > n && strncasecmp(host + len - n, r->host, n) == 0 ? n : 0;
	return len == n && strncasecmp(host, r->host, n) == 0 ? POLICY_HOST_MAX : 0;
}

int rules_for_name(
        const struct policy_rule *rules, size_t n, const char *host, size_t len, unsigned port)
{
	int best = -1;
	size_t most = 0;
	/* Everybody keeps the name in so much room: cut, a longer one would be another name. */
	if (len >= POLICY_HOST_MAX)
		return -1;
	for (size_t i = 0; i < n; i++) {
		size_t much = names_how_much(&rules[i], host, len);
		if (much > most && (port == 0 || rule_has_port(&rules[i], port))) {
			most = much;
			best = (int)i;
		}
	}
	return best;
}

int rules_for_address(
        const struct policy_rule *rules, size_t n, const uint8_t mapped[16], unsigned port)
{
	for (size_t i = 0; i < n; i++)
		if (!rules[i].host[0] && rule_has_port(&rules[i], port) &&
		        cidrs_open(rules[i].cidrs, rules[i].ncidrs, mapped))
			return (int)i;
	return -1;
}

void rule_text(const struct policy_rule *r, char to[RULE_TEXT_MAX])
{
	char what[RULE_TEXT_MAX];
	if (r->host[0])
		snprintf(what, sizeof(what), "%s%s", r->host[0] == '.' ? "*" : "", r->host);
	else
		cidr_text(&r->cidrs[0], what);
	size_t n = (size_t)snprintf(to, RULE_TEXT_MAX, "%.*s", POLICY_HOST_MAX + 1, what);
	for (uint32_t i = 0; i < r->nports && i < RULE_PORTS; i++)
		n += (size_t)snprintf(
		        to + n, RULE_TEXT_MAX - n, "%c%u", i ? ',' : ':', r->ports[i]);
	if (r->group[0])
		snprintf(to + n, RULE_TEXT_MAX - n, " of @%.*s", NAME_MAX_LEN - 1, r->group);
}

/* ---- requests ---- */

/* What two readers could take apart differently: encoded separators, dots and controls, what is no
 * UTF-8 or no code at all, backslashes, empty segments (which some servers leave out). */
static bool path_plain(const char *path, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (path[i] == '\\' || (path[i] == '/' && i + 1 < n && path[i + 1] == '/'))
			return false;
		if (path[i] != '%')
			continue;
		char two[3] = {0}, *end = two;
		memcpy(two, path + i + 1, n - i < 3 ? 0 : 2);
		unsigned long c = strtoul(two, &end, 16);
		if (!isxdigit((unsigned char)two[0]) || end != two + 2 || c < 0x20 ||
		        strchr("/.\\%\x7f\xc0\xc1", (int)c))
			return false;
	}
	return true;
}

/* Where a star was met: what follows it in the glob, and how far it reaches in the path. */
struct star {
	const char *glob;
	size_t reach;
};

/* One character more for the last star, or, where that would leave its segment, for the last
 * double one.  Gives back where to go on, false when no star can take more. */
static bool retry(
        struct star *one, struct star *any, const char *path, const char **glob, size_t *i)
{
	struct star *s = one->glob && path[one->reach] != '/' ? one : any;
	if (s == any)
		one->glob = NULL;
	if (!s->glob)
		return false;
	*glob = s->glob;
	*i = ++s->reach;
	return true;
}

/* `*` stands for characters of one segment, `**` for any. */
static bool path_matches(const char *glob, const char *path, size_t n)
{
	struct star one = {NULL, 0}, any = {NULL, 0};
	size_t i = 0;
	while (i < n) {
		if (*glob == '*') {
			struct star *s = glob[1] == '*' ? &any : &one;
			glob += s == &any ? 2 : 1;
			*s = (struct star){glob, i};
			if (s == &any)
				one.glob = NULL;
		} else if (*glob && *glob == path[i]) {
			glob++;
			i++;
		} else if (!retry(&one, &any, path, &glob, &i)) {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

bool requests_allow(const struct policy_request *requests, size_t n, const char *method,
        size_t method_len, const char *target, size_t target_len)
{
	if (n == 0)
		return true;
	const char *query = memchr(target, '?', target_len);
	size_t len = query ? (size_t)(query - target) : target_len;
	if (!path_plain(target, len))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct policy_request *q = &requests[i];
		bool same = !q->method[0] || (strlen(q->method) == method_len &&
		                                     memcmp(q->method, method, method_len) == 0);
		if (same && path_matches(q->path, target, len))
			return true;
	}
	return false;
}
