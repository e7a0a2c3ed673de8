/*
 * show.h - how the verbs that only ask print what they got: --json as it came,
 * else a table or a tree on stdout.
 */
#ifndef ABCTL_SHOW_H
#define ABCTL_SHOW_H

#include "abctl/table.h"
#include "abctl/verb.h"

/* GET path; the list under `key` as a table, or the whole answer with --json.  Exit code. */
int show_list(
        const struct cli *cli, const char *path, const char *key, const struct column *columns);
/* The same for an answer that is there already. */
int show_table(const struct cli *cli, const struct json *answer, const char *key,
        const struct column *columns);
/* GET path; the object as a tree. */
int show_object(const struct cli *cli, const char *path);
/* A buffer made for people, on stdout. */
int show_text(const struct buf *b);

#endif
