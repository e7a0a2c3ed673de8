/*
 * driver_replay.h - a recorded run of a real agent through its driver.
 *
 *	NAME.jsonl	what the agent printed
 *	NAME.stderr	and on stderr, if anything
 *	NAME.in.jsonl	what the recording host wrote, of agents that are spoken to
 *	NAME.meta.json	argv, exit or signal, ...
 *	NAME.events	the events, bytes for stdin and outcome that must come of it;
 *			GOLDEN_WRITE=1 writes them: then review them against the recording
 *
 * The driver's requests have other ids than the recording host's.  A recorded
 * answer is therefore given the id of the driver's own request of the same
 * method and order, and it is a failure when the driver has not written that
 * request by then.  What the recording host answered to permission requests is
 * answered here, and its further prompts are given to input().
 *
 * replay_mutated plays a recording as it never was: cut after each line, each
 * line left out, each line twice, each line after garbage.  Nothing of that may
 * crash, and none may succeed without the dialect's final word.
 */
#ifndef TESTS_DRIVER_REPLAY_H
#define TESTS_DRIVER_REPLAY_H

#include "tests/driver_golden.h"

#include <dirent.h>
#include <signal.h>

struct replay_lines {
	struct json *at[256]; /* owned */
	size_t n;
};

struct replay {
	const struct driver *driver;
	const char *dir, *name; /* borrowed */
	/* For a case to set before replay_run. */
	struct driver_spec spec;
	enum driver_answer answer;           /* where no answer was recorded */
	const char *const *interrupt_before; /* interrupt() at the first line with one of these */
	bool interrupted;

	/* what of the recording is played: nothing is compared then */
	bool mutated, twice;
	size_t cut, without;    /* lines to play; the line to leave out, from 1; 0: all */
	const char *noise;      /* before each line */
	const char *final_word; /* of the dialect: some line has it */

	struct json *meta; /* owned, or NULL */
	struct replay_lines in, sent;
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
	size_t prompts, lines; /* given to input(), to line() */
	bool heard;            /* the final word was played */
	struct driver_outcome outcome;
};

/* ---- what was recorded ---- */

static inline struct json *replay_json(const struct replay *p, const char *ext)
{
	auto_free char *path = xasprintf("%s/%s%s", p->dir, p->name, ext);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	return text ? json_parse(text, n, NULL) : NULL;
}

static inline void replay_add_lines(struct replay_lines *to, const char *p, size_t n)
{
	for (const char *end = p + n; p && p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
		struct json *j = json_parse(p, len, NULL);
		if (!j || to->n == ARRAY_LEN(to->at))
			must(false, "a line for the agent is JSON");
		to->at[to->n++] = j;
		p += len + 1;
	}
}

static inline const char *replay_method(const struct json *line)
{
	return json_str(line, "method", json_str(line, "type", ""));
}

/* The value after a flag in the recorded argv, or of --flag=VALUE; NULL without it. */
static inline const char *replay_flag(const struct replay *p, const char *flag)
{
	size_t n = strlen(flag);
	for (const struct json *a = json_first(json_get(p->meta, "argv")); a; a = json_next(a)) {
		const char *text = json_text(a);
		if (text && strcmp(text, flag) == 0)
			return json_text(json_next(a)) ? json_text(json_next(a)) : "";
		if (text && strncmp(text, flag, n) == 0 && text[n] == '=')
			return text + n + 1;
	}
	return NULL;
}

/* The conversation that the recorded run went on with, or NULL. */
static inline const char *replay_resume(const struct replay *p)
{
	static const char *const flags[] = {"--resume", "--session", "resume"};
	static const char *const methods[] = {"session/load", "session/resume", "thread/resume"};
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (replay_flag(p, flags[i]))
			return replay_flag(p, flags[i]);
	for (size_t i = 0; i < p->in.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(methods); k++) {
			const struct json *params = json_get(p->in.at[i], "params");
			if (strcmp(replay_method(p->in.at[i]), methods[k]) == 0)
				return json_str(
				        params, "sessionId", json_str(params, "threadId", NULL));
		}
	return NULL;
}

static inline struct driver_exit replay_exit(const struct replay *p)
{
	static const struct {
		const char *name;
		int sig;
	} sigs[] = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT}, {"SIGKILL", SIGKILL}};
	struct driver_exit x = {.code = (int)json_int(p->meta, "exit", -1)};
	for (size_t i = 0; i < ARRAY_LEN(sigs); i++)
		if (strcmp(json_str(p->meta, "signal", ""), sigs[i].name) == 0)
			x.sig = sigs[i].sig;
	x.interrupted = p->interrupted;
	return x;
}

static inline void replay_open(
        struct replay *p, const struct driver *driver, const char *dir, const char *name)
{
	*p = (struct replay){.driver = driver,
	        .dir = dir,
	        .name = name,
	        .answer = ANSWER_ONCE,
	        .to_stdin = BUF_INIT(64 << 20)};
	record_init(&p->rec);
	p->meta = replay_json(p, ".meta.json");
	if (!p->meta)
		must(false, "%s: has its meta.json", name);
	auto_free char *path = xasprintf("%s/%s.in.jsonl", dir, name);
	size_t n = 0;
	auto_free char *in = read_file(path, &n);
	replay_add_lines(&p->in, in, n);
	p->spec =
	        (struct driver_spec){.prompt = "Go.", .prompt_len = 3, .resume = replay_resume(p)};
}

static inline void replay_done(struct replay *p)
{
	for (size_t i = 0; i < p->in.n; i++)
		json_free(p->in.at[i]);
	for (size_t i = 0; i < p->sent.n; i++)
		json_free(p->sent.at[i]);
	json_free(p->meta);
	driver_outcome_done(&p->outcome);
	buf_done(&p->to_stdin);
	record_done(&p->rec);
}

/* ---- ids ---- */

static inline bool replay_same(const struct json *a, const struct json *b)
{
	auto_buf struct buf x = BUF_INIT(4096), y = BUF_INIT(4096);
	return a && b && json_print(a, &x) == 0 && json_print(b, &y) == 0 && x.len == y.len &&
	       memcmp(x.p, y.p, x.len) == 0;
}

/* The id of the k-th request of a method; NULL: there are fewer. */
static inline const struct json *replay_nth(
        const struct replay_lines *l, const char *method, size_t k)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(replay_method(l->at[i]), method) == 0 && json_get(l->at[i], "id") &&
		        k-- == 0)
			return json_get(l->at[i], "id");
	return NULL;
}

/* An answer to the recording host's request becomes one to the driver's.  Returns owned, or NULL:
 * the line is none. */
static inline char *replay_answer_for_us(
        const struct replay *p, const struct json *line, const char *text, size_t n)
{
	const struct json *id = json_get(line, "id"), *ours;
	size_t order = 0, i = 0;
	if (!id || json_get(line, "method"))
		return NULL;
	while (i < p->in.n &&
	        !(*replay_method(p->in.at[i]) && replay_same(json_get(p->in.at[i], "id"), id)))
		i++;
	if (i == p->in.n)
		return NULL;
	const char *method = replay_method(p->in.at[i]);
	for (size_t k = 0; k < i; k++)
		order += strcmp(replay_method(p->in.at[k]), method) == 0 &&
		         json_get(p->in.at[k], "id");
	ours = replay_nth(&p->sent, method, order);
	if (!ours && p->mutated)
		return NULL;
	if (!ours)
		must(false, "%s: the driver has written its %s number %zu when it is answered",
		        p->name, method, order + 1);
	auto_buf struct buf was = BUF_INIT(4096), is = BUF_INIT(4096), out = BUF_INIT(64 << 20);
	buf_puts(&was, "\"id\":");
	buf_puts(&is, "\"id\":");
	(void)json_print(id, &was), (void)json_print(ours, &is); /* they are in lines that fit */
	/* The line's own id is its first member or its last: objects inside have other values. */
	const char *at = memmem(text, n, was.p, was.len);
	if (!at && p->mutated)
		return NULL;
	if (!at)
		must(false, "%s: the id of an answer", p->name);
	buf_put(&out, text, (size_t)(at - text));
	buf_put(&out, is.p, is.len);
	buf_put(&out, at + was.len, n - (size_t)(at - text) - was.len);
	auto_json struct json *check = json_parse(out.p, out.len, NULL);
	if (!p->mutated && !replay_same(json_get(check, "id"), ours))
		must(false, "%s: an answer gets our id", p->name);
	return buf_take(&out);
}

/* ---- what the recording host did ---- */

static inline enum driver_answer replay_option(const struct json *request, const char *option)
{
	const struct json *options = json_path(request, "params", "options", NULL);
	for (const struct json *o = json_first(options); o; o = json_next(o))
		if (strcmp(json_str(o, "optionId", ""), option) == 0) {
			const char *kind = json_str(o, "kind", "");
			return strcmp(kind, "allow_once") == 0     ? ANSWER_ONCE
			       : strcmp(kind, "allow_always") == 0 ? ANSWER_ALWAYS
			                                           : ANSWER_DENY;
		}
	return ANSWER_DENY;
}

/* What was answered to this request: of ACP, of Codex's app-server, of Pi, of Claude's shape. */
static inline enum driver_answer replay_recorded_answer(
        const struct replay *p, const struct json *request)
{
	for (size_t i = 0; i < p->in.n; i++) {
		const struct json *a = p->in.at[i], *result = json_get(a, "result");
		const struct json *control = json_get(a, "response");
		bool ui = strcmp(replay_method(a), "extension_ui_response") == 0;
		if (control && replay_same(json_get(control, "request_id"),
		                       json_get(request, "request_id")))
			return strcmp(json_str(json_get(control, "response"), "behavior", ""),
			               "allow") == 0
			               ? ANSWER_ONCE
			               : ANSWER_DENY;
		if ((*replay_method(a) && !ui) ||
		        !replay_same(json_get(a, "id"), json_get(request, "id")))
			continue;
		const char *decision = json_str(result, "decision", "");
		if (ui)
			return json_bool(a, "confirmed", false) ? ANSWER_ONCE : ANSWER_DENY;
		if (strcmp(decision, "accept") == 0)
			return ANSWER_ONCE;
		if (strcmp(decision, "acceptForSession") == 0)
			return ANSWER_ALWAYS;
		return replay_option(
		        request, json_str(json_get(result, "outcome"), "optionId", ""));
	}
	return p->answer;
}

/* Notes what the driver writes, and gives it the further prompts once it has sent the first. */
static inline void replay_written(struct replay *p, bool eof)
{
	static const char *const methods[] = {"session/prompt", "turn/start", "prompt", "user"};
	size_t had = p->sent.n;
	replay_add_lines(&p->sent, p->to_stdin.p, p->to_stdin.len);
	record_stdin(&p->rec, &p->to_stdin, eof && !p->eof);
	p->eof |= eof;
	for (size_t m = 0; m < ARRAY_LEN(methods) && had < p->sent.n; m++) {
		size_t recorded = 0, ours = 0;
		for (size_t i = 0; i < p->sent.n; i++)
			ours += strcmp(replay_method(p->sent.at[i]), methods[m]) == 0;
		for (size_t i = 0; i < p->in.n; i++)
			recorded += strcmp(replay_method(p->in.at[i]), methods[m]) == 0;
		for (; ours && p->prompts + 1 < recorded; p->prompts++) {
			bool taken = p->driver->input(p->run, "More.", 5, &p->to_stdin);
			if (!taken && !p->mutated)
				ok(false, "%s: takes a further message", p->name);
		}
	}
	if (p->to_stdin.len)
		replay_written(p, false);
}

/* ---- feeding ---- */

static inline bool replay_marked(const struct replay *p, const char *line, size_t n)
{
	for (const char *const *m = p->interrupt_before; m && *m; m++)
		if (memmem(line, n, *m, strlen(*m)))
			return true;
	return false;
}

static inline void replay_line(struct replay *p, const char *text, size_t n)
{
	bool eof = false;
	auto_json struct json *line = json_parse(text, n, NULL);
	if (!p->interrupted && replay_marked(p, text, n)) {
		p->interrupted = true;
		bool can = p->driver->interrupt && p->driver->interrupt(p->run, &p->to_stdin);
		if (!can && !p->mutated)
			ok(false, "%s: can be interrupted", p->name);
		replay_written(p, false);
	}
	auto_free char *ours = replay_answer_for_us(p, line, text, n);
	p->driver->line(
	        p->run, ours ? ours : text, ours ? strlen(ours) : n, true, &p->to_stdin, &eof);
	if (p->rec.permission && p->driver->answer) {
		auto_free char *id = take(p->rec.permission);
		p->driver->answer(p->run, id, replay_recorded_answer(p, line), &p->to_stdin);
	}
	replay_written(p, eof);
}

/* The line as the mutation has it. */
static inline void replay_stdout(struct replay *p, const char *text, size_t n)
{
	bool eof = false;
	p->lines++;
	if ((p->cut && p->lines > p->cut) || p->lines == p->without)
		return;
	p->heard |= p->final_word && memmem(text, n, p->final_word, strlen(p->final_word));
	if (p->noise)
		p->driver->line(p->run, p->noise, strlen(p->noise), true, &p->to_stdin, &eof);
	replay_line(p, text, n);
	if (p->twice)
		replay_line(p, text, n);
}

static inline void replay_feed(struct replay *p, const char *ext)
{
	auto_free char *path = xasprintf("%s/%s%s", p->dir, p->name, ext);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	for (char *at = text, *end = text ? text + n : NULL; at && at < end;) {
		char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl ? (size_t)(nl - at) : (size_t)(end - at);
		if (strcmp(ext, ".stderr") == 0)
			p->driver->error_line(p->run, at, len);
		else
			replay_stdout(p, at, len);
		at = nl ? nl + 1 : end;
	}
	if (p->driver->flush)
		p->driver->flush(p->run);
}

static inline void replay_play(struct replay *p)
{
	bool eof = false;
	p->run = p->driver->open(p->driver, &p->spec, &p->rec.sink);
	if (p->driver->start(p->run, &p->to_stdin, &eof) < 0)
		must(false, "%s: starts", p->name);
	/* A prompt that is all of stdin is text, not lines. */
	if (eof || p->in.n == 0) {
		record_stdin(&p->rec, &p->to_stdin, eof);
		p->eof = eof;
	} else {
		replay_written(p, false);
	}
	replay_feed(p, ".jsonl");
	replay_feed(p, ".stderr");
	struct driver_exit x = replay_exit(p);
	p->driver->end(p->run, &x, &p->outcome);
	p->driver->close(p->run);
}

static inline void replay_run(struct replay *p)
{
	auto_free char *golden = xasprintf("%s/%s.events", p->dir, p->name);
	replay_play(p);
	record_outcome(&p->rec, &p->outcome);
	golden_compare(&p->rec, golden, p->name);
}

static inline int replay_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Does the name begin with `prefix` (after a `!`: does it not)? */
static inline bool replay_named(const char *name, const char *prefix)
{
	bool others = *prefix == '!';
	prefix += others;
	return (strncmp(name, prefix, strlen(prefix)) == 0) != others;
}

/* Names of the recorded runs in a folder that are so named, in order; each owned. */
static inline size_t replay_names(const char *dir, const char *prefix, char *names[], size_t most)
{
	size_t n = 0;
	DIR *d = opendir(dir);
	must(d, "%s opens", dir);
	for (struct dirent *e; (e = readdir(d)) && n < most;) {
		char *dot = strstr(e->d_name, ".jsonl");
		if (dot && dot[6] == '\0' && !strstr(e->d_name, ".in.jsonl") &&
		        replay_named(e->d_name, prefix))
			names[n++] = xstrndup(e->d_name, (size_t)(dot - e->d_name));
	}
	closedir(d);
	qsort(names, n, sizeof(names[0]), replay_by_name);
	return n;
}

/* Every recorded run of a folder whose name begins with `prefix`, at least so many of them.
 * `prepare` sets what a case needs; NULL: none does. */
static inline void replay_all(const struct driver *driver, const char *dir, const char *prefix,
        size_t least, void (*prepare)(struct replay *p))
{
	char *names[512];
	size_t n = replay_names(dir, prefix, names, ARRAY_LEN(names));
	ok(n >= least, "%s: %zu recorded runs", dir, n);
	for (size_t i = 0; i < n; i++) {
		struct replay p;
		replay_open(&p, driver, dir, names[i]);
		if (prepare)
			prepare(&p);
		replay_run(&p);
		replay_done(&p);
		free(names[i]);
	}
}

struct replay_mutation {
	size_t cut, without;
	bool twice;
	const char *noise;
};

/* Returns how many lines the recording has. */
static inline size_t replay_one_mutation(const struct driver *driver, const char *dir,
        const char *name, void (*prepare)(struct replay *p), const char *final_word,
        const struct replay_mutation *m)
{
	struct replay p;
	replay_open(&p, driver, dir, name);
	if (prepare)
		prepare(&p);
	p.mutated = true;
	p.final_word = final_word;
	p.cut = m->cut;
	p.without = m->without;
	p.twice = m->twice;
	p.noise = m->noise;
	replay_play(&p);
	if (p.outcome.status == DRIVER_SUCCEEDED && !p.heard)
		ok(false, "%s cut %zu without %zu: no success without %s", name, m->cut, m->without,
		        final_word);
	size_t lines = p.lines;
	replay_done(&p);
	return lines;
}

static inline void replay_mutated(const struct driver *driver, const char *dir, const char *prefix,
        void (*prepare)(struct replay *p), const char *final_word)
{
	char *names[512];
	size_t n = replay_names(dir, prefix, names, ARRAY_LEN(names)), played = 0;
	for (size_t i = 0; i < n; i++) {
		struct replay_mutation m = {.twice = true};
		size_t lines = replay_one_mutation(driver, dir, names[i], prepare, final_word, &m);
		m = (struct replay_mutation){.noise = "{\"id\":\xff\xfe\"\\ud800\"} \xe2\x82"};
		replay_one_mutation(driver, dir, names[i], prepare, final_word, &m);
		for (size_t k = 1; k <= lines; k++) {
			m = (struct replay_mutation){.cut = k};
			replay_one_mutation(driver, dir, names[i], prepare, final_word, &m);
			m = (struct replay_mutation){.without = k};
			replay_one_mutation(driver, dir, names[i], prepare, final_word, &m);
			played += 2;
		}
		free(names[i]);
	}
	ok(played > n, "%s: %zu recordings as they never were", dir, played);
}

#endif
