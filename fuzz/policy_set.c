/*
 * policy_set_check over damaged sets: the input is a list of patches to a good
 * one, {u16 place, u8 kind, u8 value}, so that the damage reaches every field
 * instead of stopping at the magic.  What still passes is used as its readers
 * would use it: texts are read to their end, filters are run.
 */
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/bpf.h"
#include "policy/config_yaml.h"
#include "policy/policy_yaml.h"

#include <assert.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COUNT = 2 };
static const size_t set_size = sizeof(struct policy_set) + COUNT * sizeof(struct policy);

static struct policy_set *good(void)
{
	static struct policy_set *made;
	if (!made) {
		static const struct idents none;
		static const char config[] =
		        "webhooks:\n"
		        "  - {name: a, url: 'http://10.0.0.7:80/x', secret: A, users: [u, v*],\n"
		        "     harnesses: [h], addresses: [10.0.0.7]}\n"
		        "  - {name: b, url: 'https://b.example/y', secret: B, named_only: true}\n";
		struct err e = {0};
		made = xcalloc(1, set_size);
		made->magic = POLICY_SET_MAGIC;
		made->count = COUNT;
		made->size = set_size;
		const struct keys_ctx k = {.file = "config", .e = &e};
		if (config_parse(&k, &none, config, sizeof(config) - 1, &made->config) < 0)
			abort();
		for (int i = 0; i < COUNT; i++)
			assert(policy_builtin(i, &made->policies[i], &e) == 0);
		assert(policy_set_check(made, set_size, &e) == 0);
	}
	struct policy_set *copy = xcalloc(1, set_size);
	memcpy(copy, made, set_size);
	return copy;
}

static void patch(struct policy_set *s, const uint8_t *p)
{
	size_t place = (size_t)p[0] << 8 | p[1];
	uint8_t *bytes = (uint8_t *)s;
	struct policy *policy = &s->policies[p[2] & 1];
	if (p[2] & 2) { /* the filter */
		bytes = (uint8_t *)policy->bpf;
		place %= sizeof(policy->bpf[0]) * (policy->ninsns % POLICY_INSNS + 1);
	} else if (p[2] & 8) { /* a webhook */
		bytes = (uint8_t *)&s->config.webhooks[p[2] & 1];
		place %= sizeof(s->config.webhooks[0]);
	} else if (p[2] & 4) { /* the heads: counts, flags, limits */
		bytes = (uint8_t *)&policy->required;
		place %= offsetof(struct policy, mounts) - offsetof(struct policy, required);
	} else {
		place = place * 7 % set_size;
	}
	bytes[place] = p[3];
}

static void use(const struct policy_set *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct policy *p = &s->policies[i];
		struct err e = {0};
		struct limits l;
		assert(policy_find(s, p->name) == (int)i);
		assert(limits_narrow(&p->limits, &p->limits, &l, &e) == 0);
		for (uint32_t k = 0; k < p->nmounts; k++)
			assert(p->mounts[k].source[0] == '/' && p->mounts[k].target[0] == '/');
		for (int nr = -1; nr < 600; nr += 7) {
			struct seccomp_data d = {
			        .nr = nr, .arch = arch_native()->audit, .args = {1, 2, 3}};
			uint32_t verdict = 0;
			assert(bpf_run(p->bpf, p->ninsns, &d, &verdict) == 0);
			assert(verdict == SECCOMP_RET_ALLOW ||
			        verdict == SECCOMP_RET_KILL_PROCESS ||
			        (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO);
		}
	}
}

/* As supervisor and egress do. */
static void use_webhooks(const struct daemon_config *c)
{
	char *const names[] = {(char[]){"b"}, NULL};
	for (uint32_t i = 0; i < c->nwebhooks; i++) {
		const struct webhook *w = &c->webhooks[i];
		assert(webhook_find(c->webhooks, c->nwebhooks, w->name) == (int)i);
		assert(webhook_url_refusal(w) == NULL && w->secret[0]);
		(void)webhook_takes(w, "h", "vera", names);
		for (unsigned failures = 0; failures < 70; failures++) {
			int64_t pause = webhook_pause_ms(w, failures, failures * 12345u, 0);
			assert(pause >= 50 && pause <= 3600000);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	auto_free struct policy_set *raw = xcalloc(1, size);
	memcpy(raw, data, size);
	assert(policy_set_check(raw, size, &e) < 0 || size >= set_size);
	auto_free struct policy_set *s = good();
	for (size_t i = 0; i + 4 <= size && i < 4096; i += 4)
		patch(s, data + i);
	if (policy_set_check(s, set_size, &e) < 0) {
		assert(e.code == -EBADMSG && e.text[0]);
		return 0;
	}
	use(s);
	use_webhooks(&s->config);
	return 0;
}
