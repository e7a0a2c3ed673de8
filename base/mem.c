#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void *or_die(void *p)
{
	if (!p) {
		static const char text[] = "<2>out of memory\n";
		(void)!fwrite(text, 1, sizeof(text) - 1, stderr);
		abort();
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return or_die(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return or_die(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return or_die(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return or_die(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return or_die(n < 0 ? NULL : text);
}

int str_copy(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size);
	if (n == size) {
		memcpy(to, from, size - 1);
		to[size - 1] = '\0';
		return 0;
	}
	memset(to, 0, size);
	memcpy(to, from, n);
	return 1;
}
