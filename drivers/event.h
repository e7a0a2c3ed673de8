/*
 * event.h - the vocabulary of the one event language (docs/EVENTS.md has the fields).
 *
 * A driver emits a type and its members as JSON bytes without braces
 * ("text":"hi","delta":true); the supervisor puts seq, ts, session and run in
 * front, so that an event is encoded once.
 */
#ifndef DRIVERS_EVENT_H
#define DRIVERS_EVENT_H

#include <stddef.h>

#define EVENT_TYPES(X)                                                                             \
	X(RUN_QUEUED, "run.queued")                                                                \
	X(RUN_STARTED, "run.started")                                                              \
	X(STEP_STARTED, "step.started")                                                            \
	X(STEP_DONE, "step.done")                                                                  \
	X(SESSION_RESUMED, "session.resumed")                                                      \
	X(SESSION_EVICTED, "session.evicted")                                                      \
	X(ARTIFACTS_UPLOADED, "artifacts.uploaded")                                                \
	X(REPO_CLONED, "repo.cloned")                                                              \
	X(REPO_CHANGES, "repo.changes")                                                            \
	X(AGENT_MESSAGE, "agent.message")                                                          \
	X(AGENT_THINKING, "agent.thinking")                                                        \
	X(TOOL_CALL, "tool.call")                                                                  \
	X(TOOL_UPDATE, "tool.update")                                                              \
	X(TOOL_RESULT, "tool.result")                                                              \
	X(FILE_CHANGED, "file.changed")                                                            \
	X(PLAN_UPDATED, "plan.updated")                                                            \
	X(PERMISSION_ASKED, "permission.asked")                                                    \
	X(PERMISSION_ANSWERED, "permission.answered")                                              \
	X(QUESTION_ASKED, "question.asked")                                                        \
	X(QUESTION_ANSWERED, "question.answered")                                                  \
	X(USER_MESSAGE, "user.message")                                                            \
	X(USAGE, "usage")                                                                          \
	X(EGRESS_DENIED, "egress.denied")                                                          \
	X(EGRESS_GAP, "egress.gap")                                                                \
	X(EGRESS_ALLOWED, "egress.allowed")                                                        \
	X(LIMIT_HIT, "limit.hit")                                                                  \
	X(RUN_RETRY, "run.retry")                                                                  \
	X(VERIFY_DONE, "verify.done")                                                              \
	X(GUARDRAIL_BLOCKED, "guardrail.blocked")                                                  \
	X(OUTPUT_GAP, "output.gap")                                                                \
	X(LOG_GAP, "log.gap")                                                                      \
	X(AGENT_RAW, "agent.raw")                                                                  \
	X(ERROR, "error")                                                                          \
	X(RUN_DONE, "run.done")

enum event_type {
#define EVENT_ENUM(sym, name) EVENT_##sym,
	EVENT_TYPES(EVENT_ENUM)
#undef EVENT_ENUM
	        EVENT_COUNT
};

const char *event_name(enum event_type t);
int event_by_name(const char *name); /* enum event_type, or -1 */

/* Where a driver's events go.  `members` is borrowed for the call. */
struct event_sink {
	void (*emit)(struct event_sink *sink, enum event_type t, const char *members, size_t n);
};

#endif
