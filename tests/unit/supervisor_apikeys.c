/* API keys without a server: what a request for one may say, what is kept, which secrets are
 * taken, rates, budgets. */
#include "supervisor/apikeys.h"

#include "base/clock.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/owner.h"
#include "supervisor/store.h"
#include "tests/t.h"

static struct daemon d;
static struct err e;
static int told = 1;

static void done_(void *ctx, int rc, const struct err *x)
{
	(void)ctx;
	(void)x;
	told = rc;
}

static char id[ID_MAX], secret[APIKEY_SECRET_MAX];

static int add(const char *text)
{
	auto_json struct json *body = json_parse(text, strlen(text), &e);
	must(body != NULL, "%s", text);
	told = 1;
	int rc = apikeys_add(d.keys, body, id, secret, done_, NULL, &e);
	if (rc == 0) {
		store_drain(d.store);
		rc = told;
	}
	return rc;
}

static void refused(const char *text, const char *why)
{
	int rc = add(text);
	ok(rc < 0 && strstr(e.text, why), "%s: %s", text, rc < 0 ? e.text : "taken");
}

static void test_requests(void)
{
	refused("{}", "name: missing");
	refused("{\"name\":\"A\"}", "name: 'A' is no name");
	refused("{\"name\":\"a\",\"tenant\":\"../x\"}", "tenant:");
	refused("{\"name\":\"a\",\"users\":[]}", "users: is empty");
	refused("{\"name\":\"a\",\"users\":[\"\"]}", "users is empty");
	refused("{\"name\":\"a\",\"users\":[1]}", "users[0]");
	refused("{\"name\":\"a\",\"users\":[\"b\\u001fc\"]}", "control character");
	refused("{\"name\":\"a\",\"harnesses\":[\"X Y\"]}", "harnesses:");
	refused("{\"name\":\"a\",\"verbs\":[\"fly\"]}", "is none of read run steer");
	refused("{\"name\":\"a\",\"verbs\":[]}", "verbs: is empty");
	refused("{\"name\":\"a\",\"rate\":0}", "rate:");
	refused("{\"name\":\"a\",\"runRate\":-1}", "runRate:");
	refused("{\"name\":\"a\",\"rate\":1e9}", "rate:");
	refused("{\"name\":\"a\",\"tokensPerDay\":0}", "tokensPerDay:");
	refused("{\"name\":\"a\",\"costUsdPerDay\":0}", "costUsdPerDay:");
	refused("{\"name\":\"a\",\"costUsdPerDay\":1e300}", "costUsdPerDay:");
	refused("{\"name\":\"a\",\"expiresAt\":\"soon\"}", "expiresAt:");
	refused("{\"name\":\"a\",\"expiresAt\":\"2020-01-01T00:00:00.000Z\"}", "over already");
	refused("{\"name\":\"a\",\"createdAt\":\"2020-01-01T00:00:00.000Z\"}", "createdAt:");
	refused("{\"name\":\"a\",\"hash\":\"x\"}", "unknown field");
}

static void test_secrets(void)
{
	char wrong[APIKEY_SECRET_MAX + 1];
	ok(add("{\"name\":\"a\"}") == 0, "a key");
	const struct apikey *k = apikeys_of_secret(d.keys, secret);
	ok(k && strcmp(k->id, id) == 0 && strcmp(k->tenant, "a") == 0, "by its secret");
	ok(k->verbs == (1u << APIKEY_VERB_COUNT) - 1, "does all that a key may");
	for (size_t i = 0; i < strlen(secret); i++) {
		memcpy(wrong, secret, sizeof(secret));
		wrong[i] = wrong[i] == 'x' ? 'y' : 'x';
		if (apikeys_of_secret(d.keys, wrong))
			ok(0, "a secret with another digit at %zu", i);
	}
	snprintf(wrong, sizeof(wrong), "%sx", secret);
	ok(!apikeys_of_secret(d.keys, wrong), "a longer one");
	wrong[strlen(secret) - 1] = '\0';
	ok(!apikeys_of_secret(d.keys, wrong) && !apikeys_of_secret(d.keys, ""), "shorter ones");
	ok(add("{\"name\":\"a\"}") == -EBUSY, "a name is taken once: %s", e.text);
}

static void test_kept(void)
{
	auto_buf struct buf before = BUF_INIT(1 << 16), after = BUF_INIT(1 << 16);
	struct jw w = JW_INIT(&before), v = JW_INIT(&after);
	ok(add("{\"name\":\"all\",\"tenant\":\"acme\",\"users\":[\"ana\",\"\xc3\xa9\"],"
	       "\"harnesses\":[\"h\"],\"policies\":[\"default\"],\"rate\":60,\"runRate\":2,"
	       "\"tokensPerDay\":5000,\"costUsdPerDay\":2.5,"
	       "\"expiresAt\":\"2999-01-01T00:00:00.000Z\"}") == 0,
	        "one with everything");
	const struct apikey *k = apikeys_of_secret(d.keys, secret);
	must(k != NULL, "is taken");
	ok(!apikey_has_verb(k, APIKEY_VERB_EXEC) && apikey_has_verb(k, APIKEY_VERB_PORT),
	        "bound to harnesses, it starts no commands unless that is said");
	ok(apikey_names(k->users, "ana") && !apikey_names(k->users, "bo") &&
	                apikey_names(NULL, "bo"),
	        "names");
	apikeys_list(d.keys, &w);
	apikeys_free(d.keys);
	d.keys = apikeys_new(&d);
	ok(apikeys_load(d.keys, &e) == 0, "read again");
	k = apikeys_of_secret(d.keys, secret);
	must(k != NULL, "the secret is still known");
	((struct apikey *)(uintptr_t)k)->used_ms = 0;
	apikeys_list(d.keys, &v);
	auto_free char *said = xstrndup(before.p, before.len);
	char *used = strstr(said, ",\"usedAt\"");
	ok(used && !strstr(said, secret + 31), "no secret is shown");
	ok(after.len > 0 && strncmp(strstr(after.p, "\"acme\""), strstr(before.p, "\"acme\""),
	                            200) == 0,
	        "all of it is as it was");
	ok(apikeys_revoke(d.keys, "all", done_, NULL, &e) == 0 &&
	                !apikeys_of_secret(d.keys, secret),
	        "revoked at once");
	store_drain(d.store);
	apikeys_free(d.keys);
	d.keys = apikeys_new(&d);
	ok(apikeys_load(d.keys, &e) == 0 && !apikeys_of_secret(d.keys, secret), "and for good");
	ok(apikeys_revoke(d.keys, "all", done_, NULL, &e) == -ENOENT, "once: %s", e.text);
}

static void test_rate(void)
{
	const int64_t second = 1000 * 1000;
	struct apikey_rate r = {.per_minute = 2}, any = {.per_minute = 0};
	int64_t now = 1000 * second;
	ok(apikey_rate_take(&any, now) == 0, "no bound");
	ok(apikey_rate_take(&r, now) == 0 && apikey_rate_take(&r, now) == 0, "a minute's worth");
	int64_t wait = apikey_rate_take(&r, now);
	ok(wait >= 30000 && wait <= 30001, "then one in 30 s: %lld", (long long)wait);
	ok(apikey_rate_take(&r, now + 29 * second) > 0, "not before");
	ok(apikey_rate_take(&r, now + 31 * second) == 0, "then");
	ok(apikey_rate_take(&r, now + 31 * second) > 0, "and no second");
	ok(apikey_rate_take(&r, now + 3600 * second) == 0 &&
	                apikey_rate_take(&r, now + 3600 * second) == 0 &&
	                apikey_rate_take(&r, now + 3600 * second) > 0,
	        "what was not used does not add up");
}

static void spend(const char *tenant, const char *user, uint64_t tokens, uint64_t micro)
{
	char owner[OWNER_MAX];
	must(owner_make(tenant, user, owner, &e) == 0, "%s of '%s' spends", user, tenant);
	const struct store_spent x = {.scope = BUDGET_USER,
	        .id = owner,
	        .day = ledger_day(clock_wall_ms()),
	        .spent.sum = {.tokens = tokens, .cost_micro = micro}};
	store_spend(d.store, &x, 1);
	store_drain(d.store);
}

static void test_budget(void)
{
	ok(add("{\"name\":\"t\",\"tenant\":\"acme\",\"tokensPerDay\":100}") == 0, "tokens");
	const struct apikey *t = apikeys_of_secret(d.keys, secret);
	ok(add("{\"name\":\"c\",\"tenant\":\"acme\",\"costUsdPerDay\":0.5}") == 0, "money");
	const struct apikey *c = apikeys_of_secret(d.keys, secret);
	must(t && c, "both");
	spend("", "acme", 1000, 9000000);
	spend("acme2", "ana", 1000, 9000000);
	ok(apikeys_budget(d.keys, t, &e) == 0, "what others spend does not count");
	spend("acme", "ana", 60, 200000);
	ok(apikeys_budget(d.keys, t, &e) == 0 && apikeys_budget(d.keys, c, &e) == 0, "room");
	spend("acme", "bo", 40, 200000);
	ok(apikeys_budget(d.keys, t, &e) == -EDQUOT, "all users together: %s", e.text);
	ok(apikeys_budget(d.keys, c, &e) == 0, "each by its own measure");
	spend("acme", "bo", 40, 300000);
	ok(apikeys_budget(d.keys, c, &e) == -EDQUOT, "money: %s", e.text);
	ok(apikeys_tomorrow_ms() > 0 && apikeys_tomorrow_ms() <= (int64_t)24 * 3600 * 1000,
	        "until tomorrow");
}

int main(void)
{
	char dir[] = "/tmp/agentbox-apikeys-XXXXXX", db[64];
	must(mkdtemp(dir) != NULL, "a directory");
	snprintf(db, sizeof(db), "%s/db", dir);
	d.store = store_open(db, &d.stats, &e);
	must(d.store != NULL, "a store");
	d.keys = apikeys_new(&d);
	test_requests();
	test_secrets();
	test_kept();
	test_rate();
	test_budget();
	apikeys_free(d.keys);
	store_close(d.store);
	unlink(db);
	rmdir(dir);
	return done();
}
