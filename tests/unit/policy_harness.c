#include "policy/harness.h"
#include "base/mem.h"
#include "policy/harness_params.h"
#include "tests/fixtures.h"

static int notes;
static char noted[4096];

static void note(void *ctx, const char *file, int line, const char *text)
{
	(void)ctx;
	(void)file;
	notes++;
	size_t len = strlen(noted);
	(void)snprintf(noted + len, sizeof(noted) - len, "%d: %s\n", line, text);
}

static struct harness *load(const char *path, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = 0;
	must(file_slurp(path, 1 << 20, &text, &n) == 0, "%s", path);
	notes = 0;
	noted[0] = '\0';
	return harness_parse(path, text, n, note, NULL, e);
}

static void bad(const char *path, const char *text, size_t n)
{
	struct err e = {0};
	struct harness *h = harness_parse(path, text, n, NULL, NULL, &e);
	fixture_check(path, text, h ? "(accepted)" : e.text);
	harness_unref(h);
}

static void full(void)
{
	struct err e = {0};
	struct harness *h = load("tests/fixtures/harness/good/full.md", &e);
	must(h != NULL, "full.md parses: %s", e.text);
	is_str(h->name, "ppt-generate", "name");
	is_str(h->policy, "strict", "policy");
	is_str(h->system_prompt, "# You make decks\n\nSecond line.", "the body, trimmed");
	ok(h->narrow.memory_bytes == 1 << 30, "the smaller of two limits counts");
	ok(h->narrow.pids == 512 && h->narrow.cpu_milli == 1500 && h->narrow.wall_ms == 600000,
	        "limits of both places");
	ok(h->timeout_ms == 480000 && h->max_turns == 30 && h->output_bytes == 64 << 20, "limits");
	ok(h->nmcp == 2 && h->mcp[0].command[3] == NULL, "two servers");
	is_str(h->mcp[0].command[2], "--stdio", "args follow the command");
	is_str(h->mcp[0].env[0], "A=1", "their environment");
	is_str(h->mcp[1].headers[0], "X-Key: abc", "their headers");
	is_str(h->tools_allow[2], "Bash(node:*)", "a pattern");
	ok(h->nseed == 2, "seeds");
	ok(h->read_only && !strcmp(h->read_only[0], "data") && !h->read_only[1], "read-only paths");
	is_str(h->seed[0].value, "{\"a\": 1}\n", "\\n in double quotes is a newline");
	ok(h->nenv == 2, "env");
	is_str(h->env[1].value, "3", "a number is a text there");
	ok(h->retry_on == (1 | 4) && h->max_attempts == 2, "retry");
	ok(h->permissions == HARNESS_ASK && h->ask_timeout_ms == 300000 &&
	                h->ask_default == HARNESS_ASK_DENY,
	        "permissions as a word");
	ok(!h->verify_required && h->nguard_output == 1 && h->guard_output[0].in_artifacts,
	        "checks");
	ok(harness_unsupported(h, NULL, NULL, &e) == -ENOEXEC, "much of it is not executed");
	printf("# %s\n", e.text);
	notes = 0;
	(void)!harness_unsupported(h, note, NULL, &e);
	ok(notes == 2, "each such key is named (%d)", notes);
	struct harness *again = harness_ref(h);
	harness_unref(h);
	is_str(again->backend, "claude", "alive while referenced");
	harness_unref(again);
}

static void refuse(const struct harness *h, const char *name, const char *value, const char *why)
{
	struct err e = {0};
	const char *names[] = {"who", name}, *values[] = {"ana", value};
	int rc = harness_params_check(h, "", 0, names, values, name ? 2 : 0, &e);
	ok(rc == -EINVAL && strstr(e.text, why), "refused: %s", why);
}

static void params(void)
{
	struct err e = {0};
	struct harness *h = load("tests/fixtures/harness/good/full.md", &e);
	must(h != NULL, "full.md parses: %s", e.text);
	const char *names[] = {"who", "lang"}, *values[] = {"ana", "en"};
	ok(harness_params_check(h, "", 0, names, values, 2, &e) == 0, "what it declares is taken");
	ok(harness_params_check(h, "", 0, names, values, 1, &e) == 0,
	        "without those that may lack");
	refuse(h, NULL, NULL, "params.who: missing");
	refuse(h, "lang", "fr", "none of de, en");
	refuse(h, "who", "Ana", "not of the form");
	refuse(h, "who", "ana\nx", "not of the form");
	refuse(h, "lan", "de", "did you mean 'lang'?");
	refuse(h, "other", "de", "it has: lang, who");
	char longest[HARNESS_PARAM_VALUE + 2];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	refuse(h, "who", longest, "at most 4096 bytes");
	harness_unref(h);
	static const char within[] =
	        "---\nbackend: claude\nworkspace:\n  seed: { a/b: x, a/b/c: y }\n---\n";
	h = harness_parse("x.md", within, sizeof(within) - 1, NULL, NULL, &e);
	ok(!h && strstr(e.text, "x.md:4: 'seed': 'a/b/c' cannot be below 'a/b', which is a file"),
	        "a file below a file: %s", e.text);
	harness_unref(h);
	static const char loose[] = "---\nbackend: claude\n---\nSpeak {{lang}}.";
	h = harness_parse("p.md", loose, sizeof(loose) - 1, NULL, NULL, &e);
	must(h != NULL, "no params: %s", e.text);
	ok(harness_params_check(h, "", 0, names + 1, values + 1, 1, &e) == 0,
	        "one that its text has");
	ok(harness_params_check(h, "{{who}}", 7, names, values, 2, &e) == 0, "or the prompt");
	refuse(h, "nobody", "x", "neither the prompt nor harness 'p' has {{");
	harness_unref(h);
}

static void pipeline(void)
{
	static const char text[] =
	        "---\nparams: { lang: {} }\npipeline:\n  - { harness: a, prompt: \"{{lang}}\" }\n"
	        "  - { harness: b, prompt: \"{{prev.finalText}} {{lung}}\", approve: true, "
	        "timeoutMs: 5 }\n---\n";
	struct err e = {0};
	notes = 0;
	noted[0] = '\0';
	struct harness *h = harness_parse("p.md", text, sizeof(text) - 1, note, NULL, &e);
	must(h != NULL, "a pipeline: %s", e.text);
	is_str(h->backend, "pipeline", "is its own backend");
	ok(h->nsteps == 2 && !h->steps[0].approve && h->steps[1].approve, "has its steps");
	ok(h->steps[1].timeout_ms == 5 && h->steps[0].line == 4, "and all of them");
	ok(notes == 1 && strstr(noted, "{{lung}} stays as it is"), "a slip is noted: %s", noted);
	ok(harness_unsupported(h, NULL, NULL, &e) == 0, "it is executed");
	harness_unref(h);
}

static void permissions(void)
{
	static const char text[] =
	        "---\nbackend: claude\n"
	        "permissions: { mode: ask, timeoutMs: 5000, default: once }\n---\n";
	struct err e = {0};
	struct harness *h = harness_parse("p.md", text, sizeof(text) - 1, NULL, NULL, &e);
	must(h != NULL, "permissions as a map: %s", e.text);
	ok(h->permissions == HARNESS_ASK && h->ask_timeout_ms == 5000 &&
	                h->ask_default == HARNESS_ASK_ONCE,
	        "has its members");
	ok(harness_unsupported(h, NULL, NULL, &e) == 0, "and is executed");
	harness_unref(h);
}

static void original(void)
{
	struct err e = {0};
	struct harness *h = load("tests/fixtures/harness/good/original.md", &e);
	must(h != NULL, "a file of the original parses: %s", e.text);
	is_str(h->name, "original", "name by file");
	ok(h->nseed == 1 && h->nmcp == 1 && h->narrow.disk_bytes == 104857600, "aliases");
	is_str(h->artifacts[0], "out/*.pptx", "artifacts.globs");
	ok(strstr(noted, "10: 'seedFiles' is called 'seed' here") != NULL, "noted with the line");
	ok(strstr(noted, "'sandbox: container' means the jail") != NULL, "sandbox noted");
	ok(notes == 6, "six notes (%d)", notes);
	ok(harness_unsupported(h, NULL, NULL, &e) == 0, "and can be executed");
	harness_unref(h);
}

static void bundled(void)
{
	struct err e = {0};
	static const char *const files[] = {"harnesses/hello.md", "harnesses/hello-claude.md"};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct harness *h = load(files[i], &e);
		must(h != NULL, "%s: %s", files[i], e.text);
		ok(notes == 0 && harness_unsupported(h, NULL, NULL, &e) == 0, "%s is clean",
		        files[i]);
		harness_unref(h);
	}
	struct harness *h = load("harnesses/hello.md", &e);
	ok(h->command && strcmp(h->command[0], "sh") == 0 && !h->command[3], "hello's command");
	harness_unref(h);
}

static void odd(void)
{
	struct err e = {0};
	struct harness *h = load("tests/fixtures/harness/good/crlf.md", &e);
	must(h != NULL, "carriage returns: %s", e.text);
	is_str(h->system_prompt, "First\nSecond", "are dropped");
	ok(h->timeout_ms == 600000 && h->max_attempts == 1 && !h->tools_allow, "defaults");
	ok(h->policy == NULL, "no policy named: the daemon decides");
	harness_unref(h);
	static const struct {
		const char *text;
		size_t n;
	} wrong[] = {{"", 0}, {"---", 3}, {"---\n", 4}, {"---\n---", 7},
	        {"---\nbackend: a\0b\n---\n", 21}, {"\n---\nbackend: a\n---\n", 20}};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		h = harness_parse("x.md", wrong[i].text, wrong[i].n, NULL, NULL, &e);
		ok(!h && strncmp(e.text, "x.md:", 5) == 0, "refused: %s", e.text);
		harness_unref(h);
	}
	static const char latin[] = "---\nbackend: claude\n---\ncaf\xe9\n";
	h = harness_parse("x.md", latin, sizeof(latin) - 1, NULL, NULL, &e);
	ok(!h, "a text in another encoding is refused");
	is_str(e.text, "x.md:4: this line is not UTF-8", "with its line");
	harness_unref(h);
	static const char loose[] = "---\nbackend: claude\ntools: {allow: []}\n---\n";
	h = harness_parse("a/b.md", loose, strlen(loose), NULL, NULL, &e);
	must(h != NULL, "no body: %s", e.text);
	ok(h->tools_allow && !h->tools_allow[0], "an empty list of tools is kept: no tool");
	is_str(h->system_prompt, "", "no body, no prompt");
	is_str(h->name, "b", "named after b.md");
	harness_unref(h);
	h = harness_parse("Bad Name.md", loose, strlen(loose), NULL, NULL, &e);
	ok(!h && strstr(e.text, "give 'name'"), "a file name that is no name: %s", e.text);
}

int main(void)
{
	full();
	params();
	pipeline();
	permissions();
	original();
	bundled();
	odd();
	ok(fixtures_each("tests/fixtures/harness/bad", bad) >= 43, "many faulty files");
	return done();
}
