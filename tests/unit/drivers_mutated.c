/*
 * Every recorded run of every driver as it never was: lines left out, doubled, cut, swapped with
 *the next, bytes that are no UTF-8, NULs, lines of 10 MB.  Whatever comes, a driver
 *
 *	- does not crash, and ends (a run that hangs is killed by the alarm)
 *	- emits valid JSON, to each tool.call exactly one tool.result and no result without a call
 *	- reports success only when each part of its dialect's final word came in a line that was
 *	  left whole (`words` below says for each what that is), and never with exit code 1
 *
 * The mutations come from a seed, which a failure names: MUTATED_SEED=N repeats it alone,
 * MUTATED_VARIANTS=N plays each recording so many times.
 * The driver exec has no dialect: its only word is the exit code (drivers_exec.c).
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"

#include <unistd.h>

enum { LONG = 10 << 20 };

/* ---- final words ---- */

static bool is(const struct json *j, const char *key, const char *value)
{
	return strcmp(json_str(j, key, ""), value) == 0;
}

/* Each gives the parts of the final word that a line has, as bits. */
static unsigned claude_word(const struct json *l)
{
	return is(l, "type", "result") && is(l, "subtype", "success") &&
	       !json_bool(l, "is_error", true);
}

static unsigned codex_word(const struct json *l)
{
	return is(l, "method", "turn/completed") &&
	       is(json_path(l, "params", "turn", NULL), "status", "completed");
}

static unsigned codex_exec_word(const struct json *l)
{
	return is(l, "type", "turn.completed");
}

/* The last answer of the model ended by itself, and then all has settled. */
static unsigned pi_word(const struct json *l)
{
	const struct json *message = json_get(l, "message");
	bool last = is(l, "type", "agent_settled") || is(l, "type", "agent_end");
	bool stop = is(l, "type", "message_end") && is(message, "stopReason", "stop");
	return (last ? 1U : 0) | (stop ? 2U : 0);
}

static unsigned acp_word(const struct json *l)
{
	return is(json_get(l, "result"), "stopReason", "end_turn");
}

static unsigned opencode_word(const struct json *l)
{
	return is(l, "type", "step_finish") && is(json_get(l, "part"), "reason", "stop");
}

static unsigned gemini_word(const struct json *l)
{
	return is(l, "type", "result") && is(l, "status", "success");
}

static unsigned copilot_word(const struct json *l)
{
	return is(l, "type", "result") && json_int(l, "exitCode", -1) == 0;
}

static const struct agent {
	const char *driver, *dir, *prefix;
	unsigned (*word)(const struct json *line);
	unsigned all; /* parts of it */
} agents[] = {
        {"claude", "claude", "", claude_word, 1},
        {"qwen", "qwen", "!acp-", claude_word, 1},
        {"amp", "amp", "", claude_word, 1},
        {"codex", "codex", "server-", codex_word, 1},
        {"codex-exec", "codex-exec", "", codex_exec_word, 1},
        {"pi", "pi", "", pi_word, 3},
        {"pi", "pi-n20", "", pi_word, 3},
        {"pi-json", "pi-json", "", pi_word, 3},
        {"pi-json", "pi-n20-json", "", pi_word, 3},
        {"opencode", "opencode", "!acp-", opencode_word, 1},
        {"gemini", "gemini", "!acp-", gemini_word, 1},
        {"copilot", "copilot", "!acp-", copilot_word, 1},
        {"acp", "claude-agent-acp", "acp-", acp_word, 1},
        {"acp", "codex-acp", "acp-", acp_word, 1},
        {"acp", "copilot", "acp-", acp_word, 1},
        {"acp", "gemini", "acp-", acp_word, 1},
        {"acp", "opencode", "acp-", acp_word, 1},
        {"acp", "pi-acp", "acp-", acp_word, 1},
        {"acp", "qwen", "acp-", acp_word, 1},
};

/* ---- chance ---- */

static uint64_t state;

static size_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (size_t)(state % n) : 0;
}

/* ---- a run ---- */

struct line {
	char *p; /* borrowed of the recording, or owned */
	size_t n;
	bool owned;
};

struct lines {
	struct line *at; /* owned */
	size_t n;
};

static void add(struct lines *to, char *p, size_t n, bool owned)
{
	to->at = xrealloc(to->at, to->n + 1, sizeof(*to->at));
	to->at[to->n++] = (struct line){p, n, owned};
}

static void lines_done(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i].owned)
			free(l->at[i].p);
	free(l->at);
}

/* A line with `insert` at `at`, and `drop` bytes less there. */
static void spliced(struct lines *to, const struct line *l, size_t at, size_t drop,
        const char *insert, size_t n)
{
	char *p = xcalloc(l->n + n + 1, 1);
	memcpy(p, l->p, at);
	memcpy(p + at, insert, n);
	memcpy(p + at + n, l->p + at + drop, l->n - at - drop);
	add(to, p, l->n + n - drop, true);
}

/* 10 MB more of text where the line has text, else a member that is new. */
static void longer(struct lines *to, const struct line *l)
{
	static const char text[] = "\"text\":\"", pad[] = ",\"pad\":\"";
	char *at = memmem(l->p, l->n, text, sizeof(text) - 1);
	char *more = xcalloc(LONG + sizeof(pad) + 1, 1);
	memset(more, 'a', LONG);
	if (at) {
		spliced(to, l, (size_t)(at - l->p) + sizeof(text) - 1, 0, more, LONG);
	} else if (l->n && l->p[l->n - 1] == '}') {
		memmove(more + sizeof(pad) - 1, more, LONG);
		memcpy(more, pad, sizeof(pad) - 1);
		more[LONG + sizeof(pad) - 1] = '"';
		spliced(to, l, l->n - 1, 0, more, LONG + sizeof(pad));
	} else {
		add(to, l->p, l->n, false);
	}
	free(more);
}

/* One of the things that may happen to a line. */
static void mutate(struct lines *to, const struct lines *was, size_t *i, bool long_one)
{
	const struct line *l = &was->at[*i];
	switch (below(30)) {
	case 0: /* left out */
		break;
	case 1:
		add(to, l->p, l->n, false);
		add(to, l->p, l->n, false);
		break;
	case 2:
		add(to, l->p, below(l->n), false);
		break;
	case 3:
		if (*i + 1 < was->n) {
			const struct line *next = &was->at[++*i];
			add(to, next->p, next->n, false);
		}
		add(to, l->p, l->n, false);
		break;
	case 4:
		if (l->n)
			spliced(to, l, below(l->n), 1, "\xff", 1);
		break;
	case 5:
		if (l->n)
			spliced(to, l, below(l->n), 1, "\0", 1);
		break;
	case 6:
		spliced(to, l, below(l->n), 0, "\\u0000", 6);
		break;
	default:
		if (long_one)
			longer(to, l);
		else
			add(to, l->p, l->n, false);
	}
}

static void split(struct lines *to, char *text, size_t n)
{
	for (char *at = text, *end = text + n; text && at < end;) {
		char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl ? (size_t)(nl - at) : (size_t)(end - at);
		add(to, at, len, false);
		at = nl ? nl + 1 : end;
	}
}

static unsigned heard(const struct agent *a, const struct line *l)
{
	auto_json struct json *j = json_parse(l->p, l->n, NULL);
	return json_is_object(j) ? a->word(j) : 0;
}

/* ---- what must hold ---- */

struct open_calls {
	char *id[512]; /* owned */
	size_t n;
};

static const char *call_event(struct open_calls *c, const struct json *event)
{
	bool call = is(event, "type", "tool.call");
	const char *id = json_str(event, "callId", "");
	size_t i = 0;
	if (!call && !is(event, "type", "tool.result"))
		return NULL;
	while (i < c->n && strcmp(c->id[i], id) != 0)
		i++;
	if (call && (i < c->n || c->n == ARRAY_LEN(c->id)))
		return "a call that is open is called again";
	if (call) {
		c->id[c->n++] = xstrdup(id);
		return NULL;
	}
	if (i == c->n)
		return "a result without a call";
	free(c->id[i]);
	c->id[i] = c->id[--c->n];
	return NULL;
}

/* What is wrong with the events, or NULL. */
static const char *fault_of(const struct record *rec)
{
	struct open_calls calls = {0};
	const char *fault = NULL;
	for (const char *at = rec->out.p, *end = at + rec->out.len; at && at < end && !fault;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		auto_json struct json *event = json_parse(at, (size_t)(nl - at), NULL);
		fault = event ? call_event(&calls, event) : "an event that is no JSON";
		at = nl + 1;
	}
	if (!fault && calls.n)
		fault = "a call without a result";
	for (size_t i = 0; i < calls.n; i++)
		free(calls.id[i]);
	return fault;
}

/* Returns what does not hold, or NULL. */
static const char *play(
        const struct agent *a, struct replay *p, const struct lines *lines, struct driver_exit x)
{
	bool eof = false;
	unsigned word = 0;
	p->run = p->driver->open(p->driver, &p->spec, &p->rec.sink);
	if (p->driver->start(p->run, &p->to_stdin, &eof) < 0)
		return "does not start";
	record_stdin(&p->rec, &p->to_stdin, eof);
	for (size_t i = 0; i < lines->n; i++) {
		word |= heard(a, &lines->at[i]);
		replay_line(p, lines->at[i].p, lines->at[i].n);
		if (p->driver->flush && below(4) == 0)
			p->driver->flush(p->run);
	}
	if (p->driver->flush)
		p->driver->flush(p->run);
	p->driver->end(p->run, &x, &p->outcome);
	p->driver->close(p->run);
	bool success = p->outcome.status == DRIVER_SUCCEEDED;
	if (success == (p->outcome.error != NULL) || !p->outcome.final_text)
		return "an outcome that is none";
	if (success && word != a->all)
		return "success without the final word";
	if (success && x.code == 1)
		return "success with exit code 1";
	return fault_of(&p->rec);
}

/* ---- all of them ---- */

static size_t succeeded; /* of the agent whose turn it is */

static bool one(const struct agent *a, const char *dir, const char *name, uint64_t seed)
{
	static const struct driver_exit ends[] = {
	        {.code = 0}, {.code = 0}, {.code = 1}, {.code = 143}, {.code = -1, .sig = SIGKILL}};
	struct replay p;
	struct lines was = {0}, now = {0};
	state = seed * 0x9e3779b97f4a7c15u + 1;
	below(1);
	replay_open(&p, driver_find(a->driver), dir, name);
	p.mutated = true;
	p.spec.permissions = below(2) ? PERMISSIONS_ASK : PERMISSIONS_AUTO;
	p.answer = (enum driver_answer)below(3);
	auto_free char *path = xasprintf("%s/%s.jsonl", dir, name);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	split(&was, text, n);
	/* One line of 10 MB in some of the runs: they take their time. */
	size_t long_one = seed % 97 == 0 ? below(was.n) : SIZE_MAX;
	for (size_t i = 0; i < was.n; i++)
		mutate(&now, &was, &i, i == long_one);
	const char *fault = play(a, &p, &now, ends[below(ARRAY_LEN(ends))]);
	if (fault)
		ok(false, "%s, %s/%s, MUTATED_SEED=%llu: %s", a->driver, a->dir, name,
		        (unsigned long long)seed, fault);
	succeeded += p.outcome.status == DRIVER_SUCCEEDED;
	replay_done(&p);
	lines_done(&now);
	lines_done(&was);
	return !fault;
}

/* ---- what was recorded ---- */

static bool played(const char *dir, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		if (strcmp(agents[i].dir, dir) == 0 && replay_named(name, agents[i].prefix))
			return true;
	return false;
}

static size_t in_folder(const char *dir)
{
	size_t n = 0;
	auto_free char *path = xasprintf("tests/fixtures/%s", dir);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		char *dot = strstr(e->d_name, ".meta.json");
		if (!dot)
			continue;
		*dot = '\0';
		auto_free char *lines = xasprintf("%s/%s.jsonl", path, e->d_name);
		auto_free char *events = xasprintf("%s/%s.events", path, e->d_name);
		if (access(lines, R_OK) < 0 || access(events, R_OK) < 0 || !played(dir, e->d_name))
			ok(false, "%s/%s has lines, events and a driver", dir, e->d_name);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

/* Whatever has a meta.json is a run; none lies about unplayed. */
static void test_recorded(void)
{
	size_t n = 0;
	DIR *d = opendir("tests/fixtures");
	must(d, "tests/fixtures opens");
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			n += in_folder(e->d_name);
	closedir(d);
	ok(n >= 381, "%zu recorded runs", n);
}

/* Each driver has seeds that the fuzzer begins with, and that `make replay` plays. */
static void test_seeds(void)
{
	for (size_t i = 0; driver_name(i); i++) {
		auto_free char *want = xasprintf("%s\n", driver_name(i));
		size_t seeds = 0, n = 0;
		DIR *d = opendir("fuzz/corpus/driver_lines");
		must(d, "the seeds are there");
		for (struct dirent *e; (e = readdir(d));) {
			auto_free char *path = xasprintf("fuzz/corpus/driver_lines/%s", e->d_name);
			auto_free char *text = e->d_name[0] == '.' ? NULL : read_file(path, &n);
			seeds += text && n && strncmp(text + 1, want, strlen(want)) == 0;
		}
		closedir(d);
		ok(seeds > 0, "%s: %zu seeds", driver_name(i), seeds);
	}
}

int main(void)
{
	test_recorded();
	test_seeds();
	const char *only = getenv("MUTATED_SEED"), *more = getenv("MUTATED_VARIANTS");
	size_t variants = more ? strtoul(more, NULL, 10) : 6;
	uint64_t seed = 0, wanted = only ? strtoull(only, NULL, 10) : 0;
	alarm(900);
	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		auto_free char *dir = xasprintf("tests/fixtures/%s", agents[i].dir);
		char *names[512];
		size_t n = replay_names(dir, agents[i].prefix, names, ARRAY_LEN(names)), good = 0;
		succeeded = 0;
		for (size_t k = 0; k < n; k++) {
			for (size_t v = 0; v < variants; v++)
				if (++seed == wanted || !only)
					good += one(&agents[i], dir, names[k], seed);
			free(names[k]);
		}
		ok(n && (only || good == n * variants), "%s: %zu runs of %s", agents[i].driver,
		        good, agents[i].dir);
		/* Else nothing was tried.  Amp was never recorded as it succeeds. */
		bool can = strcmp(agents[i].driver, "amp") != 0;
		ok(only || (succeeded > 0) == can, "%zu of them succeeded", succeeded);
	}
	for (size_t i = 0; driver_name(i); i++) {
		size_t k = 0;
		while (k < ARRAY_LEN(agents) && strcmp(agents[k].driver, driver_name(i)) != 0)
			k++;
		ok(k < ARRAY_LEN(agents) || strcmp(driver_name(i), "exec") == 0, "%s is among them",
		        driver_name(i));
	}
	return done();
}
