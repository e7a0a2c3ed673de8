/*
 * opts.h - command line options from a table.
 *
 * Long options take "--name VALUE" or "--name=VALUE", short ones "-x VALUE" or
 * "-xVALUE".  What is not known is refused with a suggestion, and so is a second value
 * where there can be one.  Values are borrowed from argv.
 */
#ifndef ABCTL_OPTS_H
#define ABCTL_OPTS_H

#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>

enum opt_kind {
	OPT_FLAG,   /* bool */
	OPT_TEXT,   /* const char * */
	OPT_LIST,   /* struct opt_list: may be given again */
	OPT_NUMBER, /* int64_t >= 0 */
};

struct opt {
	const char *name; /* without dashes */
	char letter;      /* 0: none */
	enum opt_kind kind;
	size_t at;       /* offset in the verb's args */
	const char *arg; /* name of the value in help, NULL for flags */
	const char *doc;
};

enum { OPT_LIST_MAX = LIMIT_EXEC_ENVS }; /* the longest list of the API */
struct opt_list {
	int n;
	const char *v[OPT_LIST_MAX];
};

struct opt_result {
	int argc;  /* operands, moved to the front of argv */
	bool help; /* --help or -h was seen: nothing else is checked */
};

/*
 * Parses argv[0..argc).  `tables` is a NULL-ended list of option tables and
 * `dests` the struct each fills.  With `stop`, the first operand ends the
 * options (what follows belongs to a command).  0, or -EINVAL with the sentence
 * for the user.
 */
MUST_USE int opts_parse(const struct opt *const *tables, void *const *dests, bool stop, int argc,
        char **argv, struct opt_result *ret, struct err *e);

/* The candidate nearest to `word`, or NULL when none is near enough to be meant. */
const char *opts_nearest(const char *word, const char *const *candidates);

#endif
