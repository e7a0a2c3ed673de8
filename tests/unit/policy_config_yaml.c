#include "policy/config_yaml.h"
#include "base/ids.h"
#include "base/mem.h"
#include "tests/fixtures.h"

static struct idents ids;

static void bad(const char *path, const char *text, size_t n)
{
	struct err e = {0};
	const struct keys_ctx k = {.file = path, .e = &e};
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	int r = config_parse(&k, &ids, text, n, c);
	fixture_check(path, text, r < 0 ? e.text : "(accepted)");
}

static void good(void)
{
	static const char text[] = "users: {supervisor: boxbrain, egress: 4242}\n"
	                           "group: operators\n"
	                           "default_policy: strict\n"
	                           "runs: {max: 3, queue: 0, pool: 2}\n"
	                           "secrets:\n"
	                           "  A: {file: /etc/agentbox/secrets/a}\n"
	                           "  B: {env: B_FROM}\n"
	                           "  C: {credential: c.key}\n"
	                           "  D: {command: [/usr/bin/pass, show, a b]}\n"
	                           "prices:\n"
	                           "  our-*: {input: 0.5, output: 2}\n"
	                           "  gpt-5: {input: 1, output: 2, cached: 0, stored: 3}\n"
	                           "expose_env: [LANG, TZ]\n"
	                           "harness_dirs: [/srv/h]\n";
	struct err e = {0};
	const struct keys_ctx k = {.file = "c", .e = &e};
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	must(config_parse(&k, &ids, text, strlen(text), c) == 0, "parses: %s", e.text);
	ok(c->supervisor_uid == 811 && c->supervisor_gid == 812, "user by name has its group");
	ok(c->egress_uid == 4242 && c->egress_gid == 4242, "user by number");
	ok(c->socket_gid == 900, "group by name");
	is_str(c->default_policy, "strict", "default_policy");
	ok(c->max_runs == 3 && c->max_queued == 0 && c->pool == 2, "runs");
	ok(c->nsecrets == 4 && c->secrets[0].source == SECRET_FILE &&
	                c->secrets[1].source == SECRET_ENV &&
	                c->secrets[2].source == SECRET_CREDENTIAL,
	        "secrets");
	is_str(c->secrets[2].where, "c.key", "credential");
	ok(c->secrets[3].source == SECRET_COMMAND && c->secrets[3].nargs == 3 &&
	                memcmp(c->secrets[3].where, "/usr/bin/pass\0show\0a b", 23) == 0,
	        "a command with its arguments");
	ok(c->nexposed == 2, "exposed");
	const struct price *p = price_find(c->prices, c->nprices, "our-7b");
	ok(p && p->input == 500000 && p->output == 2000000 && p->cached == 500000 &&
	                p->stored == 500000,
	        "a price; what it does not say is that of the input");
	p = price_find(c->prices, c->nprices, "gpt-5");
	ok(p && p->cached == 0 && p->stored == 3000000, "before the built-in ones");
	p = price_find(c->prices, c->nprices, "claude-sonnet-4-5");
	ok(p && p->input == 3000000 && p->output == 15000000, "which are there, too");
	is_str(c->harness_dirs[0], "/srv/h", "harness_dirs replaces the default");
	is_str(c->harness_dirs[1], "", "and no more");
}

static void defaults(void)
{
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	must(config_defaults(&ids, c, NULL) == 0, "defaults");
	is_str(c->default_policy, "default", "default policy");
	ok(c->supervisor_uid == 821 && c->supervisor_gid == 822, "our user where it exists");
	ok(c->egress_uid == ID_EGRESS && c->egress_gid == ID_EGRESS, "else the number");
	ok(c->socket_gid == 901, "group agentbox where it exists");
	struct idents none = {0};
	must(config_defaults(&none, c, NULL) == 0, "defaults without names");
	ok(c->socket_gid == 0, "else root");
}

static void lookups(void)
{
	uint32_t uid = 7, gid = 7;
	ok(idents_user(&ids, "box", &uid, &gid) == -ENOENT && uid == 7, "a prefix is no user");
	ok(idents_user(&ids, "broken", &uid, &gid) == -ENOENT, "a cut line is no user");
	ok(idents_group(&ids, "huge", &gid) == -ENOENT, "an id beyond 32 bits is none");
}

int main(void)
{
	ids.passwd = xstrdup("root:x:0:0::/root:/bin/sh\nboxbrain:x:811:812::/:/bin/false\n"
	                     "agentbox-supervisor:x:821:822::/:/bin/false\nbroken:x\n");
	ids.group =
	        xstrdup("root:x:0:\noperators:x:900:a,b\nagentbox:x:901:\nhuge:x:99999999999:\n");
	good();
	defaults();
	lookups();
	ok(fixtures_each("tests/fixtures/config/bad", bad) >= 10, "faulty files");
	idents_done(&ids);
	return done();
}
