/*
 * driver_talk.h - a driver, line by line, with a test as the agent.  What goes to the agent's stdin
 * is in the record, too.
 */
#ifndef TESTS_DRIVER_TALK_H
#define TESTS_DRIVER_TALK_H

#include "tests/driver_record.h"
#include "tests/t.h"

struct talk {
	const struct driver *driver;
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

static inline void talk_begin(
        struct talk *t, const struct driver *d, const struct driver_spec *spec)
{
	*t = (struct talk){.driver = d, .to_stdin = BUF_INIT(64 << 20)};
	record_init(&t->rec);
	t->run = d->open(d, spec, &t->rec.sink);
	must(d->start(t->run, &t->to_stdin, &t->eof) == 0, "starts");
	record_stdin(&t->rec, &t->to_stdin, t->eof);
}

static inline void say(struct talk *t, const char *line)
{
	bool eof = false;
	t->driver->line(t->run, line, strlen(line), true, &t->to_stdin, &eof);
	record_stdin(&t->rec, &t->to_stdin, eof);
	t->eof |= eof;
}

#endif
