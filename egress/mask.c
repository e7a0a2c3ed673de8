#include "egress/mask.h"

#include "base/mem.h"

#include <string.h>

/* Letters, digits, and the marks of tokens (RFC 9110, token68). */
static bool in_word(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("-._~+/=", c));
}

void mask_begin(struct mask *m, const char *secret, size_t n)
{
	if (n < MASK_MIN)
		return;
	m->secret = xstrndup(secret, n);
	m->n = n;
	m->word = true;
	for (size_t i = 0; i < n; i++)
		m->word = m->word && in_word((unsigned char)secret[i]);
	m->all = (struct buf)BUF_INIT(MASK_PIECE + n);
}

void mask_done(struct mask *m)
{
	if (m->secret)
		explicit_bzero(m->secret, m->n);
	if (m->all.p)
		explicit_bzero(m->all.p, m->all.room);
	free(m->secret);
	buf_done(&m->all);
	memset(m, 0, sizeof(*m));
}

void mask_text(struct mask *m, char *p, size_t n)
{
	char *end = p + n;
	if (!m->secret)
		return;
	for (char *at; (at = memmem(p, (size_t)(end - p), m->secret, m->n)); p = at + m->n) {
		memset(at, '*', m->n);
		m->found++;
	}
}

/* Values of secrets have no control characters. */
static bool could_be_of_it(const struct mask *m, unsigned char c)
{
	return m->word ? in_word(c) : c >= ' ' && c != 0x7f;
}

static size_t waits(const struct mask *m)
{
	size_t k = 0;
	while (k < m->n - 1 && k < m->all.len &&
	        could_be_of_it(m, (unsigned char)m->all.p[m->all.len - 1 - k]))
		k++;
	return k;
}

const char *mask_pass(struct mask *m, const char *p, size_t n, size_t *ret_n)
{
	*ret_n = n;
	if (!m->secret)
		return p;
	buf_consume(&m->all, m->passed);
	m->passed = 0;
	if (buf_put(&m->all, p, n) < 0)
		return NULL;
	mask_text(m, m->all.p, m->all.len);
	*ret_n = m->passed = m->all.len - waits(m);
	return m->all.p;
}

const char *mask_rest(struct mask *m, size_t *ret_n)
{
	buf_consume(&m->all, m->passed);
	*ret_n = m->passed = m->all.len;
	return m->all.p;
}
