/*
 * audit.h - who has changed something, or was refused: a line of JSON each, in the
 * state directory.
 *
 * A line is with the kernel before its answer goes out, so it survives us; a power cut may
 * take the last seconds.  Files are of AUDIT_FILE bytes, AUDIT_FILES of them, the
 * oldest go first.  What strangers are refused is bounded, so that they cannot push the rest
 * out; how many lines were not written stands in the next one.  No body, no query, no
 * header, so no prompt and no key.
 */
#ifndef SUPERVISOR_AUDIT_H
#define SUPERVISOR_AUDIT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct audit;

enum { AUDIT_FILE = 8 << 20, AUDIT_FILES = 8, AUDIT_LINE = 4096 };

struct audit_entry {
	bool remote;               /* it came over TCP */
	uid_t uid;                 /* else of whom */
	const char *key, *tenant;  /* names; NULL: without a key */
	const char *key_id;        /* likewise */
	const char *method, *path; /* as sent, without the query; cut where it is long */
	const char *run, *session; /* that came of it, or NULL */
	int status;
	bool refused; /* for what it may not, as opposed to what it did */
};

/* dirfd: taken (negative: *e says why already).  `most`: bytes of a file (AUDIT_FILE). Returns
 * owned, or NULL with *e. */
struct audit *audit_new(int dirfd, uint64_t most, struct err *e);
void audit_free(struct audit *a);
void audit_write(struct audit *a, const struct audit_entry *x);

/* ---- reading ---- */
struct audit_reader {
	struct list link;                     /* in audit.readers */
	void (*wake)(struct audit_reader *r); /* there is more */
	struct audit *audit;
	uint64_t number; /* of the file it is in */
	int fd;          /* owned */
};
/* From the oldest line that is kept; `wake` is set by the caller, who keeps it until the end. */
void audit_follow(struct audit *a, struct audit_reader *r);
void audit_leave(struct audit_reader *r);
/* Up to `max` bytes of what comes next; 0: nothing now. */
ssize_t audit_read(struct audit_reader *r, char *p, size_t max);

#endif
