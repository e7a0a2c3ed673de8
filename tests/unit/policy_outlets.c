/* A narrowing narrows, whatever it says, and says what it cannot. */
#include "policy/outlets.h"

#include "base/mem.h"
#include "tests/t.h"

static struct policy policy(void)
{
	struct policy p = {.name = "p", .ninject = 2, .nrules = 2};
	(void)str_copy(p.inject[0].host, sizeof(p.inject[0].host), "a.agentbox");
	(void)str_copy(p.inject[0].secret, sizeof(p.inject[0].secret), "KEY_A");
	(void)str_copy(p.inject[1].host, sizeof(p.inject[1].host), "plain.agentbox");
	(void)str_copy(p.rules[0].host, sizeof(p.rules[0].host), "one.example");
	(void)str_copy(p.rules[1].host, sizeof(p.rules[1].host), ".wild.example");
	for (int i = 0; i < 2; i++) {
		p.rules[i].nports = 1;
		p.rules[i].ports[0] = 443;
	}
	return p;
}

static struct outlets make(char *const *hosts, char *const *secrets)
{
	struct outlets r;
	struct err e;
	must(outlets_make(hosts, secrets, &r, &e) == 0, "%s", e.text);
	return r;
}

static bool host(const struct outlets *r, const char *name)
{
	return outlets_host(r, name, strlen(name));
}

static void narrows(void)
{
	const struct policy p = policy();
	char one[] = "one.example", deep[] = "x.y.wild.example", a[] = "a.agentbox",
	     key[] = "KEY_A";
	char *hosts[] = {one, deep, NULL}, *none[] = {NULL}, *keys[] = {key, NULL},
	     *injected[] = {a, NULL};
	struct err e;
	struct outlets r = make(NULL, NULL);
	ok(host(&r, "any") && outlets_inject(&r, &p.inject[0]) && outlets_addresses(&r),
	        "nothing said");
	r = make(hosts, NULL);
	ok(host(&r, "ONE.example") && host(&r, deep) && !host(&r, "wild.example") &&
	                !host(&r, "xone.example") && !host(&r, "one.exampl"),
	        "these hosts");
	ok(!outlets_addresses(&r) && !outlets_inject(&r, &p.inject[1]), "and nothing else");
	ok(outlets_fits(&r, &p, &e) == 0, "which the policy has");
	r = make(none, NULL);
	ok(!host(&r, one) && !outlets_inject(&r, &p.inject[0]), "none");
	r = make(NULL, none);
	ok(host(&r, one) && !outlets_inject(&r, &p.inject[0]) && outlets_inject(&r, &p.inject[1]),
	        "no secret, but what needs none");
	r = make(injected, keys);
	ok(outlets_inject(&r, &p.inject[0]) && outlets_fits(&r, &p, &e) == 0,
	        "the host and its secret");
	r = make(injected, none);
	ok(!outlets_inject(&r, &p.inject[0]), "the host without its secret");
}

/* Secrets that enter jails do so for who names them. */
static void gives(void)
{
	struct policy p = policy();
	char key[] = "KEY_C";
	char *keys[] = {key, NULL}, *none[] = {NULL};
	struct err e;
	p.ngiven = 1;
	p.given[0] = (struct policy_given){"KEY_C", "TOKEN"};
	struct outlets r = make(NULL, keys);
	ok(outlets_fits(&r, &p, &e) == 0, "the policy gives it");
	is_str(outlets_given(&r, &p.given[0]), "TOKEN", "to who names it");
	ok(!outlets_inject(&r, &p.inject[0]), "who has named no other then");
	r = make(NULL, none);
	ok(!outlets_given(&r, &p.given[0]), "not to who names none");
	r = make(NULL, NULL);
	ok(!outlets_given(&r, &p.given[0]), "nor to who says nothing");
}

static void widens(void)
{
	const struct policy p = policy();
	char other[] = "other.example", key[] = "KEY_B";
	char *hosts[] = {other, NULL}, *keys[] = {key, NULL};
	struct err e;
	struct outlets r = make(hosts, NULL);
	ok(outlets_fits(&r, &p, &e) == -EACCES && strstr(e.text, other), "a host: %s", e.text);
	r = make(NULL, keys);
	ok(outlets_fits(&r, &p, &e) == -EACCES && strstr(e.text, key), "a secret: %s", e.text);
}

static void bounds(void)
{
	char one[] = "x.example", *many[OUTLETS_HOSTS + 2];
	char longest[POLICY_HOST_MAX + 1], *lists[] = {longest, NULL};
	struct outlets r;
	struct err e;
	for (int i = 0; i <= OUTLETS_HOSTS; i++)
		many[i] = one;
	many[OUTLETS_HOSTS + 1] = NULL;
	ok(outlets_make(many, NULL, &r, &e) == -E2BIG, "too many: %s", e.text);
	memset(longest, 'a', sizeof(longest));
	longest[POLICY_HOST_MAX] = '\0';
	ok(outlets_make(lists, NULL, &r, &e) == -E2BIG, "too long: %s", e.text);
	r = make(NULL, NULL);
	ok(outlets_ok(&r), "in its bounds");
	r.nhosts = OUTLETS_HOSTS + 1;
	ok(!outlets_ok(&r), "not");
	r.nhosts = 1;
	memset(r.hosts[0], 'a', sizeof(r.hosts[0]));
	ok(!outlets_ok(&r), "nor with a text that does not end");
}

int main(void)
{
	narrows();
	gives();
	widens();
	bounds();
	return done();
}
