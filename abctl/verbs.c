#include "abctl/verb.h"
#include "abctl/fail.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* In the order of the overview: what one does most comes first. */
const struct verb *const verbs[] = {
        &cmd_run,
        &cmd_chat,
        &cmd_jail,
        &cmd_exec,
        &cmd_forward,
        &cmd_ps,
        &cmd_top,
        &cmd_runs,
        &cmd_show,
        &cmd_logs,
        &cmd_cancel,
        &cmd_approve,
        &cmd_deny,
        &cmd_answer,
        &cmd_send,
        &cmd_artifacts,
        &cmd_sessions,
        &cmd_session,
        &cmd_harness,
        &cmd_agent,
        &cmd_pack,
        &cmd_policy,
        &cmd_egress,
        &cmd_snapshot,
        &cmd_webhook,
        &cmd_key,
        &cmd_audit,
        &cmd_doctor,
        &cmd_stats,
        &cmd_metrics,
        &cmd_reload,
        &cmd_drain,
        &cmd_backup,
        &cmd_restore,
        &cmd_version,
        &cmd_completion,
        &cmd_help,
        NULL,
};

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; verbs[i]; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

int verb_unknown(const char *name)
{
	const char *names[ARRAY_LEN(verbs)];
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		names[i] = verbs[i] ? verbs[i]->name : NULL;
	const char *near = opts_nearest(name, names);
	if (near)
		return fail_usage("unknown verb '%s' (did you mean '%s'?)", name, near);
	return fail_usage("unknown verb '%s' (see `abctl help`)", name);
}

void verb_overview(void)
{
	printf("usage: abctl [--socket PATH | --url URL] [--key-file FILE] [--json] VERB ...\n\n");
	for (size_t i = 0; verbs[i]; i++)
		printf("  %-11s %s\n", verbs[i]->name, verbs[i]->summary);
	printf("\n"
	       "  --socket PATH   the daemon's socket (default $AGENTBOX_SOCKET, else\n"
	       "                  /run/agentbox/agentbox.sock)\n"
	       "  --url URL       ask over TCP: https://HOST[:PORT] (--cacert FILE: whom to "
	       "trust),\n"
	       "                  http://127.0.0.1:PORT (default $AGENTBOX_URL)\n"
	       "  --key-file FILE an API key: ask as its tenant (default $AGENTBOX_KEY_FILE)\n"
	       "  --json          answers as JSON\n\n"
	       "`abctl help VERB` tells more. Exit codes: 0 done, 1 the run or command failed,\n"
	       "100 usage, 111 the system; `jail` and `exec` pass on the command's own.\n");
}

void verb_help(const struct verb *v)
{
	printf("usage: abctl %s %s\n\n%s\n", v->name, v->synopsis, v->summary);
	if (v->help)
		printf("\n%s", v->help);
	if (v->opts)
		printf("\n");
	for (const struct opt *o = v->opts; o && o->name; o++) {
		char left[64];
		char letter[4] = {'-', o->letter, ',', '\0'};
		snprintf(left, sizeof(left), "%s --%s%s%s", o->letter ? letter : "   ", o->name,
		        o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-28s %s\n", left, o->doc);
	}
}

const struct opt verb_common[] = {
        {"socket", 0, OPT_TEXT, offsetof(struct cli, peer.socket), "PATH", "the daemon's socket"},
        {"url", 0, OPT_TEXT, offsetof(struct cli, peer.url), "URL",
                "ask over TCP: https://HOST[:PORT], or http://127.0.0.1:PORT"},
        {"cacert", 0, OPT_TEXT, offsetof(struct cli, peer.ca_file), "FILE",
                "whom https is to trust (PEM)"},
        {"key-file", 0, OPT_TEXT, offsetof(struct cli, peer.key_file), "FILE",
                "an API key: ask as its tenant"},
        {"json", 0, OPT_FLAG, offsetof(struct cli, json), NULL, "answers as JSON"},
        {.name = NULL},
};

/* The first is a name or an id wherever there is one; a variable of a script that was not set is
 * the usual reason for none. */
static int operands(const struct verb *v, int n, char **operand)
{
	const char *wrong = n < v->min        ? "something is missing"
	                    : n > v->max      ? "too much"
	                    : n && !**operand ? "the first argument is empty"
	                                      : NULL;
	if (!wrong)
		return 0;
	const char *gap = v->synopsis[0] ? " " : "";
	return fail_usage("%s: abctl %s%s%s", wrong, v->name, gap, v->synopsis);
}

/* Of a verb that has second words the first operand is one. */
static int second_word(const struct verb *v, const char *word)
{
	enum { WORDS_MAX = 16 };
	const char *known[WORDS_MAX + 1] = {NULL};
	auto_free char *words = xstrdup(v->words ? v->words : "");
	char *rest = words, *next;
	for (size_t i = 0; i < WORDS_MAX && (next = strsep(&rest, " ")) && *next; i++) {
		known[i] = next;
		if (strcmp(next, word) == 0)
			return 0;
	}
	const char *near = opts_nearest(word, known);
	if (!v->words)
		return 0;
	return near ? fail_usage("unknown '%s %s' (did you mean '%s'?): abctl %s %s", v->name, word,
	                      near, v->name, v->synopsis)
	            : fail_usage(
	                      "unknown '%s %s': abctl %s %s", v->name, word, v->name, v->synopsis);
}

int verb_run(struct cli *cli, const struct verb *v, int argc, char **argv)
{
	static const struct opt none[] = {{.name = NULL}};
	struct err e = {0};
	struct opt_result r;
	auto_free void *args = xcalloc(1, v->args_size + 1);
	const struct opt *tables[] = {v->opts ? v->opts : none, verb_common, NULL};
	void *dests[] = {args, cli};
	if (opts_parse(tables, dests, v->command, argc, argv, &r, &e) < 0)
		return fail_usage("%s: %s", v->name, e.text);
	if (r.help) {
		verb_help(v);
		if (v->more_help && r.argc)
			v->more_help(cli, argv[0]);
		return EXIT_DONE;
	}
	int code = operands(v, r.argc, argv);
	if (code == 0 && r.argc)
		code = second_word(v, argv[0]);
	return code ? code : v->run(cli, args, r.argc, argv);
}
