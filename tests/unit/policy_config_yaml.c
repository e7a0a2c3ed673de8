#include "policy/config_yaml.h"
#include "base/ids.h"
#include "base/log.h"
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
	static const char text[] =
	        "users: {supervisor: boxbrain, egress: 4242}\n"
	        "group: operators\n"
	        "default_policy: strict\n"
	        "runs: {max: 3, queue: 0, pool: 2, queue_timeout: 90s,\n"
	        "  per_user: 2, per_user_queue: 7, memory: 48G, cpus: host,\n"
	        "  shares: [{tenant: acme, weight: 3, max: 12},\n"
	        "    {tenant: acme, user: 'A b', queue: 5}, {user: ana}]}\n"
	        "secrets:\n"
	        "  A: {file: /etc/agentbox/secrets/a}\n"
	        "  B: {env: B_FROM}\n"
	        "  C: {credential: c.key}\n"
	        "  D: {command: [/usr/bin/pass, show, a b]}\n"
	        "prices:\n"
	        "  our-*: {input: 0.5, output: 2}\n"
	        "  gpt-5: {input: 1, output: 2, cached: 0, stored: 3}\n"
	        "webhooks:\n"
	        "  - {name: a, url: https://a.example.com/x, secret: A}\n"
	        "  - {name: b, url: 'http://10.0.0.7:80', secret: B,\n"
	        "     events: [error], harnesses: [h-*], users: [u, v],\n"
	        "     named_only: true, addresses: [10.0.0.7], timeout: 3s,\n"
	        "     retry: {first: 2s, most: 1m, give_up: 2h}}\n"
	        "otlp: {url: 'https://c.example.com/v1/traces', sample: 0.25,\n"
	        "  headers: {authorization: {value: 'Bearer ', secret: A}},\n"
	        "  attributes: {k.v: x y}, delay: 2s, retry: {most: 3m}}\n"
	        "log: {format: json, level: warn}\n"
	        "artifacts: {store: s3, s3: {endpoint: 'http://10.0.0.7:9000',\n"
	        "  region: eu-1, bucket: my.bucket, prefix: a/B_c, access_key: A,\n"
	        "  secret_key: B, session_token: C, path_style: true, sse: AES256,\n"
	        "  presign_ttl: 10m, keep_local: false, part_size: 5M,\n"
	        "  addresses: [10.0.0.7], timeout: 3s,\n"
	        "  retry: {first: 2s, most: 1m, give_up: 2h}}}\n"
	        "expose_env: [LANG, TZ]\n"
	        "harness_dirs: [/srv/h]\n";
	struct err e = {0};
	const struct keys_ctx k = {.file = "c", .e = &e};
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	must(config_parse(&k, &ids, text, strlen(text), c) == 0, "parses: %s", e.text);
	const struct otlp *o = &c->otlp;
	is_str(o->to.url, "https://c.example.com/v1/traces", "otlp");
	ok(o->sample == 250000 && o->delay_ms == 2000 && o->to.most_ms == 180000 &&
	                o->to.first_ms == 1000 && o->nheaders == 1 && o->nattributes == 1,
	        "its numbers");
	ok(strcmp(o->headers[0].name, "authorization") == 0 &&
	                strcmp(o->headers[0].value, "Bearer ") == 0 &&
	                strcmp(o->headers[0].secret, "A") == 0 &&
	                strcmp(o->attributes[0].key, "k.v") == 0 &&
	                strcmp(o->attributes[0].value, "x y") == 0,
	        "its header and attribute");
	ok(c->log_format == LOG_JSON && c->log_level == LOG_LEVEL_WARN, "log");
	ok(c->supervisor_uid == 811 && c->supervisor_gid == 812, "user by name has its group");
	ok(c->egress_uid == 4242 && c->egress_gid == 4242, "user by number");
	ok(c->socket_gid == 900, "group by name");
	is_str(c->default_policy, "strict", "default_policy");
	ok(c->max_runs == 3 && c->max_queued == 0 && c->pool == 2, "runs");
	ok(c->queue_ms == 90000 && c->user_runs == 2 && c->user_queued == 7 &&
	                c->runs_memory == UINT64_C(48) << 30 && c->runs_cpu == RUN_SHARES_HOST,
	        "of one user, and what may be promised");
	const struct run_share *r = c->shares;
	ok(c->nshares == 3 && r[0].weight == 3 && r[0].max == 12 && r[0].queue == 0 &&
	                r[1].weight == 1 && r[1].queue == 5 && r[2].tenant[0] == '\0',
	        "shares");
	is_str(r[1].user, "A b", "a user's name is any text");
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
	const struct webhook *w = c->webhooks;
	must(c->nwebhooks == 2, "webhooks");
	ok(w[0].events == WEBHOOK_DEFAULT && w[0].timeout_ms == 10000 && w[0].first_ms == 1000 &&
	                w[0].most_ms == 300000 && w[0].keep_ms == 86400000 && !w[0].named_only &&
	                w[0].nusers == 0,
	        "what is not said");
	ok(w[1].events == 1u << WEBHOOK_ERROR && w[1].nharnesses == 1 && w[1].nusers == 2 &&
	                w[1].named_only && w[1].ncidrs == 1 && w[1].timeout_ms == 3000 &&
	                w[1].first_ms == 2000 && w[1].most_ms == 60000 && w[1].keep_ms == 7200000,
	        "what is");
	const struct bucket *b = &c->bucket;
	ok(b->on && b->path_style && !b->keep_local && b->sse == BUCKET_SSE_AES256 &&
	                b->ncidrs == 1 && b->link_ms == 600000 && b->part_bytes == 5 << 20 &&
	                b->timeout_ms == 3000 && b->first_ms == 2000 && b->most_ms == 60000 &&
	                b->keep_ms == 7200000,
	        "a bucket");
	is_str(b->name, "my.bucket", "its name");
	is_str(b->prefix, "a/B_c", "its prefix");
	is_str(b->session_token, "C", "its secrets");
	is_str(c->harness_dirs[0], "/srv/h", "harness_dirs replaces the default");
	is_str(c->harness_dirs[1], "", "and no more");
}

static void defaults(void)
{
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	must(config_defaults(&ids, c, NULL) == 0, "defaults");
	is_str(c->default_policy, "default", "default policy");
	ok(!c->bucket.on && c->bucket.keep_local && c->bucket.part_bytes == 16 << 20 &&
	                bucket_check(&c->bucket, NULL) == 0,
	        "no bucket");
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
