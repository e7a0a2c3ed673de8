/* What all drivers share: the table, event names, raw pieces, the tail of a text, open calls. */
#include "drivers/driver.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "drivers/calls.h"
#include "drivers/emit.h"
#include "drivers/ending.h"
#include "drivers/tail.h"
#include "tests/driver_record.h"
#include "tests/t.h"

static void test_table(void)
{
	ok(driver_find("exec") == &driver_exec && driver_find("claude") == &driver_claude &&
	                driver_find("codex") == &driver_codex &&
	                driver_find("codex-exec") == &driver_codex_exec &&
	                driver_find("acp") == &driver_acp && driver_find("pi") == &driver_pi &&
	                driver_find("pi-json") == &driver_pi_json,
	        "found");
	ok(!driver_find("Exec") && !driver_find(""), "not found");
	size_t n = 0;
	for (; driver_name(n); n++) {
		const struct driver *d = driver_find(driver_name(n));
		must(d, "%s is in the table", driver_name(n));
		ok(d->check && d->command && d->open && d->start && d->line && d->error_line &&
		                d->end && d->close,
		        "%s is complete", d->name);
		d->close(NULL);
	}
	ok(n == 12, "%zu drivers", n);
	for (int t = 0; t < EVENT_COUNT; t++)
		ok(event_by_name(event_name((enum event_type)t)) == t, "%s",
		        event_name((enum event_type)t));
	ok(event_by_name("agent.messages") == -1 && event_by_name("") == -1, "no such event");
	struct driver_command c = {0};
	driver_command_done(&c);
	struct driver_outcome o = {0};
	driver_outcome_done(&o);
	ok(true, "empty ones can be freed");
}

/* The rows say what the functions do. */
static void test_abilities(void)
{
	for (int a = 0; a < ABILITY_COUNT; a++) {
		const char *name = ability_name((enum ability)a);
		ok(ability_by_name(name) == a && strcmp(ability_names()[a], name) == 0,
		        "%s has one name", name);
		ok(ability_what((enum ability)a)[0], "%s is told in words", name);
		ok(!ability_enforced((enum ability)a) || ability_key((enum ability)a),
		        "%s: what is enforced is asked for", name);
	}
	ok(!ability_names()[ABILITY_COUNT], "the list of names ends");
	ok(ability_by_name("mcp") == -1 && ability_by_name("") == -1, "no such ability");
	is_str(ability_word(CAN(MODEL), ABILITY_MODEL), "yes", "can");
	is_str(ability_word(CAN(MODEL), ABILITY_PLAN), "no", "cannot");
	is_str(ability_word(0, ABILITY_MAX_TURNS), "enforced", "the supervisor does it");
	for (size_t i = 0; driver_name(i); i++) {
		const struct driver *d = driver_find(driver_name(i));
		ok(ability_in(d->can, ABILITY_INPUT) == (d->input != NULL), "%s: input", d->name);
		ok(ability_in(d->can, ABILITY_INTERRUPT) == (d->interrupt != NULL), "%s: interrupt",
		        d->name);
		ok(ability_in(d->can, ABILITY_ASK) == (d->answer != NULL), "%s: ask", d->name);
		ok(ability_in(d->can, ABILITY_QUESTIONS) == (d->reply != NULL), "%s: questions",
		        d->name);
		ok(ability_in(d->can, ABILITY_WARM) == (d->rest != NULL), "%s: warm", d->name);
		ok((d->can_if_told & ~d->can) == 0 &&
		                (d->can_if_told & ~(CAN(MODEL) | CAN(SYSTEM_PROMPT))) == 0,
		        "%s: what agent.yaml can add", d->name);
		ok(d->can >> ABILITY_COUNT == 0, "%s: no bit without a name", d->name);
	}
}

/* Answers of the model that had begun at the end of a recorded run. */
static void test_turns(void)
{
	static const struct {
		const struct driver *d;
		const char *file;
		int64_t turns;
	} runs[] = {
	        {&driver_opencode, "opencode/two-tools", 2}, /* one by one, of one answer */
	        {&driver_opencode, "opencode/text", 1},
	        {&driver_copilot, "copilot/two-tools", 2},
	        {&driver_copilot, "copilot/tool", 2},
	        {&driver_pi_json, "pi-json/two-tools", 2},
	        {&driver_pi, "pi-json/tool", 2},
	        {&driver_codex, "codex/server-tool", 2},
	        {&driver_codex, "codex/server-eof", 1},
	        {&driver_amp, "claude/two-tools", 2},
	};
	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		const struct driver *d = runs[i].d;
		struct record rec;
		record_init(&rec);
		auto_buf struct buf to_stdin = BUF_INIT(1 << 20);
		bool eof = false;
		const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3};
		struct driver_run *r = d->open(d, &spec, &rec.sink);
		must(d->start(r, &to_stdin, &eof) == 0, "starts");
		ok(d->turns(r) == 0, "%s: none yet", d->name);
		auto_free char *path = xasprintf("tests/fixtures/%s.jsonl", runs[i].file);
		size_t n = 0;
		auto_free char *text = read_file(path, &n);
		must(text, "%s opens", path);
		for (char *line, *rest = text; (line = strsep(&rest, "\n"));)
			d->line(r, line, strlen(line), true, &to_stdin, &eof);
		ok(d->turns(r) == runs[i].turns, "%s: %s: %lld", d->name, runs[i].file,
		        (long long)d->turns(r));
		struct driver_outcome o = {0};
		d->end(r, &(struct driver_exit){.code = 0}, &o);
		driver_outcome_done(&o);
		d->close(r);
		record_done(&rec);
	}
}

/* Joins the "line" members of recorded raw events; counts those with more. */
static void join_raw(const struct record *r, struct buf *to, int *ret_more)
{
	for (const char *at = r->out.p; at && *at;) {
		size_t n = strcspn(at, "\n");
		auto_json struct json *j = json_parse(at, n, NULL);
		buf_puts(to, json_str(j, "line", "?"));
		*ret_more += json_bool(j, "more", false);
		at += n + 1;
	}
}

/* docs/EVENTS.md is what others program against: it names every event. */
static void test_documented(void)
{
	size_t n = 0;
	auto_free char *text = read_file("docs/EVENTS.md", &n);
	must(text, "docs/EVENTS.md opens");
	for (int t = 0; t < EVENT_COUNT; t++) {
		auto_free char *row = xasprintf("| `%s` |", event_name((enum event_type)t));
		ok(strstr(text, row), "%s is documented", event_name((enum event_type)t));
	}
}

static void test_raw(void)
{
	struct record r;
	record_init(&r);
	/* Three-byte characters: LIMIT_RAW_PIECE is no multiple of three. */
	size_t n = 3 * (LIMIT_RAW_PIECE / 2);
	auto_buf struct buf text = BUF_INIT(n + 1), back = BUF_INIT(4 * n);
	while (text.len < n)
		buf_puts(&text, "\xe2\x82\xac");
	emit_raw(&r.sink, NULL, text.p, text.len, false);
	int more = 0;
	join_raw(&r, &back, &more);
	ok(r.events == 2 && more == 1, "a long line comes in pieces");
	ok(back.len == text.len && memcmp(back.p, text.p, text.len) == 0, "no character is cut");
	record_done(&r);
	record_init(&r);
	memset(text.p, '\x80', text.len);
	emit_raw(&r.sink, "stderr", text.p, text.len, true);
	ok(r.events == 2 && strstr(r.out.p, "\"stream\":\"stderr\",\"more\":true"), "rubbish too");
	emit_error(&r.sink, text.p, text.p, true);
	ok(!strstr(r.out.p, "\"code\"") && strstr(r.out.p, "\"retryable\":true"),
	        "a code that is too long is left out");
	record_done(&r);
}

static void test_tail(void)
{
	struct tail t = {0};
	auto_free char *none = tail_take(&t);
	is_str(none, "", "no text");
	size_t n = LIMIT_FINAL_TEXT + 10;
	auto_free char *big = xcalloc(n + 1, 1);
	memset(big, 'a', n);
	memcpy(big + 9, "\xe2\x82\xac", 3); /* the last byte of it is the first one kept */
	tail_add(&t, "lost", 4);
	tail_add(&t, big, n);
	auto_free char *kept = tail_take(&t);
	ok(strlen(kept) == LIMIT_FINAL_TEXT - 2 && *kept == 'a',
	        "the last bytes, whole characters");
	for (size_t i = 0; i < 3 * LIMIT_FINAL_TEXT / 1000; i++)
		tail_add(&t, big + 100, 1000);
	tail_add(&t, "end", 4); /* with its NUL */
	auto_free char *small = tail_take(&t);
	ok(strlen(small) == LIMIT_FINAL_TEXT && strcmp(small + LIMIT_FINAL_TEXT - 4, "end?") == 0,
	        "in small pieces; a NUL is no end");
	tail_done(&t);
}

static void test_calls(void)
{
	struct calls c = {0};
	ok(calls_text_ok("x") && !calls_text_ok("") && !calls_text_ok(NULL), "ids have a length");
	ok(calls_start(&c, "1", "A") && calls_start(&c, "2", "B") && calls_start(&c, "3", "C"),
	        "three");
	ok(!calls_start(&c, "2", "X"), "an open id is not opened again");
	calls_finish(&c, "2");
	calls_finish(&c, "2");
	ok(!calls_name(&c, "2"), "finished");
	is_str(calls_name(&c, "3"), "C", "the name of another");
	struct record r;
	record_init(&r);
	calls_close_all(&c, &r.sink, "over");
	ok(c.total == 3 && c.n == 0, "all counted, none open");
	is_str(r.out.p,
	        "{\"type\":\"tool.result\",\"callId\":\"1\",\"name\":\"A\",\"ok\":false,\"output\":"
	        "\"over\"}\n"
	        "{\"type\":\"tool.result\",\"callId\":\"3\",\"name\":\"C\",\"ok\":false,\"output\":"
	        "\"over\"}\n",
	        "each gets a result, in order");
	record_done(&r);
	int opened = 0;
	for (int i = 0; i < CALLS_OPEN_MAX + 5; i++) {
		auto_free char *id = xasprintf("%d", i);
		opened += calls_start(&c, id, "x");
	}
	ok(opened == CALLS_OPEN_MAX, "there is a limit");
	calls_done(&c);
}

static void test_ending(void)
{
	struct ending d = {0};
	auto_free char *plain = ending_text(&d, &(struct driver_exit){.code = 3});
	is_str(plain, "exited with code 3", "a code");
	ending_error_line(&d, "first", 5);
	ending_error_line(&d, "why \t\r", 6);
	ending_error_line(&d, "  ", 2);
	auto_free char *why = ending_text(&d, &(struct driver_exit){.code = -1, .sig = 15});
	is_str(why, "was killed by signal 15 (SIGTERM): why", "a signal, and the last line");
	char big[2000];
	memset(big, 'x', sizeof(big));
	ending_error_line(&d, big, sizeof(big));
	ok(strlen(d.last) == sizeof(d.last) - 1, "a long line is cut");
	auto_free char *odd = ending_text(&d, &(struct driver_exit){.code = -1});
	ok(strstr(odd, "unknown way"), "neither code nor signal");
}

int main(void)
{
	test_table();
	test_abilities();
	test_turns();
	test_documented();
	test_raw();
	test_tail();
	test_calls();
	test_ending();
	return done();
}
