#include "policy/forms.h"
#include "base/id.h"

#include <ctype.h>
#include <string.h>

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || (unsigned char)c == 0x7f;
}

/* The parts of a path after its leading slash, if any: each there, none "." or "..". */
static bool parts_fine(const char *p)
{
	for (;;) {
		size_t n = strcspn(p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		for (size_t i = 0; i < n; i++)
			if (is_control(p[i]))
				return false;
		if (!p[n])
			return true;
		p += n + 1;
	}
}

bool form_path(const char *text)
{
	if (text[0] != '/' || strlen(text) >= POLICY_PATH_MAX)
		return false;
	return text[1] == '\0' || parts_fine(text + 1);
}

bool form_relative(const char *text)
{
	/* 1023: with the jail's prefix it must stay below PATH_MAX, 4096; deeper is no seed. */
	return text[0] != '/' && strlen(text) < 1024 && parts_fine(text);
}

bool form_glob(const char *text)
{
	return form_relative(text);
}

bool form_host(const char *text)
{
	size_t len = strlen(text);
	if (len == 0 || len >= POLICY_HOST_MAX)
		return false;
	bool digits = false;
	int labels = 0;
	for (const char *p = text;; labels++) {
		size_t n = strcspn(p, ".");
		if (n == 0 || n > 63 || p[0] == '-' || p[n - 1] == '-')
			return false;
		digits = true;
		for (size_t i = 0; i < n; i++) {
			if (!islower((unsigned char)p[i]) && !isdigit((unsigned char)p[i]) &&
			        p[i] != '-')
				return false;
			digits = digits && isdigit((unsigned char)p[i]);
		}
		if (!p[n])
			break;
		p += n + 1;
	}
	return labels >= 1 && !digits;
}

static bool ipv4(const char *p, size_t n)
{
	int parts = 0;
	for (size_t i = 0; i < n; parts++) {
		int value = 0;
		size_t start = i;
		for (; i < n && isdigit((unsigned char)p[i]); i++)
			value = value > 255 ? value : value * 10 + (p[i] - '0');
		if (i == start || i - start > 3 || value > 255)
			return false;
		if (i < n && (p[i] != '.' || ++i == n))
			return false;
	}
	return parts == 4;
}

/* The characters only: what dials the address parses it. */
static bool ipv6(const char *p, size_t n)
{
	size_t colons = 0;
	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)p[i]) && p[i] != ':' && p[i] != '.')
			return false;
		colons += p[i] == ':';
	}
	return colons >= 2 && n >= 2 && n <= 45;
}

/* Length of the host at the start of `p`, brackets included; 0: there is none. */
static size_t url_host(const char *p)
{
	if (p[0] == '[') {
		size_t n = strcspn(p, "]");
		return p[n] && ipv6(p + 1, n - 1) ? n + 1 : 0;
	}
	size_t n = strcspn(p, ":/");
	char host[POLICY_HOST_MAX];
	if (n == 0 || n >= sizeof(host))
		return 0;
	memcpy(host, p, n);
	host[n] = '\0';
	return ipv4(host, n) || form_host(host) || strcmp(host, "localhost") == 0 ? n : 0;
}

/* Labels of letters, digits, '-' and '_', at most one dot at the end. */
static bool asked_name(const char *p)
{
	static const char letters[] =
	        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	if (strlen(p) > 253)
		return false;
	for (;;) {
		size_t n = strspn(p, letters);
		if (n == 0 || n > 63 || (p[n] && p[n] != '.'))
			return false;
		if (!p[n] || !p[n + 1])
			return true;
		p += n + 1;
	}
}

bool form_asked_host(const char *text)
{
	size_t n = strlen(text);
	if (strspn(text, "0123456789.") == n)
		return ipv4(text, n);
	return ipv6(text, n) || asked_name(text);
}

/* Segments that no request may have (policy/rules.c, egress/http.c): a rule with them is never met.
 */
static bool dotted_or_empty(const char *path)
{
	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		size_t dots = strspn(p + 1, ".");
		if (p[1] == '/' || ((dots == 1 || dots == 2) && strchr("/;", p[1 + dots])))
			return true;
	}
	return false;
}

bool form_path_glob(const char *text)
{
	size_t n = strlen(text);
	return n > 0 && n < POLICY_PATH_MAX && (text[0] == '/' || text[0] == '*') &&
	       !strstr(text, "***") && !strpbrk(text, " ?#\\%") && form_printable(text) &&
	       !dotted_or_empty(text);
}

bool form_url(const char *text)
{
	if (strlen(text) >= POLICY_PATH_MAX)
		return false;
	const char *p;
	if (strncmp(text, "https://", 8) == 0)
		p = text + 8;
	else if (strncmp(text, "http://", 7) == 0)
		p = text + 7;
	else
		return false;
	size_t n = url_host(p);
	if (n == 0)
		return false;
	p += n;
	if (*p == ':') {
		unsigned port = 0;
		size_t digits = 0;
		for (p++; isdigit((unsigned char)*p) && digits < 6; p++, digits++)
			port = port * 10 + (unsigned)(*p - '0');
		if (digits == 0 || port == 0 || port > 65535)
			return false;
	}
	if (*p == '\0')
		return true;
	if (*p != '/' || !parts_fine(p + 1))
		return false;
	return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~") ==
	       strlen(p);
}

bool form_header(const char *text)
{
	/* What says where a message goes and how long it is. */
	static const char *const ours[] = {"accept-encoding", "connection", "content-length",
	        "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
	        "transfer-encoding", "upgrade"};
	size_t n = strlen(text);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strcmp(text, ours[i]) == 0)
			return false;
	return n > 0 && n < 64 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

bool form_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			return false;
	return true;
}

bool form_reference(const char *text)
{
	return text[0] && strlen(text) < 256 && form_printable(text);
}

bool form_variable(const char *text)
{
	size_t n = strlen(text);
	if (n == 0 || n >= NAME_MAX_LEN || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] != '_' && !(isalnum((unsigned char)text[i]) && isascii(text[i])))
			return false;
	return true;
}

bool form_line(const char *text)
{
	for (; *text; text++)
		if (is_control(*text) && *text != '\t')
			return false;
	return true;
}

bool form_name(const char *text)
{
	return name_valid(text);
}

bool path_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 1)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool form_command(const char *field, size_t size, uint32_t nargs)
{
	const char *at = field, *end = field + size;
	for (uint32_t i = 0; i < nargs; i++) {
		const char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
		if (i == FORM_COMMAND_ARGS || !stop)
			return false;
		at = stop + 1;
	}
	return nargs > 0 && form_path(field);
}
