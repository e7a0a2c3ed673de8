/*
 * api.h - the handlers that routes.c dispatches to, one per row of its table.
 *
 * Each answers its request exactly once, now or later (http.h).  They are the
 * only place where the API's JSON is read; what they pass on is checked.
 */
#ifndef SUPERVISOR_API_H
#define SUPERVISOR_API_H

#include <stdint.h>

struct daemon;
struct http_request;

#define API_HANDLERS(X)                                                                            \
	X(healthz)                                                                                 \
	X(version)                                                                                 \
	X(openapi)                                                                                 \
	X(metrics)                                                                                 \
	X(stats)                                                                                   \
	X(doctor)                                                                                  \
	X(reload)                                                                                  \
	X(run_create)                                                                              \
	X(run_list)                                                                                \
	X(run_show)                                                                                \
	X(run_cancel)                                                                              \
	X(run_events)                                                                              \
	X(run_answer)                                                                              \
	X(run_reply)                                                                               \
	X(run_input)                                                                               \
	X(run_artifacts)                                                                           \
	X(run_artifact)                                                                            \
	X(session_create)                                                                          \
	X(session_list)                                                                            \
	X(session_show)                                                                            \
	X(session_delete)                                                                          \
	X(session_events)                                                                          \
	X(port_open)                                                                               \
	X(port_http)                                                                               \
	X(session_exec)                                                                            \
	X(harness_list)                                                                            \
	X(harness_show)                                                                            \
	X(policy_list)                                                                             \
	X(policy_show)                                                                             \
	X(jail_create)                                                                             \
	X(jail_list)                                                                               \
	X(egress)

#define API_DECLARE(name) void api_##name(struct daemon *d, struct http_request *r);
API_HANDLERS(API_DECLARE)
#undef API_DECLARE

/* For a request that names a port of a session by its Host. */
void api_port_by_name(struct daemon *d, struct http_request *r);
/* A request for a command in a session that waited (exec_wait.h). */
void api_session_exec_again(struct daemon *d, struct http_request *r, int64_t deadline_ms);

#endif
