#include "abctl/opts.h"
#include "tests/t.h"

#include <stdint.h>

struct args {
	const char *name;
	bool flag, other;
	int64_t number;
	struct opt_list list;
};

static const struct opt table[] = {
        {"name", 'n', OPT_TEXT, offsetof(struct args, name), "NAME", ""},
        {"flag", 'f', OPT_FLAG, offsetof(struct args, flag), NULL, ""},
        {"other", 'o', OPT_FLAG, offsetof(struct args, other), NULL, ""},
        {"number", 0, OPT_NUMBER, offsetof(struct args, number), "N", ""},
        {"list", 'l', OPT_LIST, offsetof(struct args, list), "X", ""},
        {.name = NULL},
};

enum { ARGV = 8 };

static const struct {
	const char *argv[ARGV];
	bool stop;
	const char *error;    /* NULL: none */
	const char *operands; /* joined by spaces */
	const char *name;
	int flags; /* flag + 2 * other */
	int64_t number;
	int list;
} rows[] = {
        {{NULL}, false, NULL, "", NULL, 0, 0, 0},
        {{"a", "b"}, false, NULL, "a b", NULL, 0, 0, 0},
        {{"--name", "x", "a"}, false, NULL, "a", "x", 0, 0, 0},
        {{"--name=x=y"}, false, NULL, "", "x=y", 0, 0, 0},
        {{"--name="}, false, NULL, "", "", 0, 0, 0},
        {{"-nx"}, false, NULL, "", "x", 0, 0, 0},
        {{"-n", "-f"}, false, NULL, "", "-f", 0, 0, 0},
        {{"-fo", "a"}, false, NULL, "a", NULL, 3, 0, 0},
        {{"-fnx"}, false, NULL, "", "x", 1, 0, 0},
        {{"a", "-f"}, false, NULL, "a", NULL, 1, 0, 0},
        {{"a", "-f"}, true, NULL, "a -f", NULL, 0, 0, 0},
        {{"-f", "--", "-o"}, false, NULL, "-o", NULL, 1, 0, 0},
        {{"-f", "--", "a", "--", "b"}, true, NULL, "a -- b", NULL, 1, 0, 0},
        {{"-"}, false, NULL, "-", NULL, 0, 0, 0},
        {{"--number", "42"}, false, NULL, "", NULL, 0, 42, 0},
        {{"-l", "1", "--list=2", "-l3"}, false, NULL, "", NULL, 0, 0, 3},
        {{"--number", "4x"}, false, "option '--number' takes a number, not '4x'", NULL, NULL, 0, 0,
                0},
        {{"--number=-1"}, false, "option '--number' takes a number, not '-1'", NULL, NULL, 0, 0, 0},
        {{"--number", "99999999999999999999"}, false,
                "option '--number' takes a number, not '99999999999999999999'", NULL, NULL, 0, 0,
                0},
        {{"--flag=1"}, false, "option '--flag' takes no value", NULL, NULL, 0, 0, 0},
        {{"--name"}, false, "option '--name' needs NAME", NULL, NULL, 0, 0, 0},
        {{"--nmae", "x"}, false, "unknown option '--nmae' (did you mean '--name'?)", NULL, NULL, 0,
                0, 0},
        {{"--numbr=2"}, false, "unknown option '--numbr' (did you mean '--number'?)", NULL, NULL, 0,
                0, 0},
        {{"-nx", "--name=y"}, false, "option '--name' is given twice", NULL, NULL, 0, 0, 0},
        {{"--number=1", "--number=1"}, false, "option '--number' is given twice", NULL, NULL, 0, 0,
                0},
        {{"--zzzzzz"}, false, "unknown option '--zzzzzz' (see --help)", NULL, NULL, 0, 0, 0},
        {{"-z"}, false, "unknown option '-z' (see --help)", NULL, NULL, 0, 0, 0},
};

static void row(size_t i)
{
	struct args a = {0};
	const struct opt *tables[] = {table, NULL};
	void *dests[] = {&a};
	char *argv[ARGV];
	char text[ARGV][64], title[256] = "", joined[256] = "";
	int argc = 0;
	for (; rows[i].argv[argc]; argc++) {
		snprintf(text[argc], sizeof(text[argc]), "%s", rows[i].argv[argc]);
		argv[argc] = text[argc];
		strcat(strcat(title, " "), text[argc]);
	}
	struct opt_result r = {0};
	struct err e = {0};
	int rc = opts_parse(tables, dests, rows[i].stop, argc, argv, &r, &e);
	if (rows[i].error) {
		ok(rc < 0, "refused:%s", title);
		is_str(e.text, rows[i].error, "and why");
		return;
	}
	ok(rc == 0, "parsed:%s", title);
	for (int k = 0; k < r.argc; k++)
		strcat(strcat(joined, k ? " " : ""), argv[k]);
	is_str(joined, rows[i].operands, "operands of%s", title);
	if (rows[i].name)
		is_str(a.name, rows[i].name, "name of%s", title);
	ok(a.flag + 2 * a.other == rows[i].flags && a.number == rows[i].number &&
	                a.list.n == rows[i].list,
	        "values of%s", title);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row(i);

	struct args a = {0};
	const struct opt *tables[] = {table, NULL};
	void *dests[] = {&a};
	struct opt_result r = {0};
	char help[] = "--help", bad[] = "--bad";
	char *h[] = {help, bad};
	ok(opts_parse(tables, dests, false, 2, h, &r, NULL) == 0 && r.help,
	        "--help wins over what follows");
	char *many[OPT_LIST_MAX + 1];
	char item[] = "-lx";
	for (int i = 0; i <= OPT_LIST_MAX; i++)
		many[i] = item;
	ok(opts_parse(tables, dests, false, OPT_LIST_MAX + 1, many, &r, NULL) == -E2BIG,
	        "a list has an end");

	const char *const words[] = {"run", "runs", "harness", "sessions", "session", NULL};
	is_str(opts_nearest("rnu", words), "run", "swapped letters");
	is_str(opts_nearest("rnus", words), "runs", "swapped, longer");
	is_str(opts_nearest("sesion", words), "session", "a letter missing");
	ok(!opts_nearest("xyz", words), "nothing near");
	ok(!opts_nearest("", words), "nothing near nothing");
	return done();
}
