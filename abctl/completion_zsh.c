#include "abctl/completion.h"
#include "abctl/verb.h"

#include <stdio.h>
#include <string.h>

/* Text of the table between the single quotes of a word, where `special` means something to the
 * function that gets it. */
static void quoted(const char *text, const char *special)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\'')
			printf("'\\''");
		else
			printf("%s%c", strchr(special, *p) ? "\\" : "", *p);
	}
}

/* What a value is, by the name it has in help. */
static const char *action(const char *arg)
{
	if (strstr(arg, "FILE") || strstr(arg, "DIR") || strcmp(arg, "PATH") == 0 ||
	        strstr(arg, ".yaml"))
		return "_files";
	return " ";
}

/* A specification for _arguments: '(-s --session)'{-s,--session}'[doc]:ARG:action' */
static void option(const struct opt *o)
{
	const char *again = o->kind == OPT_LIST ? "*" : "";
	if (o->letter && !*again)
		printf(" \\\n\t\t\t'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter,
		        o->name);
	else if (o->letter)
		printf(" \\\n\t\t\t'*'{-%c,--%s}'[", o->letter, o->name);
	else
		printf(" \\\n\t\t\t'%s--%s[", again, o->name);
	quoted(o->doc, "[]:\\");
	printf("]");
	if (o->arg) {
		printf(":");
		quoted(o->arg, ":\\");
		printf(":%s", action(o->arg));
	}
	printf("'");
}

static void options(const struct opt *o)
{
	for (; o && o->name; o++)
		option(o);
}

static void arm(const struct verb *v)
{
	printf("\t(%s)\n\t\t_arguments -s", v->name);
	if (v->command)
		printf(" -A '-*'");
	options(v->opts);
	options(verb_common);
	printf(" \\\n\t\t\t'--help[help]'");
	if (v->words)
		printf(" \\\n\t\t\t'1: :(%s)'", v->words);
	printf(" \\\n\t\t\t'*: :_files'\n\t\t;;\n");
}

void completion_zsh(void)
{
	printf("#compdef abctl\n"
	       "# zsh completion for abctl: source <(abctl completion zsh), or as _abctl in "
	       "$fpath\n"
	       "_abctl()\n{\n"
	       "\tlocal curcontext=$curcontext state line\n"
	       "\tlocal -a known\n"
	       "\tknown=(\n");
	for (size_t i = 0; verbs[i]; i++) {
		printf("\t\t'%s:", verbs[i]->name);
		quoted(verbs[i]->summary, ":\\");
		printf("'\n");
	}
	printf("\t)\n"
	       "\t_arguments -C -A '-*'");
	options(verb_common);
	printf(" \\\n\t\t\t'--help[help]' '1: :->verb' '*:: :->rest' && return\n"
	       "\tcase $state in\n"
	       "\t(verb) _describe -t verbs verb known; return ;;\n"
	       "\tesac\n"
	       "\tcase $words[1] in\n");
	for (size_t i = 0; verbs[i]; i++)
		arm(verbs[i]);
	printf("\tesac\n"
	       "}\n"
	       "if [[ $funcstack[1] == _abctl ]]; then\n"
	       "\t_abctl \"$@\"\n"
	       "else\n"
	       "\tcompdef _abctl abctl\n"
	       "fi\n");
}
