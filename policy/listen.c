#include "policy/listen.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535 };

static bool port_of(const char *text, uint16_t *ret)
{
	char *end;
	if (text[0] < '1' || text[0] > '9')
		return false;
	unsigned long n = strtoul(text, &end, 10);
	*ret = (uint16_t)n;
	return !*end && n <= PORT_MAX;
}

bool listen_parse(const char *text, struct listen_at *to)
{
	char host[LISTEN_TEXT];
	const char *colon = strrchr(text, ':');
	struct listen_at l = *to;
	bool v6 = text[0] == '[';
	size_t n = colon ? (size_t)(colon - text) : 0, brackets = v6 ? 2 : 0;
	if (n < 2 || !str_copy(l.text, sizeof(l.text), text) || (v6 && text[n - 1] != ']'))
		return false;
	memcpy(host, text + v6, n - brackets);
	host[n - brackets] = '\0';
	memset(l.address, 0, sizeof(l.address));
	l.v6 = v6;
	if (inet_pton(v6 ? AF_INET6 : AF_INET, host, l.address) != 1 ||
	        !port_of(colon + 1, &l.port))
		return false;
	*to = l;
	return true;
}

bool listen_loopback(const struct listen_at *l)
{
	static const uint8_t v6[LISTEN_ADDRESS] = {[LISTEN_ADDRESS - 1] = 1};
	return l->v6 ? memcmp(l->address, v6, sizeof(v6)) == 0 : l->address[0] == 127;
}

bool listen_has_tls(const struct listen_at *l)
{
	return l->cert[0] && l->key[0];
}

int listen_check(const struct listen_at *l, struct err *e)
{
	struct listen_at again = *l;
	if (!memchr(l->text, '\0', sizeof(l->text)) || !memchr(l->cert, '\0', sizeof(l->cert)) ||
	        !memchr(l->key, '\0', sizeof(l->key)) || !listen_parse(l->text, &again) ||
	        memcmp(&again.address, &l->address, sizeof(l->address)) != 0 ||
	        again.port != l->port || again.v6 != l->v6)
		return err_set(e, -EINVAL, "listen: an address is damaged");
	if (!l->cert[0] != !l->key[0] || (!listen_loopback(l) && !listen_has_tls(l)))
		return err_set(e, -EINVAL, "listen: %s is beyond loopback without TLS", l->text);
	return 0;
}
