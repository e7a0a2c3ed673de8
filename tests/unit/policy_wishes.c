#include "policy/wishes.h"
#include "base/buf.h"
#include "base/mem.h"
#include "tests/t.h"

#include <string.h>

static struct harness *parse(const char *file, const char *keys)
{
	struct err e = {0};
	auto_free char *text = xasprintf("---\nbackend: exec\ncommand: [x]\n%s---\n", keys);
	struct harness *h = harness_parse(file, text, strlen(text), NULL, NULL, &e);
	ok(h != NULL, "parses: %s", e.text);
	return h;
}

static void put(void *ctx, int line, const char *wish)
{
	buf_printf(ctx, "%d %s;", line, wish);
}

static void wants(const char *keys, const char *want)
{
	auto_buf struct buf got = BUF_INIT(4096);
	struct harness *h = parse("packs/p/h.md", keys);
	harness_wishes(h, put, &got);
	is_str(got.len ? got.p : "", want, "what is wanted");
	harness_unref(h);
}

static void grants(const char *keys, char *const *list, const char *missing)
{
	struct err e = {0};
	struct harness *h = parse("packs/p/h.md", keys);
	int r = harness_granted(h, list, &e);
	if (missing)
		ok(r == -EACCES && strstr(e.text, missing), "refused: %s", e.text);
	else
		ok(r == 0, "granted");
	harness_unref(h);
}

static void names(const char *file, const char *want)
{
	struct harness *h = parse(file, "secrets: []\n");
	is_str(h->name, want, "name");
	harness_unref(h);
}

int main(void)
{
	wants("secrets: []\nverify: { command: [make] }\n", "");
	wants("", "1 secrets:*;");
	wants("secrets: [A, B]\n", "4 secrets:A;4 secrets:B;");
	wants("secrets: []\npolicy: lax\nenv: [HOME]\nwebhooks: [w]\n",
	        "5 policy:lax;6 env:HOME;7 webhooks:w;");
	wants("secrets: []\nworkspace: { template: t, snapshot: s, repo: 'https://h/x' }\n",
	        "5 template:t;5 snapshot:s;5 repo:https://h/x;");
	wants("secrets: []\nsandbox: { user: root }\nwarm: { idleMs: 1000, ahead: 1 }\n",
	        "5 user:root;6 warm:ahead;");
	wants("secrets: []\nenv: { A: b }\n", ""); /* given, not taken */

	char every[] = "secrets:*", a[] = "secrets:A", no[] = "secrets:", other[] = "secret:*";
	char *all[] = {every, NULL}, *one[] = {a, NULL}, *prefix[] = {no, other, NULL};
	grants("", all, NULL);
	grants("secrets: [A, B]\n", all, "packs/p/h.md:4: its pack is not granted 'secrets:A'");
	char hooks[] = "webhooks:*", *any[] = {hooks, NULL};
	grants("secrets: []\nwebhooks: [a, b]\n", any, NULL);
	grants("secrets: [A]\n", one, NULL);
	grants("secrets: [A, B]\n", one, "packs/p/h.md:4: its pack is not granted 'secrets:B'");
	grants("", one, "'secrets:*'");
	grants("secrets: [A]\n", prefix, "'secrets:A'");
	grants("secrets: [A]\n", NULL, "'secrets:A'");
	grants("secrets: []\n", NULL, NULL);

	names("h.md", "h");
	names("packs/p/h.md", "p.h");
	names("packs/p/harnesses/h.md", "p.h");
	names("/packs/p/h.md", "h");
	return done();
}
