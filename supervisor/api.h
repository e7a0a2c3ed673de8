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
	X(backup)                                                                                  \
	X(drain_show)                                                                              \
	X(drain_begin)                                                                             \
	X(drain_undo)                                                                              \
	X(run_create)                                                                              \
	X(run_list)                                                                                \
	X(run_show)                                                                                \
	X(run_cancel)                                                                              \
	X(run_events)                                                                              \
	X(run_raw)                                                                                 \
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
	X(session_prewarm)                                                                         \
	X(session_pin)                                                                             \
	X(session_unpin)                                                                           \
	X(file_get)                                                                                \
	X(file_put)                                                                                \
	X(file_delete)                                                                             \
	X(home_get)                                                                                \
	X(home_put)                                                                                \
	X(session_talks)                                                                           \
	X(session_take_talks)                                                                      \
	X(port_open)                                                                               \
	X(port_http)                                                                               \
	X(session_exec)                                                                            \
	X(harness_list)                                                                            \
	X(harness_show)                                                                            \
	X(agent_list)                                                                              \
	X(agent_show)                                                                              \
	X(policy_list)                                                                             \
	X(policy_show)                                                                             \
	X(jail_create)                                                                             \
	X(jail_list)                                                                               \
	X(egress)                                                                                  \
	X(snapshot_list)                                                                           \
	X(snapshot_create)                                                                         \
	X(snapshot_show)                                                                           \
	X(snapshot_delete)                                                                         \
	X(webhook_list)                                                                            \
	X(webhook_test)                                                                            \
	X(key_list)                                                                                \
	X(key_add)                                                                                 \
	X(key_show)                                                                                \
	X(key_revoke)                                                                              \
	X(audit)

#define API_DECLARE(name) void api_##name(struct daemon *d, struct http_request *r);
API_HANDLERS(API_DECLARE)
#undef API_DECLARE

/* For a request that names a port of a session by its Host. */
void api_port_by_name(struct daemon *d, struct http_request *r);
/* A request for a command in a session that waited (exec_wait.h). */
void api_session_exec_again(struct daemon *d, struct http_request *r, int64_t deadline_ms);

#endif
