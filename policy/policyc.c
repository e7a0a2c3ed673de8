#include "policy/policyc.h"
#include "base/mem.h"
#include "policy/compile.h"
#include "policy/explain.h"
#include "policy/facts.h"
#include "policy/lint.h"
#include "policy/pack.h"
#include "policy/report.h"
#include "policy/suggest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct verb {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *usage;
} verbs[] = {
        {"compile", compile_main,
                "--out FD [--config FD[:LABEL]] [--policy NAME=FD[:LABEL]]... [--uid N --gid N]"},
        {"lint", lint_main, "policy|config|harness|agent FILE..."},
        {"explain", explain_main,
                "NAME|FILE [syscall NAME|N [ARG...] | host HOST[:PORT] | path PATH [read|write]]"},
        {"show", show_main, "NAME|FILE"},
        {"facts", facts_main, "AGENT.yaml"},
        {"pack", pack_main, "DIR NAME|- DEFAULT"},
        {"suggest", suggest_main, "NAME OF <REFUSALS"},
        {"list", list_main, ""},
        {"keys", keys_main, "policy|config|harness|agent [--mdoc]"},
        {"syscalls", syscalls_main, "[--debug] [--arch x86_64|aarch64]"},
};

static int help(void)
{
	printf("agentbox-policyc - compile and explain what jails may do\n\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		printf("  agentbox-policyc %s %s\n", verbs[i].name, verbs[i].usage);
	return POLICYC_OK;
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		return report_usage("a verb is missing; --help lists them");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
		return help();
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].main(argc - 2, argv + 2);
	return report_usage("there is no verb '%s'; --help lists them", argv[1]);
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);
	if (fflush(stdout) != 0 && code == POLICYC_OK) {
		struct err e;
		(void)err_errno(&e, "standard output");
		code = report_system(&e);
	}
	/* Not a return: what tools run at exit (a leak checker) finds its calls refused by the
	 * filter of `compile`, and there is nothing else to do. */
	_exit(code);
}
