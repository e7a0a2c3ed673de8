#include "policy/policy_yaml.h"
#include "base/mem.h"
#include "policy/builtin.h"
#include "policy/layers.h"
#include "tests/fixtures.h"

static int parse(const char *path, const char *text, size_t n, struct policy *ret, struct err *e)
{
	const struct keys_ctx k = {.file = path, .e = e};
	return policy_parse(&k, "mine", text, n, ret);
}

static void bad(const char *path, const char *text, size_t n)
{
	struct err e = {0};
	auto_free struct policy *p = xnew(struct policy);
	int r = parse(path, text, n, p, &e);
	fixture_check(path, text, r < 0 ? e.text : "(accepted)");
}

static void good(const char *path, const char *text, size_t n)
{
	struct err e = {0};
	auto_free struct policy *p = xnew(struct policy);
	ok(parse(path, text, n, p, &e) == 0, "%s: %s", path, e.text);
}

static void builtins(void)
{
	struct err e = {0};
	const uint32_t isolation = layers_of_kind(LAYER_KIND_ISOLATION);
	const uint32_t limits = layers_of_kind(LAYER_KIND_LIMIT);
	const uint32_t second = LAYER_BIT(LAYER_LANDLOCK);
	auto_free struct policy *p = xcalloc(4, sizeof(*p));
	for (int i = 0; i < 4; i++) {
		must(policy_builtin(i, &p[i], &e) == 0, "%s: %s", builtin_at((size_t)i)->name,
		        e.text);
		is_str(p[i].source, "built-in", "source");
		/* but the second layer, which boot lines of some distributions leave out */
		ok((p[i].required | second) == (p[i].required | isolation),
		        "%s requires all isolation", p[i].name);
	}
	ok(p[0].warned == (limits | second) && p[0].ninject == 3,
	        "default: limits and landlock warn, three hosts");
	ok(p[0].limits.memory_bytes == UINT64_C(4) << 30 && p[0].limits.pids == 1024 &&
	                p[0].limits.cpu_milli == 2000 && p[0].limits.nofile == 65536 &&
	                p[0].limits.wall_ms == 3600000,
	        "default's limits");
	is_str(p[0].inject[1].prefix, "Bearer ", "the blank after Bearer is kept");
	ok(p[1].ninject == 0 && p[1].limits.pids == 1024, "offline: as default without hosts");
	ok(p[2].warned == 0 && (p[2].required & (limits | second)) == (limits | second) &&
	                (p[2].flags & POLICY_STRICT_PROC),
	        "strict requires everything");
	ok(p[3].ninject == 1 && p[3].inject[0].loopback && !p[3].inject[0].secret[0],
	        "demo: one host on this machine, no secret");
}

static void full(void)
{
	struct err e = {0};
	auto_free char *text = NULL;
	size_t n = 0;
	must(file_slurp("tests/fixtures/policy/good/full.yaml", 65536, &text, &n) == 0,
	        "full.yaml");
	auto_free struct policy *p = xnew(struct policy);
	must(parse("full.yaml", text, n, p, &e) == 0, "parses: %s", e.text);
	ok(p->root == POLICY_ROOT_IMAGE && p->nmounts == 2 && p->nbindable == 1 && p->ninject == 2,
	        "counts");
	is_str(p->mounts[1].source, "/srv/cache dir", "quoted path");
	ok(p->mounts[1].writable == 1 && p->mounts[1].optional == 1 && p->mounts[0].writable == 0,
	        "mount flags");
	ok(p->flags == (POLICY_DEBUG | POLICY_NO_UNIX_SOCKETS | POLICY_STRICT_PROC |
	                       POLICY_INNER_ROOT_PACKAGES | POLICY_PRIVATE_FILES | POLICY_VOLATILE),
	        "flags");
	ok(p->limits.memory_bytes == UINT64_C(3) << 29 && p->limits.pids == 2000 &&
	                p->limits.cpu_milli == 1500 && p->limits.io_read_bps == 100 << 20 &&
	                p->limits.io_write_bps == 0 && p->limits.file_bytes == 0 &&
	                p->limits.inodes == 200000 && p->limits.wall_ms == 90000,
	        "limits");
	ok(p->warned == ((layers_of_kind(LAYER_KIND_LIMIT) & ~LAYER_BIT(LAYER_LIMIT_MEMORY)) |
	                        LAYER_BIT(LAYER_NETNS)),
	        "a layer's name says more than its group, whatever the order");
	ok(p->ninbound == 2 && p->inbound[0] == 3000 && p->inbound[1] == 8080 &&
	                policy_inbound(p, 8080) && !policy_inbound(p, 8081) &&
	                policy_serves(p, 443) && !policy_serves(p, 3000),
	        "ports, once each and in order");
	is_str(p->name, "mine", "name");
	is_str(p->source, "full.yaml", "source");
}

/* What a file does not mention it has from `default`. */
static void inherits(void)
{
	struct err e = {0};
	static const char text[] = "limits: {memory: 1G}\n";
	auto_free struct policy *p = xnew(struct policy);
	must(parse("x", text, strlen(text), p, &e) == 0, "parses: %s", e.text);
	ok(p->limits.memory_bytes == 1 << 30 && p->limits.pids == 1024 && p->ninject == 3 &&
	                p->ninbound == 0,
	        "from default");
	is_str(p->description, "", "but its description");
	const struct keys_ctx k = {.file = "x", .e = &e};
	static const char gives[] = "secrets: {A_KEY: {env: A}, B_KEY: {env: B}}\n";
	must(parse("x", gives, strlen(gives), p, &e) == 0, "parses: %s", e.text);
	ok(p->ngiven == 2 && !strcmp(policy_gives(p, "B_KEY"), "B") && !policy_gives(p, "A"),
	        "secrets that jails may have");
	static const char *const no[] = {"secrets: {A: {env: X}, B: {env: X}}\n",
	        "secrets: {A: {}}\n", "secrets: {a-b: {env: X}}\n", "secrets: {A: {env: 'X='}}\n",
	        "secrets: {A: {env: A}, B: {env: B}, C: {env: C}, D: {env: D}, E: {env: E}}\n"};
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		ok(parse("x", no[i], strlen(no[i]), p, &e) == -EINVAL, "refused: %s", e.text);
	ok(policy_parse(&k, "Bad Name", text, strlen(text), p) == -EINVAL, "name is checked");
}

int main(void)
{
	builtins();
	full();
	inherits();
	ok(fixtures_each("tests/fixtures/policy/bad", bad) > 45, "many faulty files");
	ok(fixtures_each("tests/fixtures/policy/good", good) >= 2, "good files");
	return done();
}
