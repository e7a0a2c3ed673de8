/*
 * mem.h - allocation and ownership helpers.
 *
 * Small bounded allocations abort on failure (x*): a process that cannot have
 * 100 bytes cannot go on.  Sizes chosen by outsiders go through buf.h, which
 * has limits and returns errors.  take()/take_fd() move ownership out of a
 * variable that a cleanup attribute would otherwise free.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>

void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...)
        __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

/* A fixed-size char array from a string; cut strings are never silent: false when cut. */
int str_copy(char *to, size_t size, const char *from);

static inline void auto_free_(void *p)
{
	free(*(void **)p);
}
#define auto_free __attribute__((cleanup(auto_free_)))

#define take(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
