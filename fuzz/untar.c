/* An agent's package, taken apart: names stay relative and sizes add up. */
#include "abctl/untar.h"

#include <assert.h>
#include <string.h>

static size_t bytes, files, ends;

static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	(void)ctx;
	(void)executable;
	(void)e;
	files++;
	assert(name[0] && name[0] != '/' && strlen(name) <= UNTAR_NAME_MAX);
	for (const char *p = name; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		assert(strncmp(p, "../", 3) != 0 && strcmp(p, "..") != 0 && *p && *p != '/');
	return 0;
}
static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	(void)ctx;
	(void)p;
	(void)e;
	bytes += n;
	return 0;
}
static int on_end(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	ends++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const struct untar_calls calls = {on_file, on_data, on_end};
	struct err e = {0};
	bytes = files = ends = 0;
	struct untar *u = untar_new(&calls, NULL);
	size_t step = n ? 1 + p[0] : 1;
	int r = 0;
	for (size_t at = 0; r == 0 && at < n; at += step)
		r = untar_feed(u, p + at, n - at < step ? n - at : step, &e);
	if (r == 0 && untar_end(u, &e) == 0)
		assert(ends == files);
	assert(bytes <= n && ends <= files);
	untar_free(u);
	return 0;
}
