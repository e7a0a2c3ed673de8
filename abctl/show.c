#include "abctl/show.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/term.h"
#include "base/fd.h"

#include <string.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_MAX = 64 << 20 }; /* as much as an answer can have */

int show_text(const struct buf *b)
{
	fflush(stdout);
	int r = fd_write_all(STDOUT_FILENO, b->p, b->len);
	return r < 0 ? fail_system("stdout: %s", strerror(-r)) : EXIT_DONE;
}

int show_list(
        const struct cli *cli, const char *path, const char *key, const struct column *columns)
{
	auto_json struct json *j = NULL;
	int r = query_get(cli, path, &j);
	return r ? r : show_table(cli, j, key, columns);
}

int show_table(
        const struct cli *cli, const struct json *j, const char *key, const struct column *columns)
{
	if (cli->json) {
		query_print(j);
		return EXIT_DONE;
	}
	struct term t = term_of(STDOUT_FILENO);
	auto_buf struct buf b = BUF_INIT(TEXT_MAX);
	table_write(&b, columns, json_get(j, key), t.width);
	const char *next = json_str(j, "cursor", NULL);
	if (next && *next)
		fail_note("there is more: --cursor %s", next);
	return show_text(&b);
}

int show_object(const struct cli *cli, const char *path)
{
	auto_json struct json *j = NULL;
	int r = query_get(cli, path, &j);
	if (r)
		return r;
	if (cli->json) {
		query_print(j);
		return EXIT_DONE;
	}
	auto_buf struct buf b = BUF_INIT(TEXT_MAX);
	table_tree(&b, j, 0);
	return show_text(&b);
}
