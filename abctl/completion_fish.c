#include "abctl/completion.h"
#include "abctl/verb.h"

#include <stdio.h>
#include <string.h>

/* Between single quotes fish knows two escapes. */
static void quoted(const char *text)
{
	for (const char *p = text; *p; p++)
		printf("%s%c", strchr("'\\", *p) ? "\\" : "", *p);
}

static void option(const char *condition, const struct opt *o)
{
	printf("complete -c abctl%s", condition);
	if (o->letter)
		printf(" -s %c", o->letter);
	/* -r: a value comes next, for which files are offered */
	printf(" -l %s%s -d '", o->name, o->kind == OPT_FLAG ? "" : " -r");
	quoted(o->doc);
	printf("'\n");
}

static void verb(const struct verb *v)
{
	char condition[64];
	printf("complete -c abctl -n __abctl_no_verb -f -a %s -d '", v->name);
	quoted(v->summary);
	printf("'\n");
	(void)snprintf(condition, sizeof(condition), " -n '__abctl_verb %s'", v->name);
	for (const struct opt *o = v->opts; o && o->name; o++)
		option(condition, o);
	if (v->words)
		printf("complete -c abctl -n '__abctl_verb %s; and test (count (__abctl_words)) = "
		       "1' -f -a "
		       "'%s'\n",
		        v->name, v->words);
}

void completion_fish(void)
{
	printf("# fish completion for abctl: abctl completion fish | source\n"
	       "function __abctl_words -d 'operands before the cursor: the verb is the first'\n"
	       "\tset -l skip\n"
	       "\tfor word in (commandline -opc)[2..]\n"
	       "\t\tif set -q skip[1]\n"
	       "\t\t\tset -e skip\n"
	       "\t\t\tcontinue\n"
	       "\t\tend\n"
	       "\t\tswitch $word\n"
	       "\t\t\tcase");
	for (const struct opt *o = verb_common; o->name; o++)
		if (o->kind != OPT_FLAG)
			printf(" --%s", o->name);
	printf("\n"
	       "\t\t\t\tset skip yes\n"
	       "\t\t\tcase '-*'\n"
	       "\t\t\tcase '*'\n"
	       "\t\t\t\techo $word\n"
	       "\t\tend\n"
	       "\tend\n"
	       "end\n"
	       "function __abctl_no_verb\n"
	       "\ttest (count (__abctl_words)) = 0\n"
	       "end\n"
	       "function __abctl_verb\n"
	       "\tset -l words (__abctl_words)\n"
	       "\ttest \"$words[1]\" = $argv[1]\n"
	       "end\n");
	for (const struct opt *o = verb_common; o->name; o++)
		option("", o);
	printf("complete -c abctl -l help -d help\n");
	for (size_t i = 0; verbs[i]; i++)
		verb(verbs[i]);
}
