/* What may be asked to be checked out, where a policy lets it be fetched from, what the program of
 * the clone may answer. */
#include "supervisor/repo.h"

#include "base/mem.h"
#include "tests/t.h"

static int reads(const char *text, struct repo_ask *ret)
{
	struct err e;
	auto_json struct json *j = json_parse(text, strlen(text), &e);
	return j ? repo_read(j, "repo", ret, &e) : e.code;
}

static bool refused(const char *text)
{
	struct repo_ask a = {.url = NULL};
	return reads(text, &a) == -EINVAL && !a.url && !a.bundle && !a.ref;
}

static void test_read(void)
{
	struct repo_ask a = {.url = NULL};
	ok(reads("{\"url\":\"https://a.example/x.git\",\"ref\":\"feature/y\"}", &a) == 0, "a URL");
	auto_free char *text = repo_write(&a);
	is_str(text, "{\"url\":\"https://a.example/x.git\",\"ref\":\"feature/y\"}", "and back");
	is_str(repo_source(&a), "https://a.example/x.git", "its source");
	repo_ask_done(&a);
	ok(reads("{\"bundle\":\"up/load\"}", &a) == 0 && !a.ref, "a bundle");
	is_str(repo_source(&a), "bundle", "its source");
	repo_ask_done(&a);
	static const char *const bad[] = {"{}", "{\"ref\":\"x\"}",
	        "{\"url\":\"https://a.example/x\",\"bundle\":\"x\"}", "{\"url\":\"\"}",
	        "{\"url\":\"ssh://a.example/x\"}", "{\"url\":\"ext::sh -c id\"}",
	        "{\"url\":\"file:///x\"}", "{\"url\":\"--upload-pack=x\"}",
	        "{\"url\":\"https://\"}", "{\"url\":\"https://a.example\"}",
	        "{\"url\":\"https://a.example/\"}", "{\"url\":\"https://u@a.example/x\"}",
	        "{\"url\":\"https://u:p@a.example/x\"}", "{\"url\":\"https://a.example/x y\"}",
	        "{\"url\":\"https://a.example/x\\n\"}", "{\"url\":\"https://a.example/x#y\"}",
	        "{\"bundle\":\"/x\"}", "{\"bundle\":\"../x\"}", "{\"bundle\":\"a/../x\"}",
	        "{\"bundle\":\"-x\"}", "{\"bundle\":\"\"}"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(refused(bad[i]), "refused: number %zu", i);
}

static void test_refs(void)
{
	static const char *const good[] = {"main", "feature/x-1", "v1.2.3", "a@b", "x+y"};
	static const char *const bad[] = {"", "-x", "--all", "a..b", "a b", "a~1", "a^", "a:b",
	        "/a", "a/", "a//b", ".a", "a.", "@{u}", "a@{1}", "a\nb", "*", "a\\b", "a?"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(repo_ref_ok(good[i]), "a ref: %s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!repo_ref_ok(bad[i]), "no ref: number %zu", i);
	struct err e;
	struct repo_ask a = {.url = NULL};
	ok(repo_parse("https://a.example/x#main", &a, &e) == 0, "URL#REF");
	is_str(a.ref, "main", "the ref");
	is_str(a.url, "https://a.example/x", "the URL");
	repo_ask_done(&a);
	ok(repo_parse("https://a.example/x#", &a, &e) == -EINVAL, "an empty ref");
	ok(repo_parse("https://a.example/x#a#b", &a, &e) == -EINVAL, "two");
}

static struct policy *a_policy(void)
{
	struct policy *p = xnew(struct policy);
	(void)str_copy(p->name, sizeof(p->name), "code");
	static const struct {
		const char *host;
		uint32_t protocol;
		uint16_t port;
	} rules[] = {{"a.example", RULE_TLS, 443}, {".b.example", RULE_TLS, 8443},
	        {"c.example", RULE_HTTP, 80}, {"d.example", RULE_RAW, 443}};
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		struct policy_rule *r = &p->rules[p->nrules++];
		(void)str_copy(r->host, sizeof(r->host), rules[i].host);
		r->protocol = rules[i].protocol;
		r->ports[r->nports++] = rules[i].port;
	}
	struct policy_inject *j = &p->inject[p->ninject++];
	(void)str_copy(j->host, sizeof(j->host), "git.agentbox");
	(void)str_copy(j->upstream, sizeof(j->upstream), "https://git.example/team");
	return p;
}

static const struct outlets all_of_it;

static void test_narrowed(void)
{
	auto_free struct policy *p = a_policy();
	(void)str_copy(p->inject[0].secret, sizeof(p->inject[0].secret), "CODE");
	char only[] = "a.example", none[] = "OTHER";
	char *hosts[] = {only, NULL}, *secrets[] = {none, NULL};
	struct outlets few, no_secret;
	struct err e = {0};
	ok(outlets_make(hosts, NULL, &few, &e) == 0 &&
	                outlets_make(NULL, secrets, &no_secret, &e) == 0,
	        "harnesses that narrow");
	char here[] = "https://a.example/x", there[] = "https://d.example/x";
	char through[] = "https://git.example/team/x";
	const struct repo_ask a = {.url = here}, d = {.url = there}, g = {.url = through};
	auto_free char *from = repo_from(&a, p, &few, &e);
	is_str(from, here, "a host that is left");
	ok(!repo_from(&d, p, &few, &e) && e.code == -ENOEXEC && strstr(e.text, "narrow"),
	        "one not");
	ok(!repo_from(&g, p, &few, &e) && e.code == -ENOEXEC, "nor the way by an injected name");
	ok(!repo_from(&g, p, &no_secret, &e) && strstr(e.text, "secrets"),
	        "nor without its secret");
	auto_free char *still = repo_from(&d, p, &no_secret, &e);
	is_str(still, there, "what needs none");
}

static void test_from(void)
{
	auto_free struct policy *p = a_policy();
	static const struct {
		const char *url, *from;
	} all[] = {
	        {"https://a.example/x", "https://a.example/x"},
	        {"https://A.example:443/x", "https://A.example:443/x"},
	        {"https://x.b.example:8443/x", "https://x.b.example:8443/x"},
	        {"http://c.example/x", "http://c.example/x"},
	        {"https://d.example/x", "https://d.example/x"},
	        {"http://git.agentbox/x", "http://git.agentbox/x"},
	        {"https://git.example/team/x", "http://git.agentbox/x"},
	        {"https://git.example/teams/x", NULL},
	        {"https://git.example/other/x", NULL},
	        {"https://git.agentbox/x", NULL},
	        {"http://git.agentbox:8080/x", NULL},
	        {"http://a.example/x", NULL},
	        {"https://a.example:444/x", NULL},
	        {"https://c.example/x", NULL},
	        {"https://b.example:8443/x", NULL},
	        {"https://e.example/x", NULL},
	        {"https://a.example:/x", NULL},
	        {"https://a.example:99999/x", NULL},
	        {"https://a.example:44x/x", NULL},
	        {"https://a.example.evil.example/x", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct err e = {0};
		struct repo_ask a = {.url = xstrdup(all[i].url)};
		auto_free char *from = repo_from(&a, p, &all_of_it, &e);
		if (all[i].from)
			is_str(from ? from : e.text, all[i].from, "%s", all[i].url);
		else
			ok(!from && e.code == -ENOEXEC, "not let out: %s", all[i].url);
		repo_ask_done(&a);
	}
}

#define OBJECT "0123456789abcdef0123456789abcdef01234567"

static void test_base(void)
{
	struct repo_base x;
	ok(repo_base_read("base " OBJECT "\nref main\n", &x), "a branch");
	is_str(x.base, OBJECT, "the object");
	is_str(x.ref, "main", "its name");
	ok(repo_base_read("base " OBJECT "\nref \n", &x) && !x.ref[0], "none");
	static const char *const bad[] = {"", "base " OBJECT, "base " OBJECT "\nref main",
	        "base " OBJECT "0\nref main\n", "base xyz\nref main\n",
	        "base " OBJECT "\nref main\nmore\n", "base " OBJECT "\nref -x\n",
	        " base " OBJECT "\nref main\n", "base " OBJECT " \nref main\n"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!repo_base_read(bad[i], &x), "not: number %zu", i);
}

static void test_commands(void)
{
	struct repo_command c;
	const struct repo_who who = {.name = "Ann"};
	repo_changes_command(OBJECT, "run_x", &who, &c);
	bool name = false, email = false;
	for (size_t i = 0; c.env[i]; i++) {
		name |= strcmp(c.env[i], "GIT_AUTHOR_NAME=Ann") == 0;
		email |= strcmp(c.env[i], "GIT_COMMITTER_EMAIL=" REPO_EMAIL) == 0;
	}
	ok(name && email, "who commits, as far as it is said");
	is_str(c.argv[4], OBJECT, "of what");
	repo_command_done(&c);
	static const char *const trust[] = {"SSL_CERT_FILE=/x", NULL};
	const struct repo_ask a = {.bundle = (char *)(uintptr_t) "up"};
	repo_clone_command(&a, NULL, "run_x", trust, &c);
	bool trusts = false, file = false;
	for (size_t i = 0; c.env[i]; i++) {
		trusts |= strcmp(c.env[i], trust[0]) == 0;
		file |= strcmp(c.env[i], "GIT_ALLOW_PROTOCOL=file") == 0;
	}
	ok(trusts && file, "what it trusts, and how it fetches");
	repo_command_done(&c);
}

int main(void)
{
	test_read();
	test_refs();
	test_from();
	test_narrowed();
	test_base();
	test_commands();
	return done();
}
