#include "policy/listen_yaml.h"
#include "policy/forms.h"

#include <string.h>

static int set_address(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r == 0 && !listen_parse(n->text, obj))
		return keys_error(k, n->line,
		        "'%.60s' is no address and port (127.0.0.1:7777, [::1]:7777, 0.0.0.0:443)",
		        n->text);
	return r;
}

/* A TCP peer is nobody: only a key says who it is. */
static int set_auth(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r == 0 && strcmp(n->text, "keys") != 0)
		return keys_error(k, n->line,
		        "auth '%.40s': over TCP the kernel does not say who asks, so it is `keys` "
		        "and nothing else",
		        n->text);
	return r;
}

static const struct key tls_rows[] = {
        {.name = "cert",
                .type = KEY_FIXED,
                .offset = offsetof(struct listen_at, cert),
                .size = LISTEN_PATH,
                .required = true,
                .form = form_path,
                .want = "an absolute path",
                .doc = "PEM file of root's: the certificate, and those that lead to its issuer."},
        {.name = "key",
                .type = KEY_FIXED,
                .offset = offsetof(struct listen_at, key),
                .size = LISTEN_PATH,
                .required = true,
                .form = form_path,
                .want = "an absolute path",
                .doc = "PEM file with its private key, which root alone can read."},
};
static const struct key_table tls_keys = KEY_TABLE(tls_rows);

static const struct key listen_rows[] = {
        {.name = "address",
                .type = KEY_OTHER,
                .set = set_address,
                .required = true,
                .want = "address and port (127.0.0.1:7777)",
                .doc = "Where it listens; an address in digits. Beyond loopback only with `tls`."},
        {.name = "tls", .type = KEY_MAP, .sub = &tls_keys},
        {.name = "auth",
                .type = KEY_OTHER,
                .set = set_auth,
                .want = "keys",
                .dflt = "keys",
                .doc = "Who may ask: whoever has an API key (docs/TENANTS.md)."},
};
const struct key_table listen_keys = KEY_TABLE(listen_rows);

static int fits(const struct keys_ctx *k, const struct yaml_node *n, const struct listen_at *l,
        const struct daemon_config *c)
{
	if (!listen_loopback(l) && !listen_has_tls(l))
		return keys_error(k, n->line,
		        "%s is reached by others than this host: keys would go over the wire as "
		        "they are; give it `tls`, or listen on 127.0.0.1",
		        l->text);
	for (uint32_t i = 0; i < c->nlistens; i++)
		if (strcmp(c->listens[i].text, l->text) == 0)
			return keys_error(k, n->line, "%s is given twice", l->text);
	return 0;
}

int listen_set(const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to)
{
	int r = keys_counted(k, list, LISTENS);
	if (r < 0)
		return r;
	yaml_each (it, list) {
		struct listen_at *l = &to->listens[to->nlistens];
		memset(l, 0, sizeof(*l));
		r = keys_apply(k, &listen_keys, it, l);
		if (r == 0)
			r = fits(k, it, l, to);
		if (r < 0)
			return r;
		to->nlistens++;
	}
	return 0;
}
