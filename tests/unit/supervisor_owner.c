/* Users of tenants: two with one name are different in all that compares them, and a view of one
 * tenant holds nothing of another, whatever their names. */
#include "supervisor/owner.h"

#include "supervisor/sessions.h"
#include "supervisor/stats.h"
#include "supervisor/store.h"
#include "tests/t.h"

static struct err e;

static void test_names(void)
{
	char a[OWNER_MAX], b[OWNER_MAX], tenant[NAME_MAX_LEN], user[SESSION_PART_MAX + 2];
	ok(owner_make("acme", "ana", a, &e) == 0 && owner_make("bolt", "ana", b, &e) == 0, "two");
	ok(strcmp(a, b) != 0, "of two tenants with one name");
	is_str(owner_user(a), "ana", "the user");
	owner_tenant(a, tenant);
	is_str(tenant, "acme", "the tenant");
	ok(owner_make("", "acme", a, &e) == 0, "a user of none");
	owner_tenant(a, tenant);
	is_str(tenant, "", "has none, also with a tenant's name");
	is_str(owner_user(a), "acme", "and is itself");
	ok(owner_make("Acme\x1f", "ana", a, &e) == -EINVAL, "no such tenant can be: %s", e.text);
	memset(user, 'u', sizeof(user));
	user[SESSION_PART_MAX + 1] = '\0';
	ok(owner_make("acme", user, a, &e) == -EINVAL, "too long: %s", e.text);
	user[SESSION_PART_MAX] = '\0';
	ok(owner_make("acme", user, a, &e) == 0 && strcmp(owner_user(a), user) == 0, "the longest");
	ok(session_owner_check(a, &e) == 0, "is one");
	ok(session_owner_check("ana", &e) == 0, "so is one of no tenant");
	ok(session_owner_check("ACME\x1f"
	                       "ana",
	           &e) == -EINVAL,
	        "not of a tenant that cannot be");
	ok(session_owner_check("acme\x1f"
	                       "ana\x1f"
	                       "x",
	           &e) == -EINVAL,
	        "nor with a second separator");
}

static char found[256];
static void see_session(void *ctx, const struct store_session *s)
{
	(void)ctx;
	strncat(found, s->id, sizeof(found) - strlen(found) - 1);
}
static void see_run(void *ctx, const struct store_run *r)
{
	(void)ctx;
	strncat(found, r->id, sizeof(found) - strlen(found) - 1);
}

static void add(
        struct store *st, const char *n, const char *tenant, const char *user, const char *harness)
{
	char owner[OWNER_MAX], session[16], run[16];
	must(owner_make(tenant, user, owner, &e) == 0, "%s of '%s'", user, tenant);
	snprintf(session, sizeof(session), "s%s,", n);
	snprintf(run, sizeof(run), "r%s,", n);
	const struct store_session s = {.id = session, .user = owner, .goal = "g"};
	const struct store_run r = {
	        .id = run, .session = session, .harness = harness, .prompt = "p", .prompt_len = 1};
	store_add_run(st, &s, &r, "key", run, NULL, NULL);
	store_drain(st);
}

static const char *seen(struct store *st, const struct store_view *v, unsigned limit, int runs)
{
	const struct store_run_filter f = {.view = v, .limit = limit};
	found[0] = '\0';
	int rc = runs ? store_runs(st, &f, see_run, NULL, &e)
	              : store_sessions(st, NULL, NULL, v, NULL, limit, see_session, NULL, &e);
	return rc < 0 ? e.text : found;
}

static void test_views(struct store *st)
{
	char from[NAME_MAX_LEN + 1], to[NAME_MAX_LEN + 1], run[ID_MAX], hash[65];
	add(st, "1", "", "ana", "h");
	add(st, "2", "acme", "ana", "h");
	add(st, "3", "acm", "ana", "h");
	add(st, "4", "acme2", "ana", "h");
	add(st, "5", "acme", "\xf0\x9f\x90\x9d", "i");
	add(st, "6", "", "acme", "h");
	add(st, "7", "acme-", "ana", "h");
	owner_range("acme", from, to);
	const struct store_view acme = {.from = from, .to = to};
	is_str(seen(st, &acme, 9, 0), "s5,s2,", "sessions of a tenant");
	is_str(seen(st, &acme, 9, 1), "r5,r2,", "its runs");
	is_str(seen(st, &acme, 1, 1), "r5,", "a page is full of what may be seen");
	is_str(seen(st, NULL, 9, 0), "s7,s6,s5,s4,s3,s2,s1,", "who sees all sees all");
	const struct store_view ana = {
	        .from = from, .to = to, .owners = "[\"acme\\u001fana\",\"acme\\u001fx\"]"};
	is_str(seen(st, &ana, 9, 0), "s2,", "of some of its users");
	const struct store_view i = {.from = from, .to = to, .harnesses = "[\"i\",\"x\"]"};
	is_str(seen(st, &i, 9, 1), "r5,", "runs of some harnesses");
	const struct store_view none = {.from = from, .to = to, .owners = "[]"};
	is_str(seen(st, &none, 9, 1), "", "of nobody");
	ok(store_idempotent(st, "ana", "key", run, hash) == 0 && strcmp(run, "r1,") == 0 &&
	                store_idempotent(st,
	                        "acme\x1f"
	                        "ana",
	                        "key", run, hash) == 0 &&
	                strcmp(run, "r2,") == 0,
	        "an idempotency key is each one's own");
}

int main(void)
{
	static struct stats stats;
	char dir[] = "/tmp/agentbox-owner-XXXXXX", db[64];
	must(mkdtemp(dir) != NULL, "a directory");
	snprintf(db, sizeof(db), "%s/db", dir);
	test_names();
	struct store *st = store_open(db, &stats, &e);
	must(st != NULL, "a store %s", st ? "" : e.text);
	test_views(st);
	store_close(st);
	unlink(db);
	rmdir(dir);
	return done();
}
