/*
 * driver_lines.h - what a driver starts, refuses, and makes of a few lines.
 */
#ifndef TESTS_DRIVER_LINES_H
#define TESTS_DRIVER_LINES_H

#include "tests/driver_record.h"
#include "tests/t.h"

/* A program and an address. */
static const struct driver_mcp two_servers[2] = {
        {.name = "local", .command = LIST("node", "a.mjs"), .env = LIST("A=1")},
        {.name = "far", .url = "http://far.example/mcp", .headers = LIST("X-Key: v")},
};

/* argv, environment and files as text; returns owned. */
static inline char *written(const struct driver *d, const struct driver_spec *spec)
{
	struct driver_command c = {0};
	struct err e = {0};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	must(d->command(spec, &c, &e) == 0, "%s: accepted (%s)", d->name, e.text);
	for (char **a = c.argv; *a; a++)
		buf_printf(&b, "%s ", *a);
	for (char **v = c.env; v && *v; v++)
		buf_printf(&b, "| %s ", *v);
	for (size_t i = 0; i < c.nfiles; i++)
		buf_printf(&b, "| %s: %s ", c.files[i].path, c.files[i].text);
	driver_command_done(&c);
	return buf_take(&b);
}

static inline void writes(const struct driver *d, const struct driver_spec *spec, const char *want)
{
	auto_free char *got = written(d, spec);
	is_str(got, want, "%s: how it is started", d->name);
}

static inline void refused(const struct driver *d, const struct driver_spec *spec, const char *word)
{
	struct driver_command c = {0};
	struct err e = {0};
	ok(d->check(spec, &e) == -ENOEXEC && strstr(e.text, word) &&
	                d->command(spec, &c, NULL) == -ENOEXEC && !c.argv,
	        "%s refuses: %s", d->name, e.text);
}

/* What comes of these lines (the last is NULL) and of how it then ended, as text. */
static inline void comes_of(const struct driver *d, const char *const *lines,
        const char *error_line, struct driver_exit x, const char *want)
{
	struct record rec;
	auto_buf struct buf to_stdin = BUF_INIT(1 << 20);
	struct driver_outcome o = {0};
	bool eof = false;
	record_init(&rec);
	const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3, .resume = "s"};
	struct driver_run *r = d->open(d, &spec, &rec.sink);
	must(d->start(r, &to_stdin, &eof) == 0, "starts");
	for (; *lines; lines++)
		d->line(r, *lines, strlen(*lines), true, &to_stdin, &eof);
	if (error_line)
		d->error_line(r, error_line, strlen(error_line));
	d->end(r, &x, &o);
	record_outcome(&rec, &o);
	if (!ok(strstr(rec.out.p, want) != NULL, "%s: %.90s", d->name, want))
		printf("# %s\n", rec.out.p);
	driver_outcome_done(&o);
	d->close(r);
	record_done(&rec);
}

#endif
