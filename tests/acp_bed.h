/*
 * acp_bed.h - the driver of the Agent Client Protocol, with a test as the agent: what the driver
 * writes and tells is looked at message by message.
 */
#ifndef TESTS_ACP_BED_H
#define TESTS_ACP_BED_H

#include "drivers/driver.h"
#include "tests/driver_record.h"
#include "tests/t.h"

struct bed {
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
	int request; /* id of the driver's last request */
};

static inline void note(struct bed *b)
{
	for (const char *at = b->to_stdin.p; at && *at; at = strchr(at, '\n') + 1) {
		auto_json struct json *j = json_parse(at, strcspn(at, "\n"), NULL);
		must(j, "a line for the agent is JSON");
		if (json_get(j, "method") && json_get(j, "id"))
			b->request = (int)json_int(j, "id", 0);
	}
}

static inline void begin(struct bed *b, const struct driver_spec *spec)
{
	*b = (struct bed){.to_stdin = BUF_INIT(64 << 20)};
	record_init(&b->rec);
	b->run = driver_acp.open(&driver_acp, spec, &b->rec.sink);
	must(driver_acp.start(b->run, &b->to_stdin, &b->eof) == 0, "starts");
	note(b);
}

static inline void say_bytes(struct bed *b, const char *p, size_t n)
{
	buf_clear(&b->rec.out);
	buf_clear(&b->to_stdin);
	driver_acp.line(b->run, p, n, true, &b->to_stdin, &b->eof);
	note(b);
}

static inline void say(struct bed *b, const char *line)
{
	say_bytes(b, line, strlen(line));
}

/* Answers the driver's last request. */
static inline void answer(struct bed *b, const char *result)
{
	auto_free char *line = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":%d,%s}", b->request, result);
	say(b, line);
}

#define UPDATE(u)                                                                                  \
	"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{" u "}}}"
#define TEXT(t)                                                                                    \
	UPDATE("\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\","         \
	       "\"text\":"                                                                         \
	       "\"" t "\"}")
#define INITIALIZED                                                                                \
	"\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,"           \
	"\"mcpCapabilities\":{\"http\":true}}}"
#define SESSION "\"result\":{\"sessionId\":\"s1\"}"
#define ENDED   "\"result\":{\"stopReason\":\"end_turn\"}"

static inline bool wrote(struct bed *b, const char *what)
{
	bool has = b->to_stdin.p && strstr(b->to_stdin.p, what);
	if (!has)
		printf("# wrote: %s\n", b->to_stdin.p ? b->to_stdin.p : "");
	return has;
}

static inline bool told(struct bed *b, const char *what)
{
	bool has = b->rec.out.p && b->rec.out.len && strstr(b->rec.out.p, what);
	if (!has)
		printf("# told: %s\n", b->rec.out.len ? b->rec.out.p : "");
	return has;
}

/* At the prompt. */
static inline void prompted(struct bed *b, const struct driver_spec *spec)
{
	begin(b, spec);
	answer(b, INITIALIZED);
	answer(b, SESSION);
	must(wrote(b, "session/prompt"), "is at its prompt");
}

static inline void end(struct bed *b, int code, const char *want, const char *what)
{
	struct driver_exit x = {.code = code};
	struct driver_outcome o = {0};
	buf_clear(&b->rec.out);
	driver_acp.end(b->run, &x, &o);
	record_outcome(&b->rec, &o);
	ok(told(b, want), "%s: %s", what, want);
	ok((o.status == DRIVER_SUCCEEDED) == (o.error == NULL), "%s: an error or none", what);
	driver_outcome_done(&o);
	driver_acp.close(b->run);
	buf_done(&b->to_stdin);
	record_done(&b->rec);
}

#define SPEC(...) (&(const struct driver_spec){.prompt = "Go.", .prompt_len = 3, __VA_ARGS__})

static inline void raw(struct bed *b, const char *line)
{
	say(b, line);
	ok(told(b, "{\"type\":\"agent.raw\""), "raw: %.90s", line);
}

#endif
