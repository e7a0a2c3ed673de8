/* What strangers send to the API: paths, request bodies, jail requests. */
#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/jailspec.h"
#include "supervisor/percent.h"
#include "supervisor/routes.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void route(const char *text)
{
	struct route_match m;
	size_t n;
	const struct route *table = routes_table(&n);
	routes_match(table, n, "GET", text, &m);
	for (unsigned i = 0; m.route && i < m.nparams; i++) {
		auto_free char *p = percent_decode(m.params[i].p, m.params[i].n);
		assert(!p || strlen(p) <= m.params[i].n);
	}
}

static void jail(const struct json *body)
{
	static struct jail_make m;
	struct policy p = {.nbindable = 1};
	struct limits effective;
	struct err e;
	auto_jailspec struct jailspec j = {.policy = NULL};
	strcpy(p.name, "fuzz");
	strcpy(p.bindable[0].source, "/srv");
	memset(&m, 0, sizeof(m));
	if (jailspec_read(body, true, &j, &e) < 0)
		return;
	if (jailspec_narrow(&j, &p, &m, &effective, &e) == 0)
		for (uint32_t i = 0; i < m.nbinds; i++) {
			assert(!strstr(m.binds[i].below, "/../") && m.binds[i].below[0] != '/');
			assert(m.binds[i].target[0] == '/' && !m.binds[i].writable);
		}
	fd_close(jailspec_pack(&j, &p, &e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xcalloc(size + 1, 1);
	struct err e;
	if (size > 0)
		memcpy(text, data, size);
	route(text);
	auto_json struct json *body = body_parse(text, size, &e);
	if (body)
		jail(body);
	return 0;
}
