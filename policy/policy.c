#include "policy/policy.h"
#include "base/mem.h"
#include "policy/policy_check.h"

#include <string.h>

int policy_set_check(const void *p, size_t size, struct err *e)
{
	const struct policy_set *s = p;
	if (!p || size < sizeof(*s) || (uintptr_t)p % _Alignof(struct policy_set) != 0)
		return err_set(e, -EBADMSG, "policy set: %zu bytes are no policy set", size);
	if (s->magic != POLICY_SET_MAGIC)
		return err_set(e, -EBADMSG, "policy set: wrong magic 0x%x", s->magic);
	if (s->count < 1 || s->count > LIMIT_POLICIES)
		return err_set(e, -EBADMSG, "policy set: %u policies, 1 to %d are possible",
		        s->count, LIMIT_POLICIES);
	if (s->size != size || size != sizeof(*s) + s->count * sizeof(s->policies[0]))
		return err_set(e, -EBADMSG, "policy set: %zu bytes do not hold %u policies", size,
		        s->count);
	if (daemon_config_check(&s->config, e) < 0)
		return err_wrap(e, "policy set: config");
	for (uint32_t i = 0; i < s->count; i++) {
		if (policy_check(&s->policies[i], e) < 0)
			return err_wrap(e, "policy set: policy %u", i);
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(s->policies[k].name, s->policies[i].name) == 0)
				return err_set(e, -EBADMSG, "policy set: '%s' is there twice",
				        s->policies[i].name);
	}
	if (policy_find(s, s->config.default_policy) < 0)
		return err_set(e, -EBADMSG, "policy set: default_policy '%s' is not there",
		        s->config.default_policy);
	return 0;
}

int policy_find(const struct policy_set *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (strcmp(s->policies[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

uint32_t policy_wanted(const struct policy *p)
{
	const struct limits *l = &p->limits;
	const struct {
		enum layer layer;
		bool set;
	} rows[] = {
	        {LAYER_LIMIT_MEMORY, l->memory_bytes},
	        {LAYER_LIMIT_PIDS, l->pids},
	        {LAYER_LIMIT_CPU, l->cpu_milli},
	        {LAYER_LIMIT_IO, l->io_read_bps || l->io_write_bps},
	        {LAYER_LIMIT_DISK, l->disk_bytes || l->inodes},
	};
	uint32_t warned = p->warned;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!rows[i].set)
			warned &= ~LAYER_BIT(rows[i].layer);
	return p->required | warned;
}

bool policy_inbound(const struct policy *p, unsigned port)
{
	for (uint32_t i = 0; i < p->ninbound; i++)
		if (p->inbound[i] == port)
			return true;
	return false;
}

const char *policy_gives(const struct policy *p, const char *secret)
{
	for (uint32_t i = 0; i < p->ngiven; i++)
		if (strcmp(p->given[i].secret, secret) == 0)
			return p->given[i].variable;
	return NULL;
}

bool policy_serves(const struct policy *p, unsigned port)
{
	for (uint32_t i = 0; i < p->nports; i++)
		if (p->ports[i] == port)
			return true;
	return port == 53 || port == 80 || port == 443;
}

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
        {"memory", offsetof(struct limits, memory_bytes)},
        {"pids", offsetof(struct limits, pids)},
        {"cpus (thousandths)", offsetof(struct limits, cpu_milli)},
        {"io.read", offsetof(struct limits, io_read_bps)},
        {"io.write", offsetof(struct limits, io_write_bps)},
        {"disk", offsetof(struct limits, disk_bytes)},
        {"inodes", offsetof(struct limits, inodes)},
        {"nofile", offsetof(struct limits, nofile)},
        {"file", offsetof(struct limits, file_bytes)},
        {"tmp", offsetof(struct limits, tmp_bytes)},
        {"shm", offsetof(struct limits, shm_bytes)},
        {"wall (ms)", offsetof(struct limits, wall_ms)},
        {"output", offsetof(struct limits, output_bytes)},
};
_Static_assert(sizeof(struct limits) == ARRAY_LEN(fields) * sizeof(uint64_t),
        "a limit without its row could be widened unseen");

int limits_narrow(
        const struct limits *root, const struct limits *asked, struct limits *ret, struct err *e)
{
	struct limits out = {0};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		uint64_t have, want;
		memcpy(&have, (const char *)root + fields[i].offset, sizeof(have));
		memcpy(&want, (const char *)asked + fields[i].offset, sizeof(want));
		if (have && want > have)
			return err_set(e, -EACCES,
			        "limit %s: %llu asked, the policy gives at most %llu",
			        fields[i].name, (unsigned long long)want, (unsigned long long)have);
		uint64_t value = want ? want : have;
		memcpy((char *)&out + fields[i].offset, &value, sizeof(value));
	}
	*ret = out;
	return 0;
}

int policy_proven(const struct policy *p, const char *unproven, struct err *e)
{
	if (!*unproven)
		return 0;
	return err_set(e, -ENOPKG,
	        "policy '%s' is not served: the self-test failed: %s; remedy: mend that, then "
	        "abctl reload",
	        p->name, unproven);
}

int policy_met(const struct policy *p, uint32_t have,
        const char detail[LAYER_COUNT][LAYER_TEXT_MAX],
        const char remedy[LAYER_COUNT][LAYER_TEXT_MAX], struct err *e)
{
	uint32_t missing = p->required & ~have;
	for (int l = 0; l < LAYER_COUNT; l++)
		if (missing & LAYER_BIT(l))
			return err_set(e, -ENOPKG, "policy '%s' requires %s (%s): %s; remedy: %s",
			        p->name, layer_name((enum layer)l), layer_lack((enum layer)l),
			        detail[l], remedy[l]);
	return 0;
}

const char *const *policy_trust_env(const struct policy *p)
{
	static const char *const
	        none[] = {NULL},
	        *const all[] = {"SSL_CERT_FILE=" POLICY_TRUST_FILE, /* OpenSSL that was built
	                                                               elsewhere, Go, rustls */
	                "REQUESTS_CA_BUNDLE=" POLICY_TRUST_FILE, /* Python's requests, older pip */
	                "NODE_EXTRA_CA_CERTS=" POLICY_TRUST_OWN, NULL};
	return rules_terminate(p->rules, p->nrules) ? all : none;
}
