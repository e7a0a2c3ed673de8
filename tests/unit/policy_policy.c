#include "policy/policy.h"
#include "base/ids.h"
#include "base/mem.h"
#include "policy/config_yaml.h"
#include "policy/layers.h"
#include "policy/policy_check.h"
#include "policy/policy_yaml.h"
#include "tests/t.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

enum { COUNT = 2 };
static size_t size;

static struct policy_set *fresh(void)
{
	static const struct idents none;
	size = sizeof(struct policy_set) + COUNT * sizeof(struct policy);
	struct policy_set *s = xcalloc(1, size);
	struct err e = {0};
	s->magic = POLICY_SET_MAGIC;
	s->count = COUNT;
	s->size = size;
	must(config_defaults(&none, &s->config, NULL) == 0, "defaults");
	for (int i = 0; i < COUNT; i++)
		must(policy_builtin(i, &s->policies[i], &e) == 0, "built-in %d: %s", i, e.text);
	return s;
}

/* One change to a good set, which must then be refused with a message that has `part`. */
#define BAD(part, change)                                                                          \
	do {                                                                                       \
		auto_free struct policy_set *s = fresh();                                          \
		struct policy *p = &s->policies[1];                                                \
		struct daemon_config *c = &s->config;                                              \
		(void)p;                                                                           \
		(void)c;                                                                           \
		change;                                                                            \
		struct err e = {0};                                                                \
		int r = policy_set_check(s, size, &e);                                             \
		if (!ok(r == -EBADMSG && strstr(e.text, part), "refused: %s", #change))            \
			printf("# got: %d %s\n", r, e.text);                                       \
	} while (0)

static void texts(void)
{
	BAD("name", memset(p->name, 'a', sizeof(p->name)));
	BAD("name", strcpy(p->name, "Upper"));
	BAD("there twice", strcpy(p->name, s->policies[0].name));
	BAD("description", memset(p->description, 'a', sizeof(p->description)));
	BAD("description", strcpy(p->description, "\x1b[2J"));
	BAD("image", strcpy(p->image, "relative"));
	BAD("root", p->root = POLICY_ROOT_IMAGE);
	BAD("root", p->root = 2);
	BAD("root", strcpy(p->image, "/srv/x"));
	BAD("layers", p->required |= 1u << 31);
	BAD("layers", p->warned = p->required);
	BAD("flags", p->flags = 1u << 20);
	BAD("counts", p->nmounts = POLICY_MOUNTS + 1);
	BAD("counts", p->nbindable = UINT32_MAX);
	BAD("counts", p->ninject = POLICY_INJECTS + 1);
	BAD("form_path", p->nmounts = 1);
	BAD("secrets", (p->nmounts = 1, strcpy(p->mounts[0].source, "/root"),
	                       strcpy(p->mounts[0].target, "/x")));
	BAD("covered", (p->nmounts = 1, strcpy(p->mounts[0].source, "/srv"),
	                       strcpy(p->mounts[0].target, "/usr")));
	BAD("would hide", (p->nmounts = 1, strcpy(p->mounts[0].source, "/srv"),
	                          strcpy(p->mounts[0].target, "/home/agent/x")));
	BAD("neither 0 nor 1",
	        (p->nmounts = 1, strcpy(p->mounts[0].source, "/srv"),
	                strcpy(p->mounts[0].target, "/x"), p->mounts[0].writable = 2));
	BAD("form_path", p->nbindable = 1);
	BAD("form_host", p->ninject = 1);
}

static void injects(void)
{
#define INJECT0 s->policies[0].inject[0]
	BAD("form_url", strcpy(INJECT0.upstream, "https://a.b\r\nx"));
	BAD("plain http", strcpy(INJECT0.upstream, "http://a.b"));
	BAD("form_header", strcpy(INJECT0.header, "A: b"));
	BAD("no header", INJECT0.header[0] = '\0');
	BAD("form_printable", strcpy(INJECT0.prefix, "a\r\n"));
	BAD("form_variable", strcpy(INJECT0.secret, "../x"));
	BAD("form_variable", memset(INJECT0.secret, 'A', sizeof(INJECT0.secret)));
	BAD("given twice", strcpy(s->policies[0].inject[1].host, INJECT0.host));
	BAD("neither 0 nor 1", INJECT0.loopback = 2);
}

static struct policy_rule *rule0(struct policy_set *s)
{
	struct policy *p = &s->policies[0];
	p->nrules = p->nrequests = 1; /* it is the rule's */
	for (uint32_t i = 0; i < p->ninject; i++)
		p->inject[i].requests = (struct request_range){0};
	p->rules[0] = (struct policy_rule){.host = "a.b", .nports = 1, .ports = {443}};
	strcpy(p->requests[0].path, "/x");
	return &p->rules[0];
}

static void rules(void)
{
	BAD("terminates what is not TLS", rule0(s)->terminate = 2);
	BAD("terminates what is not TLS",
	        (rule0(s)->protocol = RULE_HTTP, s->policies[0].rules[0].terminate = 1));
	BAD("does not show", rule0(s)->requests.n = 1);
	auto_free struct policy_set *s = fresh();
	struct err e = {0};
	struct policy_rule *r = rule0(s);
	r->terminate = r->requests.n = 1;
	ok(policy_set_check(s, size, &e) == 0, "requests of TLS that is terminated: %s", e.text);
}

static void config(void)
{
	BAD("config", c->supervisor_uid = 0);
	BAD("config", c->egress_gid = 0);
	BAD("config", c->egress_uid = c->supervisor_uid);
	BAD("config", c->supervisor_uid = ID_STORE_BASE + 3 * ID_BLOCK);
	BAD("config", c->max_runs = 0);
	BAD("config", c->default_policy[0] = '\0');
	BAD("is not there", strcpy(c->default_policy, "nobody"));
	BAD("config", c->max_queued = LIMIT_QUEUED_RUNS + 1);
	BAD("config", c->nsecrets = POLICY_SECRETS + 1);
	BAD("form_variable", c->nsecrets = 1);
	BAD("form_path", (c->nsecrets = 1, strcpy(c->secrets[0].name, "A"),
	                         strcpy(c->secrets[0].where, "relative")));
	BAD("credential_name", (c->nsecrets = 1, strcpy(c->secrets[0].name, "A"),
	                               c->secrets[0].source = SECRET_CREDENTIAL,
	                               strcpy(c->secrets[0].where, "../a")));
	BAD("unknown source",
	        (c->nsecrets = 1, strcpy(c->secrets[0].name, "A"), c->secrets[0].source = 9));
	BAD("form_variable", c->nexposed = 1);
	BAD("form_path", strcpy(c->harness_dirs[0], "x"));
}

static void heads(void)
{
	BAD("magic", s->magic++);
	BAD("do not hold", s->size++);
	BAD("do not hold", s->count++);
	BAD("are possible", s->count = 0);
	BAD("are possible", s->count = UINT32_MAX);
	auto_free struct policy_set *s = fresh();
	struct err e = {0};
	ok(policy_set_check(s, size, &e) == 0, "a good set passes: %s", e.text);
	for (size_t n = 0; n < sizeof(*s) + 8; n += 97)
		if (policy_set_check(s, n, &e) != -EBADMSG)
			ok(0, "%zu bytes of it pass", n);
	ok(policy_set_check(s, size - 1, &e) == -EBADMSG, "a cut set does not");
	ok(policy_set_check(NULL, 0, &e) == -EBADMSG, "nothing does not");
	ok(policy_find(s, "offline") == 1 && policy_find(s, "x") == -ENOENT, "find");
}

static void filter(void)
{
#define INSN(...) ((struct sock_filter)__VA_ARGS__)
	BAD("0 instructions", p->ninsns = 0);
	BAD("instructions", p->ninsns = POLICY_INSNS + 1);
	BAD("without a return", p->bpf[p->ninsns++] = INSN({BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}));
	BAD("jumps out", p->bpf[1].jt = 255);
	BAD("jumps out", p->bpf[5] = INSN({BPF_JMP | BPF_JA, 0, 0, p->ninsns}));
	BAD("jumps out", p->bpf[5] = INSN({BPF_JMP | BPF_JA, 0, 0, UINT32_MAX}));
	BAD("jumps out", p->bpf[5] = INSN({BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 0}));
	BAD("loads outside", p->bpf[0].k = sizeof(struct seccomp_data));
	BAD("loads outside", p->bpf[0].k = 2);
	BAD("loads outside", p->bpf[0].k = UINT32_MAX - 3);
	BAD("loads outside", p->bpf[0].code = BPF_LD | BPF_W | BPF_IND);
	BAD("loads outside", p->bpf[0].code = BPF_LD | BPF_H | BPF_ABS);
	BAD("class", p->bpf[0].code = BPF_LDX | BPF_W | BPF_IMM);
	BAD("class", p->bpf[0].code = BPF_ST);
	BAD("other than AND", p->bpf[0].code = BPF_ALU | BPF_DIV | BPF_K);
	BAD("unknown action", p->bpf[p->ninsns - 1] = INSN({BPF_RET | BPF_A, 0, 0, 0}));
	BAD("unknown action",
	        p->bpf[p->ninsns - 1] = INSN({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF}));
	BAD("unknown action",
	        p->bpf[p->ninsns - 1] = INSN({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO}));
}

static void narrow(void)
{
	const struct limits root = {.memory_bytes = 1000, .pids = 10};
	struct limits got = {0};
	struct err e = {0};
	const struct limits tighter = {.memory_bytes = 500, .wall_ms = 7};
	ok(limits_narrow(&root, &tighter, &got, &e) == 0 && got.memory_bytes == 500 &&
	                got.pids == 10 && got.wall_ms == 7,
	        "smaller values and new limits are taken");
	const struct limits nothing = {0};
	ok(limits_narrow(&root, &nothing, &got, &e) == 0 && got.memory_bytes == 1000,
	        "zero means as root says");
	const struct limits same = {.memory_bytes = 1000};
	ok(limits_narrow(&root, &same, &got, &e) == 0 && got.memory_bytes == 1000,
	        "the same is fine");
	/* each field alone, one more than root gives */
	for (size_t i = 0; i < sizeof(root) / sizeof(uint64_t); i++) {
		uint64_t have[sizeof(root) / sizeof(uint64_t)], ask[ARRAY_LEN(have)];
		memset(have, 0, sizeof(have));
		memset(ask, 0, sizeof(ask));
		have[i] = 5;
		ask[i] = 6;
		struct limits r, a, before = got;
		memcpy(&r, have, sizeof(r));
		memcpy(&a, ask, sizeof(a));
		ok(limits_narrow(&r, &a, &got, &e) == -EACCES &&
		                strstr(e.text, "6 asked, the policy gives at most 5") &&
		                memcmp(&before, &got, sizeof(got)) == 0,
		        "widening limit %zu is refused: %s", i, e.text);
	}
}

int main(void)
{
	heads();
	texts();
	injects();
	rules();
	config();
	filter();
	narrow();
	return done();
}
