#include "egress/origin.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_literal(const char *host)
{
	uint8_t bytes[16];
	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static int take_host(const char **at, struct origin *o, struct err *e)
{
	bool v6 = **at == '[';
	const char *p = *at + (v6 ? 1 : 0);
	size_t n = strcspn(p, v6 ? "]" : ":/");
	if (n == 0 || n >= sizeof(o->host) || (v6 && p[n] != ']'))
		return err_set(e, -EINVAL, "the host of the upstream is empty or too long");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (!isalnum(c) && !strchr(v6 ? ":." : "-._", c))
			return err_set(e, -EINVAL, "the host of the upstream has a '%c'", c);
		o->host[i] = (char)tolower(c);
	}
	o->host[n] = '\0';
	o->literal = is_literal(o->host);
	if (v6 && !o->literal)
		return err_set(e, -EINVAL, "the upstream's address in brackets is not one");
	*at = p + n + (v6 ? 1 : 0);
	return 0;
}

int origin_parse(const char *url, struct origin *ret, struct err *e)
{
	struct origin o = {.tls = strncmp(url, "https://", 8) == 0};
	if (!o.tls && strncmp(url, "http://", 7) != 0)
		return err_set(e, -EINVAL, "the upstream is neither http:// nor https://");
	const char *at = url + (o.tls ? 8 : 7);
	int r = take_host(&at, &o, e);
	if (r < 0)
		return r;
	o.port = o.tls ? 443 : 80;
	if (*at == ':') {
		char *end;
		unsigned long port = isdigit((unsigned char)at[1]) ? strtoul(at + 1, &end, 10) : 0;
		if (port < 1 || port > 65535)
			return err_set(e, -EINVAL, "the upstream's port is not 1..65535");
		o.port = (uint16_t)port;
		at = end;
	}
	size_t n = strlen(at);
	if ((n && *at != '/') || strpbrk(at, "?#@\\ ") || n >= sizeof(o.prefix))
		return err_set(e, -EINVAL, "the upstream has more than a path after its host");
	while (n && at[n - 1] == '/')
		n--;
	memcpy(o.prefix, at, n);
	o.prefix[n] = '\0';
	*ret = o;
	return 0;
}

int origin_url(const struct origin *o, const char *target, size_t n, struct buf *to)
{
	bool v6 = strchr(o->host, ':') != NULL;
	buf_printf(to, "%s://%s%s%s:%u%s", o->tls ? "https" : "http", v6 ? "[" : "", o->host,
	        v6 ? "]" : "", o->port, o->prefix);
	return buf_put(to, target, n);
}
