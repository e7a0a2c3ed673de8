/*
 * s3_answer.h - what a server of S3 says: the few texts of its XML that count.
 *
 * Pure, and strict: a document that is cut, has a DTD or does not close what it opens is none.  A
 * status of 200 may stand in front of an error (CompleteMultipartUpload), so the root's name is
 * what tells.
 */
#ifndef EGRESS_S3_ANSWER_H
#define EGRESS_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum { S3_NAME = 48, S3_UPLOAD_ID = 1024, S3_MESSAGE = 128 };

struct s3_answer {
	char root[S3_NAME];
	char code[S3_NAME], message[S3_MESSAGE]; /* of an Error, without control characters; cut */
	char upload_id[S3_UPLOAD_ID];
};

/* False where it is no whole document, or has an id that is too long; *ret is then zero. */
bool s3_answer_parse(const char *p, size_t n, struct s3_answer *ret);

/* Is it worth another try, by the status and (where it is an Error) its code? */
bool s3_answer_again(int status, const char *code);

#endif
