#include "supervisor/apikeys.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/ledger.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/owner.h"
#include "supervisor/sessions.h"
#include "supervisor/store.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
	SPEC_MAX = 256 << 10, /* three lists of APIKEY_NAMES texts of 256 bytes, escaped */
	ID_TAIL = 26,         /* of an id behind its prefix */
	RANDOM_BYTES = 32,
	/* A timer that is asked for more waits so long and is asked anew. */
	TIMER_MAX_MS = 3600 * 1000,
};
static const char id_prefix[] = "key_", secret_prefix[] = "abk_";

struct apikeys {
	struct daemon *d; /* borrowed */
	struct list all;
	size_t n;
	struct op timer; /* the next that is over */
	int64_t timer_at_ms;
};

/* ---- verbs, rates: pure ---- */

static const char *const verb_names[] = {
#define APIKEY_VERB_ROW(sym, name, what) [APIKEY_VERB_##sym] = (name),
        APIKEY_VERBS(APIKEY_VERB_ROW)
#undef APIKEY_VERB_ROW
};

const char *apikey_verb_name(enum apikey_verb v)
{
	return verb_names[v];
}

bool apikey_has_verb(const struct apikey *k, enum apikey_verb v)
{
	return k->verbs & 1u << v;
}

bool apikey_names(char *const *list, const char *name)
{
	bool found = !list;
	for (; list && *list && !found; list++)
		found = strcmp(*list, name) == 0;
	return found;
}

int64_t apikey_rate_take(struct apikey_rate *r, int64_t now_us)
{
	const int64_t minute_us = INT64_C(60000000);
	if (!r->per_minute)
		return 0;
	int64_t each = minute_us / r->per_minute;
	int64_t debt = r->debt_us - (now_us - r->at_us);
	if (debt < 0)
		debt = 0;
	if (debt + each > minute_us)
		return (debt + each - minute_us) / 1000 + 1;
	r->debt_us = debt + each;
	r->at_us = now_us;
	return 0;
}

/* ---- life ---- */

struct apikeys *apikeys_new(struct daemon *d)
{
	struct apikeys *k = xnew(struct apikeys);
	k->d = d;
	list_init(&k->all);
	return k;
}

static void names_free(char **list)
{
	for (char **x = list; x && *x; x++)
		free(*x);
	free(list);
}

static void apikey_free(struct apikey *x)
{
	if (!x)
		return;
	names_free(x->users);
	names_free(x->harnesses);
	names_free(x->policies);
	free(x);
}

static void auto_apikey_(struct apikey **x)
{
	apikey_free(*x);
}
#define auto_apikey __attribute__((cleanup(auto_apikey_)))

void apikeys_free(struct apikeys *k)
{
	if (!k)
		return;
	list_for_each (x, &k->all, struct apikey, link) {
		list_remove(&x->link);
		apikey_free(x);
	}
	free(k);
}

static void forget(struct apikeys *k, struct apikey *x)
{
	http_cut_actor(k->d->http, x->id);
	list_remove(&x->link);
	k->n--;
	apikey_free(x);
}

/* ---- finding ---- */

static bool over(const struct apikey *x)
{
	return x->expires_ms && x->expires_ms <= clock_wall_ms();
}

static struct apikey *by_id(struct apikeys *k, const char *id)
{
	list_for_each (x, &k->all, struct apikey, link)
		if (strcmp(x->id, id) == 0)
			return x;
	return NULL;
}

static struct apikey *by_name(struct apikeys *k, const char *name)
{
	list_for_each (x, &k->all, struct apikey, link)
		if (strcmp(x->name, name) == 0 || strcmp(x->id, name) == 0)
			return x;
	return NULL;
}

const struct apikey *apikeys_find(struct apikeys *k, const char *id)
{
	struct apikey *x = by_id(k, id);
	return x && !over(x) ? x : NULL;
}

static void hash_of(const char *secret, char ret[DIGEST_TEXT])
{
	struct digest *d = digest_new();
	digest_add(d, secret, strlen(secret));
	digest_end(d, ret);
}

const struct apikey *apikeys_of_secret(struct apikeys *k, const char *secret)
{
	char id[ID_MAX], hash[DIGEST_TEXT];
	const size_t head = strlen(secret_prefix);
	if (strlen(secret) != APIKEY_SECRET_MAX - 1 || strncmp(secret, secret_prefix, head) != 0)
		return NULL;
	(void)snprintf(id, sizeof(id), "%s%.*s", id_prefix, ID_TAIL, secret + head);
	hash_of(secret, hash);
	struct apikey *x = by_id(k, id);
	if (!x || !digest_same(hash, x->hash) || over(x))
		return NULL;
	x->used_ms = clock_wall_ms();
	return x;
}

int64_t apikeys_take_request(struct apikeys *k, const char *id)
{
	struct apikey *x = by_id(k, id);
	return x ? apikey_rate_take(&x->requests, clock_mono_us()) : 0;
}

int64_t apikeys_take_run(struct apikeys *k, const char *id)
{
	struct apikey *x = by_id(k, id);
	return x ? apikey_rate_take(&x->runs, clock_mono_us()) : 0;
}

int apikeys_budget(struct apikeys *k, const struct apikey *x, struct err *e)
{
	struct budget spent;
	char from[NAME_MAX_LEN + 1], to[NAME_MAX_LEN + 1];
	if (!x->tokens_day && !x->cost_micro_day)
		return 0;
	owner_range(x->tenant, from, to);
	int rc = store_spent_range(
	        k->d->store, BUDGET_USER, from, to, ledger_day(clock_wall_ms()), &spent, e);
	if (rc < 0)
		return rc;
	if (x->tokens_day && spent.tokens >= (uint64_t)x->tokens_day)
		return err_set(e, -EDQUOT, "tenant %s has used the %lld tokens of today (UTC)",
		        x->tenant, (long long)x->tokens_day);
	if (x->cost_micro_day && spent.cost_micro >= (uint64_t)x->cost_micro_day)
		return err_set(e, -EDQUOT, "tenant %s has used the %.2f USD of today (UTC)",
		        x->tenant, (double)x->cost_micro_day / 1e6);
	return 0;
}

int64_t apikeys_tomorrow_ms(void)
{
	const int64_t day_ms = (int64_t)24 * 3600 * 1000;
	return day_ms - clock_wall_ms() % day_ms;
}

/* ---- what is kept of a key is what is shown of it ---- */

static void names_json(struct jw *w, const char *name, char **list)
{
	if (list)
		jw_texts(w, name, list);
}

static void when(struct jw *w, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];
	if (!ms)
		return;
	clock_rfc3339(ms, text);
	jw_str(w, name, text);
}

static void members(struct jw *w, const struct apikey *x)
{
	jw_str(w, "name", x->name);
	jw_str(w, "tenant", x->tenant);
	names_json(w, "users", x->users);
	names_json(w, "harnesses", x->harnesses);
	names_json(w, "policies", x->policies);
	jw_open(w, "verbs", '[');
	for (int v = 0; v < APIKEY_VERB_COUNT; v++)
		if (apikey_has_verb(x, (enum apikey_verb)v))
			jw_str(w, NULL, apikey_verb_name((enum apikey_verb)v));
	jw_close(w, ']');
	if (x->requests.per_minute)
		jw_int(w, "rate", x->requests.per_minute);
	if (x->runs.per_minute)
		jw_int(w, "runRate", x->runs.per_minute);
	if (x->tokens_day)
		jw_int(w, "tokensPerDay", x->tokens_day);
	if (x->cost_micro_day)
		jw_num(w, "costUsdPerDay", (double)x->cost_micro_day / 1e6);
	when(w, "createdAt", x->created_ms);
	when(w, "expiresAt", x->expires_ms);
}

static void show(struct jw *w, const struct apikey *x)
{
	jw_open(w, NULL, '{');
	jw_str(w, "id", x->id);
	members(w, x);
	when(w, "usedAt", x->used_ms);
	if (over(x))
		jw_bool(w, "expired", true);
	jw_close(w, '}');
}

int apikeys_show(struct apikeys *k, const char *name, struct jw *w, struct err *e)
{
	const struct apikey *x = by_name(k, name);
	if (!x)
		return err_set(e, -ENOENT, "no key '%.64s'", name);
	show(w, x);
	return 0;
}

void apikeys_list(struct apikeys *k, struct jw *w)
{
	list_for_each (x, &k->all, struct apikey, link)
		show(w, x);
}

/* ---- reading one ---- */

static int read_name(
        const struct json *body, const char *key, const char *dflt, char *to, struct err *e)
{
	const char *text = json_str(body, key, dflt);
	if (!name_valid(text))
		return err_set(e, -EINVAL,
		        "%s: '%.64s' is no name (small letters, digits, . _ -, at most %d)", key,
		        text, NAME_MAX_LEN - 1);
	return str_copy(to, NAME_MAX_LEN, text);
}

/* An empty list would let nothing through, and is more likely a mistake. */
static int read_names(
        const struct json *body, const char *key, bool users, char ***ret, struct err *e)
{
	const struct json *list = json_get(body, key);
	if (!list || json_is_null(list))
		return 0;
	auto_free const char **texts = body_strings(list, key, APIKEY_NAMES, e);
	if (!texts)
		return e->code;
	size_t n = 0;
	for (; texts[n]; n++) {
		if (users && session_part_check(key, texts[n], e) < 0)
			return e->code;
		if (!users && !name_valid(texts[n]))
			return err_set(e, -EINVAL, "%s: '%.64s' is no name", key, texts[n]);
	}
	if (n == 0)
		return err_set(e, -EINVAL, "%s: is empty; leave it out for any", key);
	*ret = xcalloc(n + 1, sizeof(**ret));
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = xstrdup(texts[i]);
	return 0;
}

static int verb_bit(const char *name, uint32_t *to, struct err *e)
{
	char known[128] = "";
	for (int v = 0; v < APIKEY_VERB_COUNT; v++) {
		if (strcmp(name, verb_names[v]) == 0) {
			*to |= 1u << v;
			return 0;
		}
		size_t n = strlen(known);
		(void)snprintf(known + n, sizeof(known) - n, " %s", verb_names[v]);
	}
	return err_set(e, -EINVAL, "verbs: '%.32s' is none of%s", name, known);
}

/* A command in a jail is whatever its caller says: with a bound on harnesses it is not among the
 * verbs unless it is asked for. */
static int read_verbs(const struct json *body, struct apikey *x, struct err *e)
{
	const struct json *list = json_get(body, "verbs");
	if (!list || json_is_null(list)) {
		x->verbs = (1u << APIKEY_VERB_COUNT) - 1;
		if (x->harnesses)
			x->verbs &= ~(1u << APIKEY_VERB_EXEC);
		return 0;
	}
	auto_free const char **texts = body_strings(list, "verbs", APIKEY_VERB_COUNT, e);
	if (!texts)
		return e->code;
	for (const char **t = texts; *t; t++)
		if (verb_bit(*t, &x->verbs, e) < 0)
			return e->code;
	return x->verbs ? 0 : err_set(e, -EINVAL, "verbs: is empty; leave it out for all");
}

static int read_rate(const struct json *body, const char *key, uint32_t *ret, struct err *e)
{
	int64_t n = json_int(body, key, 0);
	if (n < 0 || n > APIKEY_RATE_MAX || (n == 0 && json_get(body, key)))
		return err_set(e, -EINVAL, "%s: must be 1 to %d a minute", key, APIKEY_RATE_MAX);
	*ret = (uint32_t)n;
	return 0;
}

static int read_budget(const struct json *body, struct apikey *x, struct err *e)
{
	const double most = 1e9; /* USD: its millionths are exact */
	double usd = json_num(body, "costUsdPerDay", 0);
	x->tokens_day = json_int(body, "tokensPerDay", 0);
	if (x->tokens_day < 0 || (json_get(body, "tokensPerDay") && x->tokens_day == 0))
		return err_set(e, -EINVAL, "tokensPerDay: must be 1 or more");
	if (json_get(body, "costUsdPerDay") && !(usd >= 1e-6 && usd <= most))
		return err_set(e, -EINVAL, "costUsdPerDay: must be 0.000001 to %.0f", most);
	x->cost_micro_day = (int64_t)(usd * 1e6 + 0.5);
	return 0;
}

static int read_time(const struct json *body, const char *key, int64_t *ret, struct err *e)
{
	const char *text = json_str(body, key, NULL);
	if (!text)
		return 0;
	*ret = clock_from_rfc3339(text, strlen(text));
	if (*ret <= 0)
		return err_set(e, -EINVAL, "%s: must be like 2027-01-31T00:00:00.000Z", key);
	return 0;
}

static int key_read(const struct json *body, struct apikey *x, struct err *e)
{
	static const struct body_key known[] = {
	        {"name", BODY_STRING, true},
	        {"tenant", BODY_STRING, false},
	        {"users", BODY_ARRAY, false},
	        {"harnesses", BODY_ARRAY, false},
	        {"policies", BODY_ARRAY, false},
	        {"verbs", BODY_ARRAY, false},
	        {"rate", BODY_INTEGER, false},
	        {"runRate", BODY_INTEGER, false},
	        {"tokensPerDay", BODY_INTEGER, false},
	        {"costUsdPerDay", BODY_NUMBER, false},
	        {"createdAt", BODY_STRING, false}, /* of one that is kept */
	        {"expiresAt", BODY_STRING, false},
	};
	if (body_check(body, "", known, ARRAY_LEN(known), e) < 0 ||
	        read_name(body, "name", "", x->name, e) < 0 ||
	        read_name(body, "tenant", x->name, x->tenant, e) < 0 ||
	        read_names(body, "users", true, &x->users, e) < 0 ||
	        read_names(body, "harnesses", false, &x->harnesses, e) < 0 ||
	        read_names(body, "policies", false, &x->policies, e) < 0 ||
	        read_verbs(body, x, e) < 0 ||
	        read_rate(body, "rate", &x->requests.per_minute, e) < 0 ||
	        read_rate(body, "runRate", &x->runs.per_minute, e) < 0 ||
	        read_budget(body, x, e) < 0 ||
	        read_time(body, "createdAt", &x->created_ms, e) < 0 ||
	        read_time(body, "expiresAt", &x->expires_ms, e) < 0)
		return e->code;
	return 0;
}

/* ---- those that are over ---- */

static void arm(struct apikeys *k);

static void on_timer(struct op *op, int res, uint32_t flags)
{
	struct apikeys *k = container_of(op, struct apikeys, timer);
	(void)res;
	(void)flags;
	list_for_each (x, &k->all, struct apikey, link)
		if (over(x))
			http_cut_actor(k->d->http, x->id);
	arm(k);
}

static void arm(struct apikeys *k)
{
	int64_t now = clock_wall_ms(), next = INT64_MAX;
	list_for_each (x, &k->all, struct apikey, link)
		if (x->expires_ms > now && x->expires_ms < next)
			next = x->expires_ms;
	if (next == INT64_MAX || !k->d->loop)
		return;
	int64_t wait = next - now < TIMER_MAX_MS ? next - now : TIMER_MAX_MS;
	if (!k->timer.inflight) {
		loop_timeout(k->d->loop, &k->timer, wait, on_timer);
	} else if (now + wait < k->timer_at_ms) {
		loop_cancel(k->d->loop, &k->timer); /* its end sets it anew */
	} else {
		return;
	}
	k->timer_at_ms = now + wait;
}

/* ---- adding, revoking ---- */

static void add(struct apikeys *k, struct apikey *x)
{
	list_append(&k->all, &x->link);
	k->n++;
}

struct adding {
	struct apikeys *keys;
	char id[ID_MAX];
	apikeys_done_fn *done;
	void *ctx;
};

static void on_added(void *ctx, int rc, const struct err *e)
{
	auto_free struct adding *a = ctx;
	struct apikey *x = by_id(a->keys, a->id);
	if (rc < 0 && x) /* what is not on the disk is none */
		forget(a->keys, x);
	arm(a->keys);
	a->done(a->ctx, rc, e);
}

static int invent(struct apikey *x, char secret[APIKEY_SECRET_MAX], struct err *e)
{
	unsigned char bytes[RANDOM_BYTES];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(e, -EIO, "no random numbers");
	id_new("key", x->id);
	int n = snprintf(
	        secret, APIKEY_SECRET_MAX, "%s%s_", secret_prefix, x->id + strlen(id_prefix));
	for (size_t i = 0; i < sizeof(bytes); i++)
		n += snprintf(secret + n, (size_t)(APIKEY_SECRET_MAX - n), "%02x", bytes[i]);
	explicit_bzero(bytes, sizeof(bytes));
	hash_of(secret, x->hash);
	return n == APIKEY_SECRET_MAX - 1 ? 0 : err_set(e, -EIO, "key: an id of another length");
}

int apikeys_add(struct apikeys *k, const struct json *body, char ret_id[ID_MAX],
        char ret_secret[APIKEY_SECRET_MAX], apikeys_done_fn *done, void *ctx, struct err *e)
{
	auto_apikey struct apikey *x = xnew(struct apikey);
	auto_buf struct buf spec = BUF_INIT(SPEC_MAX);
	if (key_read(body, x, e) < 0)
		return e->code;
	if (x->created_ms)
		return err_set(e, -EINVAL, "createdAt: is not for you to say");
	if (by_name(k, x->name))
		return err_set(e, -EBUSY, "there is a key '%s' already", x->name);
	if (x->expires_ms && over(x))
		return err_set(e, -EINVAL, "expiresAt: is over already");
	if (k->n >= APIKEYS_MAX)
		return err_set(
		        e, -E2BIG, "there are %d keys, and no more are possible", APIKEYS_MAX);
	if (invent(x, ret_secret, e) < 0)
		return e->code;
	x->created_ms = clock_wall_ms();
	memcpy(ret_id, x->id, ID_MAX);
	struct jw w = JW_INIT(&spec);
	jw_open(&w, NULL, '{');
	members(&w, x);
	jw_close(&w, '}');
	if (spec.failed)
		return err_set(e, spec.failed, "the key's names are too long");
	struct adding *a = xnew(struct adding);
	*a = (struct adding){.keys = k, .done = done, .ctx = ctx};
	memcpy(a->id, x->id, ID_MAX);
	const struct store_key row = {.id = x->id, .hash = x->hash, .spec = spec.p};
	store_add_key(k->d->store, &row, on_added, a);
	add(k, take(x));
	return 0;
}

int apikeys_revoke(
        struct apikeys *k, const char *name, apikeys_done_fn *done, void *ctx, struct err *e)
{
	struct apikey *x = by_name(k, name);
	if (!x)
		return err_set(e, -ENOENT, "no key '%.64s'", name);
	store_drop_key(k->d->store, x->id, done, ctx);
	forget(k, x);
	return 0;
}

/* ---- at the start ---- */

struct loading {
	struct apikeys *keys;
	int rc;
	struct err err;
};

static void load(void *ctx, const struct store_key *row)
{
	struct loading *l = ctx;
	auto_apikey struct apikey *x = xnew(struct apikey);
	auto_json struct json *spec = json_parse(row->spec, strlen(row->spec), &l->err);
	if (!spec || key_read(spec, x, &l->err) < 0) {
		l->rc = err_wrap(&l->err, "key %s of the state database", row->id);
		return;
	}
	(void)str_copy(x->id, sizeof(x->id), row->id);
	(void)str_copy(x->hash, sizeof(x->hash), row->hash);
	add(l->keys, take(x));
}

int apikeys_load(struct apikeys *k, struct err *e)
{
	struct loading l = {.keys = k};
	int rc = store_keys(k->d->store, load, &l, e);
	if (rc == 0 && l.rc < 0) {
		*e = l.err;
		rc = l.rc;
	}
	arm(k);
	return rc;
}
