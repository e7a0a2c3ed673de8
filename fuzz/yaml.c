/*
 * Everything that reads YAML, over one text: the tree, policies, the
 * configuration, harnesses and agents.  What is accepted must pass the checks
 * of those who will believe it; what is refused must say where.
 */
#include "base/mem.h"
#include "policy/config_yaml.h"
#include "policy/harness.h"
#include "policy/policy_check.h"
#include "policy/policy_yaml.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void says_where(const struct err *e)
{
	assert(e->code < 0 && strncmp(e->text, "f:", 2) == 0);
}

static void policies(const char *text, size_t n)
{
	struct err e = {0};
	const struct keys_ctx k = {.file = "f", .e = &e};
	auto_free struct policy *p = xnew(struct policy);
	if (policy_parse(&k, "fuzzed", text, n, p) < 0)
		says_where(&e);
	else
		assert(policy_check(p, &e) == 0);
	static const struct idents none;
	auto_free struct daemon_config *c = xnew(struct daemon_config);
	if (config_parse(&k, &none, text, n, c) < 0)
		says_where(&e);
	else
		assert(daemon_config_check(c, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 64 << 10) /* the limits beyond are the unit test's */
		return 0;
	struct err e = {0};
	auto_free char *text = xcalloc(size + 1, 1);
	memcpy(text, data, size);
	struct yaml_doc *d = yaml_parse("f", 1, text, size, &e);
	if (!d)
		says_where(&e);
	yaml_doc_free(d);
	policies(text, size);
	struct harness *h = harness_parse("f", text, size, NULL, NULL, &e);
	if (!h)
		says_where(&e);
	else if (harness_unsupported(h, NULL, NULL, &e) < 0)
		assert(e.code == -ENOEXEC);
	harness_unref(h);
	struct agent *a = agent_parse("f", text, size, &e);
	if (!a)
		says_where(&e);
	agent_free(a);
	return 0;
}
