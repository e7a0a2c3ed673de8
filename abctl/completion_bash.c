#include "abctl/completion.h"
#include "abctl/verb.h"

#include <stdio.h>

static void options(const struct opt *o)
{
	for (; o && o->name; o++)
		printf(" --%s", o->name);
}

/* One case arm a verb. */
static void arms(void)
{
	for (size_t i = 0; verbs[i]; i++) {
		const struct verb *v = verbs[i];
		printf("\t%s)\n\t\topts='", v->name);
		options(v->opts);
		options(verb_common);
		printf(" --help'\n\t\twords='%s'\n\t\t;;\n", v->words ? v->words : "");
	}
}

void completion_bash(void)
{
	printf("# bash completion for abctl: source <(abctl completion bash)\n"
	       "_abctl()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} verb='' opts='' words='' i\n"
	       "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	       "\t\tcase ${COMP_WORDS[i]} in\n"
	       "\t\t");
	const char *gap = "";
	for (const struct opt *o = verb_common; o->name; o++) {
		if (o->kind == OPT_FLAG)
			continue;
		printf("%s--%s", gap, o->name);
		gap = " | ";
	}
	printf(") ((i++)) ;;\n"
	       "\t\t-*) ;;\n"
	       "\t\t*) verb=${COMP_WORDS[i]}; break ;;\n"
	       "\t\tesac\n"
	       "\tdone\n"
	       "\tcase $verb in\n"
	       "\t'')\n\t\topts='");
	options(verb_common);
	printf(" --help'\n\t\twords='");
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
