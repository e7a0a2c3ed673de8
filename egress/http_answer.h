/*
 * http_answer.h - our own answers to a jail's requests.
 */
#ifndef EGRESS_HTTP_ANSWER_H
#define EGRESS_HTTP_ANSWER_H

#include "base/buf.h"

/* A whole answer that ends its connection; the reason is in its JSON, in the shape that the clients
 * of model APIs know how to show. */
void http_answer(struct buf *out, int status, const char *reason);
const char *http_phrase(int status);

#endif
