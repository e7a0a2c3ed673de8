/*
 * charge.h - one request to an injected upstream, as what it costs: read from
 * its body and its answer on their way, and taken from the jail's purse when it
 * is over.
 */
#ifndef EGRESS_CHARGE_H
#define EGRESS_CHARGE_H

#include "egress/http.h"
#include "egress/meter.h"
#include "egress/purse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct price_list {
	const struct price *prices; /* borrowed: until the next policies */
	size_t n;
};

/* Embedded in its exchange; zeroed: nothing is charged. */
struct charge {
	bool open;  /* begun and not settled */
	bool asks;  /* POST: what is asked is answered by a model */
	bool coded; /* the answer is compressed and cannot be read */
	int status; /* 0: no answer yet */
	char secret[NAME_MAX_LEN];
	char path_model[MODEL_MAX];
	struct meter asked, answer;
	uint64_t asked_bytes, answer_bytes;
};

/* One request more; false: a budget is used up. */
bool charge_begin(struct charge *c, struct purse *p, const struct policy *policy,
        const struct policy_inject *in, const struct http_head *h, struct purse_met *ret);
void charge_asked(struct charge *c, const char *p, size_t n);
void charge_head(struct charge *c, int status, const struct http_field *fields, size_t n);
void charge_answered(struct charge *c, const char *p, size_t n);
/* It is over; `whole`: the answer has come to its end. */
void charge_settle(struct charge *c, struct purse *p, const struct price_list *l, bool whole);

#endif
