/*
 * bucket.h - the S3 store that artifacts go to: agentboxd.yaml's `artifacts`, compiled.
 *
 * Pure.  Root says where it is and which secrets open it; egress asks and signs
 * (egress/objects.h), the supervisor keeps account of what is there
 * (supervisor/uploads.h).
 */
#ifndef POLICY_BUCKET_H
#define POLICY_BUCKET_H

#include "base/err.h"
#include "base/id.h"
#include "policy/forms.h"
#include "policy/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BUCKET_PREFIX_MAX = 256,
	BUCKET_PLACE_MAX = POLICY_PATH_MAX + NAME_MAX_LEN + BUCKET_PREFIX_MAX + 8,
};
/* S3's own: of a part that is not the last, and of what is sent at once. */
#define BUCKET_PART_LEAST ((uint64_t)5 << 20)
#define BUCKET_PART_MOST  ((uint64_t)1 << 30)
/* A signed link holds no longer (seven days). */
#define BUCKET_LINK_MOST_MS ((uint64_t)7 * 24 * 3600 * 1000)

enum bucket_sse { BUCKET_SSE_NONE, BUCKET_SSE_AES256, BUCKET_SSE_KMS, BUCKET_SSE_COUNT };
/* As `sse` says it, and as S3 does; NULL-terminated. */
extern const char *const bucket_sse_names[BUCKET_SSE_COUNT + 1];

struct bucket {
	uint32_t on; /* 0: artifacts are kept here alone, and nothing else counts */
	uint32_t path_style;
	uint32_t keep_local;
	uint32_t sse; /* enum bucket_sse */
	char endpoint[POLICY_PATH_MAX];
	char region[NAME_MAX_LEN];
	char name[NAME_MAX_LEN];
	char prefix[BUCKET_PREFIX_MAX]; /* "", or without slashes at its ends */
	char access_key[NAME_MAX_LEN], secret_key[NAME_MAX_LEN]; /* names of secrets */
	char session_token[NAME_MAX_LEN];                        /* likewise, or "" */
	uint32_t ncidrs, pad;
	struct cidr cidrs[RULE_CIDRS]; /* that are not public and that it may be at */
	uint64_t link_ms;              /* a signed link holds so long */
	uint64_t part_bytes;           /* what has more is sent in parts */
	uint64_t timeout_ms;           /* without a byte, one way or the other */
	uint64_t first_ms, most_ms;    /* between attempts */
	uint64_t keep_ms;              /* then an upload is given up */
};

void bucket_defaults(struct bucket *b);

/* 3 to 63 of a-z, 0-9, '-' and '.', none of these at an end. */
bool form_bucket(const char *text);
/* a/b: as form_relative, of the characters that need no encoding; fits BUCKET_PREFIX_MAX. */
bool form_bucket_prefix(const char *text);
/* eu-central-1 */
bool form_region(const char *text);

/* What keeps it from being used, or NULL. */
const char *bucket_refusal(const struct bucket *b);

/* Everything a reader relies on. */
MUST_USE int bucket_check(const struct bucket *b, struct err *e);

/* Where what is uploaded now goes, as text: another one means that earlier uploads are elsewhere.
 */
void bucket_place(const struct bucket *b, char ret[BUCKET_PLACE_MAX]);

#endif
