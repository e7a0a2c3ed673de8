#include "supervisor/said.h"

#include "base/mem.h"
#include "drivers/emit.h"

#include <stdio.h>
#include <string.h>

int said_answer_by_name(const char *name)
{
	for (int a = ANSWER_DENY; a <= ANSWER_ALWAYS; a++)
		if (strcmp(emit_answer_word((enum driver_answer)a), name) == 0)
			return a;
	return -1;
}

/* ---- in the journal ---- */

enum { HAS_TEXT = 1, HAS_KEY = 2, IS_REMOTE = 4 };

struct head {
	uint32_t what, answer, by_harness, uid;
	uint32_t id_len, has;
}; /* then the id, its NUL, the key, its NUL, the text */

void said_pack(const struct said *s, struct buf *to)
{
	size_t id_len = strlen(s->id);
	const struct head h = {(uint32_t)s->what, (uint32_t)s->answer, s->by_harness, s->uid,
	        (uint32_t)id_len,
	        (s->text ? HAS_TEXT : 0u) | (s->key ? HAS_KEY : 0u) | (s->remote ? IS_REMOTE : 0u)};
	(void)buf_put(to, (const char *)&h, sizeof(h)); /* the caller looks at to->failed */
	(void)buf_put(to, s->id, id_len + 1);
	if (s->key)
		(void)buf_put(to, s->key, strlen(s->key) + 1);
	(void)buf_put(to, s->text ? s->text : "", s->text ? s->len : 0);
}

int said_unpack(const char *p, size_t n, struct said *ret, struct err *e)
{
	struct head h;
	if (n <= sizeof(h))
		return err_set(e, -EBADMSG, "its journal is damaged");
	memcpy(&h, p, sizeof(h));
	p += sizeof(h);
	n -= sizeof(h);
	if (h.what > SAID_INPUT || h.answer > ANSWER_ALWAYS || h.id_len >= n || p[h.id_len] ||
	        strlen(p) != h.id_len)
		return err_set(e, -EBADMSG, "its journal is damaged");
	const char *id = p, *key = NULL;
	p += h.id_len + 1;
	n -= h.id_len + 1;
	if (h.has & HAS_KEY) {
		size_t len = strnlen(p, n);
		if (len == n)
			return err_set(e, -EBADMSG, "its journal is damaged");
		key = p;
		p += len + 1;
		n -= len + 1;
	}
	*ret = (struct said){
	        .what = (enum said_what)h.what,
	        .answer = (enum driver_answer)h.answer,
	        .by_harness = h.by_harness,
	        .uid = h.uid,
	        .remote = h.has & IS_REMOTE,
	        .key = key,
	        .id = id,
	        .text = h.has & HAS_TEXT ? p : NULL,
	        .len = n,
	};
	return 0;
}

/* ---- in events ---- */

void said_by(const struct said *s, struct jw *w)
{
	jw_str(w, "by", s->by_harness ? "harness" : "user");
	if (!s->by_harness && !s->remote)
		jw_int(w, "uid", s->uid);
	if (!s->by_harness)
		jw_str(w, "key", s->key);
	if (s->by_harness && s->text)
		jw_bytes(w, "reason", s->text, s->len);
}

void said_who(const struct said *s, char *to, size_t n)
{
	if (s->key)
		(void)snprintf(to, n, "key %s", s->key);
	else
		(void)snprintf(to, n, "uid %u", s->uid);
}

static bool ours(const char *key)
{
	return strcmp(key, "by") == 0 || strcmp(key, "uid") == 0 || strcmp(key, "key") == 0 ||
	       strcmp(key, "reason") == 0;
}

void said_retell(const struct said *s, const char *members, size_t n, struct buf *to)
{
	auto_json struct json *j = json_parse_members(members, n);
	if (!j)
		return;
	struct jw w = JW_INIT(to);
	for (const struct json *m = json_first(j); m; m = json_next(m))
		if (!ours(json_key(m)))
			jw_tree(&w, json_key(m), m);
	said_by(s, &w);
}
