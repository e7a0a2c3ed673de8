/*
 * Two runs on one process: what a driver leaves for the next one, what that then says first, and
 * whose the usage is.
 */
#include "drivers/driver.h"
#include "tests/driver_talk.h"

static void begin(struct talk *t, const struct driver *d, const char *prompt, const char *live)
{
	const struct driver_spec spec = {.prompt = prompt,
	        .prompt_len = strlen(prompt),
	        .permissions = PERMISSIONS_ASK,
	        .system_prompt = "Be brief.",
	        .resume = live ? "s-1" : NULL,
	        .stays = true,
	        .live = live};
	talk_begin(t, d, &spec);
}

static void has(const struct talk *t, const char *want, const char *what)
{
	if (!ok(t->rec.out.p && strstr(t->rec.out.p, want), "%s: %s", t->driver->name, what))
		printf("# %s\n", t->rec.out.p ? t->rec.out.p : "");
}

/* Ends it; what it left, owned. */
static char *leave(struct talk *t)
{
	const struct driver_exit x = {.code = 0};
	struct driver_outcome o = {0};
	ok(t->eof, "%s: its turn is over", t->driver->name);
	char *live = t->driver->rest(t->run);
	t->driver->end(t->run, &x, &o);
	record_outcome(&t->rec, &o);
	driver_outcome_done(&o);
	t->driver->close(t->run);
	buf_done(&t->to_stdin);
	return live;
}

struct dialect {
	const struct driver *d;
	const char *const *first, *const *second; /* lines, up to NULL */
	const char *greeting;      /* what the first run says and the second does not */
	const char *usage;         /* of the second */
	const char *silent, *loud; /* lines between the two */
};

static void twice(const struct dialect *x)
{
	struct talk t;
	begin(&t, x->d, "First.", NULL);
	has(&t, x->greeting, "a new process is greeted");
	for (const char *const *line = x->first; *line; line++)
		say(&t, *line);
	auto_free char *live = leave(&t);
	must(live != NULL, "it waits");
	record_done(&t.rec);
	begin(&t, x->d, "Second.", live);
	has(&t, "Second.", "the prompt goes at once");
	ok(!strstr(t.rec.out.p, x->greeting), "%s: and no greeting", x->d->name);
	for (const char *const *line = x->second; *line; line++)
		say(&t, *line);
	auto_free char *again = leave(&t);
	ok(again != NULL, "%s: and it waits again", x->d->name);
	has(&t, x->usage, "usage of its own");
	has(&t, "\"status\":\"succeeded\"", "succeeds");
	record_done(&t.rec);
	ok(x->d->idle(x->silent, strlen(x->silent)), "%s: what says nothing", x->d->name);
	ok(!x->d->idle(x->loud, strlen(x->loud)), "%s: what says something", x->d->name);
	ok(!x->d->idle("{", 1) && x->d->idle("", 0), "%s: what is no line", x->d->name);
}

/* Those that leave nothing. */
static void once(const struct driver *d, const char *const *lines, const char *what)
{
	struct talk t;
	begin(&t, d, "First.", NULL);
	for (const char *const *line = lines; *line; line++) {
		if (strcmp(*line, "interrupt") == 0)
			ok(d->interrupt(t.run, &t.to_stdin), "is asked to stop");
		else if (strcmp(*line, "always") == 0)
			ok(d->answer(t.run, "9", ANSWER_ALWAYS, &t.to_stdin), "is answered");
		else
			say(&t, *line);
		record_stdin(&t.rec, &t.to_stdin, false);
	}
	auto_free char *live = leave(&t);
	ok(live == NULL, "%s: %s leaves nothing", d->name, what);
	record_done(&t.rec);
}

#define CLAUDE_RESULT(subtype, error)                                                              \
	"{\"type\":\"result\",\"subtype\":\"" subtype "\",\"is_error\":" error                     \
	",\"result\":\"x\",\"session_id\":\"s-1\",\"num_turns\":1,\"total_cost_usd\":"
static const char *const claude_first[] = {
        CLAUDE_RESULT("success", "false") "0.5,\"usage\":{\"input_tokens\":7}}", NULL};
static const char *const claude_second[] = {
        CLAUDE_RESULT("success", "false") "0.75,\"usage\":{\"input_tokens\":9}}", NULL};
static const char *const claude_failed[] = {
        CLAUDE_RESULT("error_during_execution", "true") "0.5}", NULL};
static const char *const claude_stopped[] = {
        "interrupt", CLAUDE_RESULT("success", "false") "0.5}", NULL};

#define ACP_ANSWER(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" result "}"
#define ACP_SAYS                                                                                   \
	"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\","    \
	"\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\","    \
	"\"text\":\"x\"}}}}"
#define ACP_BEGIN                                                                                  \
	ACP_ANSWER("1", "{\"protocolVersion\":1}"), ACP_ANSWER("2", "{\"sessionId\":\"s-1\"}")
static const char *const acp_first[] = {ACP_BEGIN, ACP_SAYS,
        ACP_ANSWER("3", "{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":5}}"), NULL};
static const char *const acp_second[] = {ACP_SAYS,
        ACP_ANSWER("4", "{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":6}}"), NULL};
static const char *const acp_failed[] = {
        ACP_BEGIN, ACP_SAYS, ACP_ANSWER("3", "{\"stopReason\":\"refusal\"}"), NULL};
/* "For always" is the agent's to remember, and a next run's person has not said so. */
static const char *const acp_always[] = {ACP_BEGIN,
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"session/request_permission\",\"params\":{"
        "\"sessionId\":\"s-1\",\"toolCall\":{\"toolCallId\":\"a\",\"title\":\"ls\",\"kind\":"
        "\"execute\"},\"options\":[{\"optionId\":\"o\",\"kind\":\"allow_always\"}]}}",
        "always", ACP_SAYS, ACP_ANSWER("3", "{\"stopReason\":\"end_turn\"}"), NULL};

#define CODEX_USAGE(turn, total, last)                                                             \
	"{\"method\":\"thread/tokenUsage/updated\",\"params\":{\"threadId\":\"t-1\",\"turnId\":"   \
	"\"" turn "\",\"tokenUsage\":{\"total\":{\"inputTokens\":" total                           \
	"},\"last\":{\"inputTokens\":" last "}}}}"
#define CODEX_DONE(turn, status)                                                                   \
	"{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"t-1\",\"turn\":{\"id\":\"" turn \
	"\",\"status\":\"" status "\"}}}"
#define CODEX_BEGIN                                                                                \
	"{\"id\":1,\"result\":{}}", "{\"id\":2,\"result\":{\"thread\":{\"id\":\"t-1\"}}}",         \
	        "{\"id\":3,\"result\":{\"turn\":{\"id\":\"u-1\"}}}"
static const char *const codex_first[] = {
        CODEX_BEGIN, CODEX_USAGE("u-1", "100", "100"), CODEX_DONE("u-1", "completed"), NULL};
static const char *const codex_second[] = {"{\"id\":4,\"result\":{\"turn\":{\"id\":\"u-2\"}}}",
        CODEX_USAGE("u-2", "130", "30"), CODEX_DONE("u-2", "completed"), NULL};
static const char *const codex_failed[] = {CODEX_BEGIN, CODEX_DONE("u-1", "failed"), NULL};

#define PI_END(reason)                                                                             \
	"{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":"    \
	"\"text\",\"text\":\"x\"}],\"stopReason\":\"" reason "\",\"usage\":{\"input\":3}}}"
#define PI_BEGIN                                                                                   \
	"{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":{}}",             \
	        "{\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":{"     \
	        "\"sessionId\":\"11111111-1111-4111-8111-111111111111\"}}"
#define PI_SUMS(n)                                                                                 \
	"{\"type\":\"response\",\"command\":\"get_session_stats\",\"success\":true,\"data\":{"     \
	"\"tokens\":{\"input\":" n "}}}"
static const char *const pi_first[] = {
        PI_BEGIN, PI_END("stop"), "{\"type\":\"agent_settled\"}", PI_SUMS("10"), NULL};
static const char *const pi_second[] = {
        "{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":{}}",
        PI_END("stop"), "{\"type\":\"agent_settled\"}", PI_SUMS("17"), NULL};
static const char *const pi_failed[] = {
        PI_BEGIN, PI_END("error"), "{\"type\":\"agent_settled\"}", PI_SUMS("10"), NULL};

int main(void)
{
	static const struct dialect dialects[] = {
	        {&driver_claude, claude_first, claude_second, "First.", "\"costUsd\":0.25",
	                "{\"type\":\"keep_alive\"}", "{\"type\":\"assistant\"}"},
	        {&driver_acp, acp_first, acp_second, "initialize", "\"inputTokens\":6",
	                "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":"
	                "\"available_commands_update\"}}}",
	                ACP_SAYS},
	        {&driver_codex, codex_first, codex_second, "initialize", "\"inputTokens\":30",
	                "{\"method\":\"thread/status/changed\",\"params\":{}}",
	                "{\"method\":\"turn/started\",\"params\":{}}"},
	        {&driver_pi, pi_first, pi_second, "get_state", "\"inputTokens\":7",
	                "{\"type\":\"entry_appended\"}", PI_END("stop")},
	};
	for (size_t i = 0; i < ARRAY_LEN(dialects); i++)
		twice(&dialects[i]);
	once(&driver_claude, claude_failed, "a failure");
	once(&driver_claude, claude_stopped, "an interrupted turn");
	once(&driver_acp, acp_failed, "a refusal");
	once(&driver_acp, acp_always, "what was allowed for always");
	once(&driver_codex, codex_failed, "a failed turn");
	once(&driver_pi, pi_failed, "an error");
	return done();
}
