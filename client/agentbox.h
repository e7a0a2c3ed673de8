/*
 * agentbox.h - asking the agentbox daemon from C.
 *
 *	struct agentbox *ab = agentbox_new(NULL, NULL, NULL, &e);
 *	char *run = agentbox_start(ab, &(struct agentbox_run){
 *		.size = sizeof(struct agentbox_run), .user = "ann", .goal = "site",
 *		.harness = "hello", .prompt = "hi"}, &e);
 *	char *result = run ? agentbox_wait(ab, run, -1, &e) : NULL;
 *
 * Ownership: what is returned as char * is the caller's, for free(); what is given is borrowed for
 * the call, unless a comment says for how long.  JSON is text, NUL-terminated, as the daemon
 * sends it: docs/API.md and docs/EVENTS.md have its fields.
 *
 * Errors: a function that can fail takes `struct agentbox_error *e` last (NULL is fine), sets it
 *only when it fails, and returns NULL or the same negative errno.
 *
 * Threads: a struct agentbox does not change, so many threads may use one.  A stream of events
 * belongs to one thread at a time.  Of an interactive connection one thread may read while another
 * writes.  No signal is raised: a peer that has gone is -EPIPE.  https has a thread of its own,
 *which takes no signals.  Memory that cannot be had ends the process.
 */
#ifndef AGENTBOX_H
#define AGENTBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct agentbox;        /* whom to ask, and as whom */
struct agentbox_events; /* a stream of events */
struct agentbox_stdio;  /* an interactive connection */

struct agentbox_error {
	int code;        /* -errno */
	int status;      /* of the daemon's refusal (HTTP), 0: it is not one */
	int retry_after; /* seconds after which it may be asked again, -1: not said */
	char text[512];  /* a sentence, with what to do where that is known */
};

/* ---- whom ---- */

/* where: path of a Unix socket, https://HOST[:PORT], or http://127.0.0.1:PORT; NULL: $AGENTBOX_URL,
 * else $AGENTBOX_SOCKET, else the usual socket.  ca_file: whom https is to trust, NULL: whom this
 * host trusts.  key_file: with an API key, NULL: none.  Connects to nobody yet: each call has a
 * connection of its own. */
struct agentbox *agentbox_new(
        const char *where, const char *ca_file, const char *key_file, struct agentbox_error *e);
void agentbox_free(struct agentbox *ab); /* after all that was opened with it; NULL is fine */

/* ---- any request ---- */

/* body: JSON, or NULL.  The answer's body, also when it is empty; a status of 300 and more is an
 * error. */
char *agentbox_request(const struct agentbox *ab, const char *method, const char *path,
        const char *body, struct agentbox_error *e);

/* ---- runs ---- */

struct agentbox_run {
	size_t size; /* sizeof(struct agentbox_run) of who calls */
	const char *user, *goal, *harness, *prompt;
	const char *key; /* who asks again with the same key gets the same run; NULL: one made up */
	const char *params; /* a JSON object, or NULL */
	int64_t priority;
};

/* The run's id; it is accepted, and survives the daemon. */
char *agentbox_start(
        const struct agentbox *ab, const struct agentbox_run *run, struct agentbox_error *e);
/* Its result (JSON) when it has ended.  timeout_ms: -1 is for ever; else -ETIMEDOUT. */
char *agentbox_wait(
        const struct agentbox *ab, const char *run, int timeout_ms, struct agentbox_error *e);
int agentbox_cancel(const struct agentbox *ab, const char *run, struct agentbox_error *e);
/* answer: "once", "always" or "deny"; id: of the event permission.requested. */
int agentbox_permit(const struct agentbox *ab, const char *run, const char *id, const char *answer,
        struct agentbox_error *e);
/* One more message for the agent at work. */
int agentbox_say(
        const struct agentbox *ab, const char *run, const char *text, struct agentbox_error *e);
/* Writes an artifact into fd as it comes. */
int agentbox_artifact(const struct agentbox *ab, const char *run, const char *path, int fd,
        struct agentbox_error *e);

/* ---- events ---- */

/* Those after number `after` (0: all), until the run is over.  When the connection breaks it goes
 * on where it was: each event comes once, in order.  `ab` is borrowed until it is closed. */
struct agentbox_events *agentbox_events_open(
        const struct agentbox *ab, const char *run, int64_t after, struct agentbox_error *e);
/* 1: *ret is one event, valid until the next call; 0: the run is over, and run.done was the last;
 * -ETIMEDOUT: none came in timeout_ms (-1: wait for ever), go on; else it is lost. */
int agentbox_events_next(struct agentbox_events *v, int timeout_ms, const char **ret,
        size_t *ret_len, struct agentbox_error *e);
/* Number of the last one, for agentbox_events_open in another process. */
int64_t agentbox_events_last(const struct agentbox_events *v);
void agentbox_events_close(struct agentbox_events *v); /* NULL is fine; the run goes on */

/* ---- interactive commands ---- */

enum agentbox_stream {
	AGENTBOX_STDIN = 0,
	AGENTBOX_STDOUT = 1,
	AGENTBOX_STDERR = 2,
	AGENTBOX_EXIT = 3,   /* JSON: {"code"|"signal","reason",...}; the last */
	AGENTBOX_SIGNAL = 4, /* one byte, the number */
	AGENTBOX_RESIZE = 5, /* rows and columns, two bytes each, big-endian */
	AGENTBOX_STDIN_EOF = 6,
	AGENTBOX_NOTICE = 7, /* JSON, for people */
};

/* path: /v1/jails or /v1/sessions/ID/exec; body: {"argv":[...],...}. */
struct agentbox_stdio *agentbox_stdio_open(
        const struct agentbox *ab, const char *path, const char *body, struct agentbox_error *e);
/* One frame to the command; waits while it takes nothing, so somebody must read meanwhile. */
int agentbox_stdio_write(struct agentbox_stdio *s, enum agentbox_stream stream, const void *p,
        size_t n, struct agentbox_error *e);
/* 1: a frame, valid until the next call; 0: the connection has ended; -ETIMEDOUT as above. */
int agentbox_stdio_read(struct agentbox_stdio *s, int timeout_ms, int *ret_stream, const void **ret,
        size_t *ret_len, struct agentbox_error *e);
int agentbox_stdio_fd(const struct agentbox_stdio *s); /* to poll for input; borrowed */
void agentbox_stdio_close(struct agentbox_stdio *s);   /* ends the command; NULL is fine */

const char *agentbox_version(void); /* of this library; static */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
