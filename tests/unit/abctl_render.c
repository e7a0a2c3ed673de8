#include "base/neutral.h"
#include "abctl/render.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

/* Renders a file of events; between events the status line is drawn when `live`. */
static char *render_file(const char *name, const struct render_options *o)
{
	auto_free char *path = xasprintf("tests/fixtures/render/%s.jsonl", name);
	auto_free char *text = NULL;
	size_t n = 0;
	if (file_slurp(path, 1 << 20, &text, &n) < 0)
		return xstrdup("(no such fixture: run this from the root of the tree)");
	auto_render struct render *r = render_new(o);
	auto_buf struct buf out = BUF_INIT(1 << 20);
	int64_t now = 1000;
	for (char *line = text; *line; now += 100) {
		char *nl = strchr(line, '\n');
		auto_json struct json *event = json_parse(line, (size_t)(nl - line), NULL);
		render_hide(r, &out);
		render_event(r, event, now, &out);
		render_status(r, now, &out);
		line = nl + 1;
	}
	render_hide(r, &out);
	return buf_take(&out);
}

static void plain(const char *name, const char *what)
{
	struct render_options o = {.width = 0};
	auto_free char *want = NULL, *got = render_file(name, &o);
	auto_free char *path = xasprintf("tests/fixtures/render/%s.txt", name);
	size_t n = 0;
	must(file_slurp(path, 1 << 20, &want, &n) == 0, "expected");
	is_str(got, want, "%s as plain text", what);
}

/* What a terminal of `width` columns shows in the end: enough of one for what we send. */
struct screen {
	char rows[64][256]; /* bytes; UTF-8 counts as its width */
	size_t row, col;
};

static size_t escape(struct screen *s, const char *p)
{
	size_t n = 2;
	int arg = 0;
	for (; p[n] >= '0' && p[n] <= '9'; n++)
		arg = arg * 10 + (p[n] - '0');
	if (p[n] == 'K')
		memset(s->rows[s->row], 0, sizeof(s->rows[s->row]));
	else if (p[n] == 'A')
		s->row -= s->row > 0;
	else if (p[n] == 'G')
		s->col = (size_t)arg - 1;
	else if (p[n] != 'm')
		return 0; /* not one of ours */
	return n + 1;
}

static bool play(struct screen *s, const char *p, size_t width)
{
	while (*p) {
		if (*p == '\x1b') {
			size_t n = p[1] == '[' ? escape(s, p) : 0;
			if (!n)
				return false;
			p += n;
			continue;
		}
		if (*p == '\r') {
			s->col = 0;
		} else if (*p == '\n') {
			s->row++;
			s->col = 0;
		} else {
			if (s->col == width) {
				s->row++;
				s->col = 0;
			}
			s->rows[s->row][s->col++] = *p;
		}
		p++;
		if (s->row >= 64)
			return false;
	}
	return true;
}

static void live(void)
{
	struct render_options o = {.live = true, .colour = true, .width = 40};
	auto_free char *got = render_file("claude", &o);
	struct screen s = {0};
	must(play(&s, got, 40), "only the sequences we know are sent");
	bool spinner = false, fits = true;
	for (int i = 0; i < 64; i++) {
		spinner = spinner || strstr(s.rows[i], "0m0");
		fits = fits && strlen(s.rows[i]) <= 40;
	}
	ok(strstr(got, "0m00s") != NULL, "a status line was drawn");
	ok(strstr(got, "12k tokens") != NULL, "with tokens");
	ok(!spinner, "and nothing is left of it");
	ok(fits, "no line is wider than the terminal");
	is_str(s.rows[0], "ppt-generate, claude 2.1.201, claude-son",
	        "the header of a jail that lacks");
	is_str(s.rows[2], "emory, limit.disk", "something is not cut");
	is_str(s.rows[5], "I will write the deck now.",
	        "text that was interrupted by the status line is whole");
	is_str(s.rows[6], "ok Write out/deck.js  300 ms", "a tool call");
	is_str(s.rows[8], "! egress denied: registry.example:443 n", "a refusal is cut");
	is_str(s.rows[9], "failed Bash npm test  exit 1  3.2 s", "a failed call");
}

static void hostile(void)
{
	struct render_options o = {.width = 0};
	auto_free char *got = render_file("hostile", &o);
	bool harmless = true;
	for (const char *p = got; *p; p++)
		harmless = harmless && ((unsigned char)*p >= 0x20 || *p == '\n');
	ok(harmless && !strstr(got, "\xc2\x9b") && !strstr(got, "\xe2\x80\xae"),
	        "nothing that steers a terminal passes");
	ok(strstr(got, "queued, position 3") && strstr(got, "attempt 2"), "queue and attempt");
	ok(strstr(got, "half^[[2Jhalf"), "a sequence split over two events stays harmless");
	ok(strstr(got, "| warn<U+009B>31m") && !strstr(got, "unknown"),
	        "stderr is shown, strange lines are not");
	ok(strstr(got, "    5\n    ...\n"), "long output of a failed call is cut");
	ok(strstr(got, "fai^[led, 1 ms\n  exit 3:^[[31m bad\n  second line\n"), "why it failed");

	struct render_options l = {.live = true, .colour = true, .utf8 = true, .width = 20};
	auto_free char *narrow = render_file("hostile", &l);
	struct screen s = {0};
	ok(play(&s, narrow, 20), "live, on a narrow terminal, too");

	auto_free char *empty = render_file("empty", &o);
	is_str(empty, "ended, 0 ms\n", "a result without anything");
}

/* A status line under text that ends exactly at the edge. */
static void edge(void)
{
	struct render_options o = {.live = true, .width = 20};
	auto_render struct render *r = render_new(&o);
	auto_buf struct buf out = BUF_INIT(1 << 16);
	const char *events[] = {
	        "{\"type\":\"agent.message\",\"delta\":true,\"text\":\"aaaaaaaaaabbbbbbbbbb\"}",
	        "{\"type\":\"agent.message\",\"delta\":true,\"text\":\"cc\"}",
	        "{\"type\":\"agent.message\",\"delta\":true,\"text\":\"dd\"}",
	};
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		auto_json struct json *e = json_parse(events[i], strlen(events[i]), NULL);
		render_hide(r, &out);
		render_event(r, e, 1, &out);
		render_status(r, 1, &out);
		render_hide(r, &out);
		render_status(r, 200, &out);
	}
	render_hide(r, &out);
	struct screen s = {0};
	must(play(&s, out.p, 20), "played");
	is_str(s.rows[0], "aaaaaaaaaabbbbbbbbbb", "the full line");
	is_str(s.rows[1], "ccdd", "goes on below");
	ok(s.rows[2][0] == '\0' && s.row == 1 && s.col == 4, "the cursor is behind the text");
}

/* What to add comes with the first refusal of a kind; the end sums. */
static void refusals(void)
{
	static const char *const events[] = {
	        "{\"type\":\"egress.denied\",\"host\":\"a.b\",\"port\":53,\"reason\":\"no\","
	        "\"hint\":\"add it\"}",
	        "{\"type\":\"egress.denied\",\"host\":\"a.b\",\"port\":53,\"reason\":\"no\","
	        "\"hint\":\"add it\",\"times\":4}",
	        "{\"type\":\"run.done\",\"result\":{\"status\":\"succeeded\",\"egress\":{"
	        "\"denied\":5,"
	        "\"bytesIn\":2048,\"bytesOut\":1024}}}"};
	struct render_options o = {.width = 200};
	struct render *r = render_new(&o);
	auto_buf struct buf out = BUF_INIT(64 << 10);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		auto_json struct json *j = json_parse(events[i], strlen(events[i]), NULL);
		render_event(r, j, 1, &out);
	}
	const char *first = "! egress denied: a.b:53 no\n  to allow it: add it\n"
	                    "! egress denied: a.b:53 no (4 times)\nsucceeded";
	ok(strncmp(out.p, first, strlen(first)) == 0, "refusals: %s", out.p);
	ok(strstr(out.p, " in, ") && strstr(out.p, " out, 5 refused by egress"), "and their sum");
	render_free(r);
}

int main(void)
{
	refusals();
	plain("claude", "a run");
	plain("asks", "what is asked and said");
	live();
	hostile();
	edge();
	return done();
}
