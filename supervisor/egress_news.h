/*
 * egress_news.h - what agentbox-egress refused or let out, in the words of the
 * event language, of notices and of the log.
 */
#ifndef SUPERVISOR_EGRESS_NEWS_H
#define SUPERVISOR_EGRESS_NEWS_H

#include "base/json.h"
#include "proto/jail.h"

enum {
	/* Members of one event, escaped: six bytes for one at worst. */
	EGRESS_NEWS_MAX = 16 << 10,
	EGRESS_SENTENCE_MAX = 1536,
};

const char *egress_news_type(const struct jail_egress *x); /* "egress.denied" or "egress.allowed" */
/* host, port, protocol, reason, policy, rule?, times?; bytesIn, bytesOut of what went out; add?,
 * hint? of what was refused. */
void egress_news_members(const struct jail_egress *x, struct jw *w);
/* "egress denied: HOST:PORT (tls): why", and in how many times it happened. */
void egress_news_sentence(const struct jail_egress *x, char to[EGRESS_SENTENCE_MAX]);
/* {"type":...,"message":...,members} of a refusal, for a client at its terminal. */
void egress_news_notice(const struct jail_egress *x, struct buf *to);
/* A refusal, as a line of the log.  session and run may be "". */
void egress_news_log(const struct jail_egress *x, const char *session, const char *run);

#endif
