#include "abctl/fail.h"
#include "abctl/verb.h"

#include <stdio.h>
#include <string.h>

static void options(const struct verb *v)
{
	for (const struct opt *o = v->opts; o && o->name; o++)
		printf(" --%s", o->name);
	printf(" --json --help");
}

/* One case arm a verb, from the table: a new verb completes without a line here. */
static void arms(void)
{
	for (size_t i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];
		printf("\t%s)\n\t\topts='", v->name);
		options(v);
		printf("'\n\t\twords='%s'\n\t\t;;\n", v->words ? v->words : "");
	}
}

static void bash(void)
{
	printf("# bash completion for abctl: source <(abctl completion bash)\n"
	       "_abctl()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb='' opts='' words='' i\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n"
	       "\t\t--socket) ((i++)) ;;\n"
	       "\t\t-*) ;;\n"
	       "\t\t*) verb=${COMP_WORDS[i]}; break ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "\tcase $verb in\n"
	       "\t'')\n\t\topts='--socket --json --help'\n\t\twords='");
	for (size_t i = 0; verbs[i]; i++)
		printf("%s%s", i ? " " : "", verbs[i]->name);
	printf("'\n\t\t;;\n");
	arms();
	printf("\tesac\n"
	       "\tif [[ $cur == -* ]]; then\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$opts\" -- \"$cur\")\n"
	       "\telse\n"
	       "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	       "\tfi\n"
	       "}\n"
	       "complete -o default -F _abctl abctl\n");
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)cli, (void)args, (void)argc;
	if (strcmp(argv[0], "bash") != 0)
		return fail_usage("no completion for '%s' (there is: bash)", argv[0]);
	bash();
	return EXIT_DONE;
}

const struct verb cmd_completion = {
        .name = "completion",
        .synopsis = "bash",
        .summary = "completion script of a shell",
        .words = "bash",
        .min = 1,
        .max = 1,
        .run = run,
};
