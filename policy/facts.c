#include "policy/facts.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/harness.h"
#include "policy/policyc.h"
#include "policy/report.h"

#include <stdio.h>
#include <string.h>

static void fact(const char *key, const char *value)
{
	if (value)
		printf("%s %s\n", key, value);
}

static bool has_blank(const char *text)
{
	return strpbrk(text, " \t\n") != NULL;
}

static int print(const char *file, const struct agent *a)
{
	for (size_t i = 0; i < a->ntake; i++)
		if (has_blank(a->take[i].name) || has_blank(a->take[i].value)) {
			struct err e;
			(void)err_set(&e, -EINVAL, "%s: a path of `take` has a blank in it", file);
			report_error(stdout, &e);
			return POLICYC_REFUSED;
		}
	fact("name", a->name);
	fact("version", a->version);
	fact("package", a->package);
	fact("integrity", a->integrity);
	fact("node", a->node);
	fact("node_integrity", a->node_integrity);
	for (size_t i = 0; i < a->ntake; i++)
		printf("take %s %s\n", a->take[i].name, a->take[i].value);
	fact("unavailable", a->unavailable);
	return POLICYC_OK;
}

int facts_main(int argc, char **argv)
{
	if (argc != 1)
		return report_usage("facts AGENT.yaml");
	auto_free char *text = NULL;
	size_t n = 0;
	struct err e = {0};
	int r = file_slurp(argv[0], LIMIT_YAML_FILE, &text, &n);
	if (r < 0) {
		(void)slurp_err(&e, r, argv[0], LIMIT_YAML_FILE);
		return report_unread(&e);
	}
	struct agent *a = agent_parse(argv[0], text, n, &e);
	if (!a) {
		report_error(stdout, &e);
		return POLICYC_REFUSED;
	}
	int code = print(argv[0], a);
	agent_free(a);
	return code;
}
