#include "egress/report.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { BURST_MILLITOKENS = REPORT_BURST * 1000 };

void report_init(struct report *r, int control, uint64_t jail)
{
	memset(r, 0, sizeof(*r));
	r->control = control;
	r->jail = jail;
	r->filled_ms = clock_mono_ms();
	r->millitokens = BURST_MILLITOKENS;
}

static bool take_token(struct report *r, int64_t now)
{
	r->millitokens += (now - r->filled_ms) * (int64_t)REPORT_PER_SECOND;
	r->filled_ms = now;
	if (r->millitokens > BURST_MILLITOKENS)
		r->millitokens = BURST_MILLITOKENS;
	if (r->millitokens < 1000)
		return false;
	r->millitokens -= 1000;
	return true;
}

/* Sums are kept when the socket is full: the slot stays as it is. */
static void send_slot(struct report *r, struct report_slot *s, int64_t now)
{
	s->m.head = (struct msg_head){.type = EGRESS_EVENT};
	s->m.jail = r->jail;
	if (msg_send(r->control, &s->m, sizeof(s->m), NULL, 0) < 0)
		return;
	s->m.times = 0;
	s->sent_ms = now;
	s->m.bytes_in = s->m.bytes_out = 0;
}

static bool same(const struct jail_egress *a, const struct jail_egress *b)
{
	return a->verdict == b->verdict && a->port == b->port && a->protocol == b->protocol &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->reason, b->reason) == 0;
}

/* The slot of this kind; else one that has nothing waiting, longest unused first; else the one
 * that stands for all others of its verdict. */
static struct report_slot *find_slot(struct report *r, const struct jail_egress *m)
{
	struct report_slot *best = NULL;
	for (size_t i = 0; i + 2 < REPORT_SLOTS; i++) {
		struct report_slot *s = &r->slots[i];
		if (same(&s->m, m))
			return s;
		if (s->m.times == 0 && (!best || s->sent_ms < best->sent_ms))
			best = s;
	}
	if (best) {
		best->m = *m;
		best->m.bytes_in = best->m.bytes_out = 0;
		best->m.times = 0;
		best->sent_ms = 0;
		return best;
	}
	struct report_slot *rest = &r->slots[REPORT_SLOTS - 2 + (m->verdict == EGRESS_ALLOWED)];
	rest->m.verdict = m->verdict;
	(void)str_copy(rest->m.host, sizeof(rest->m.host), "(several)");
	(void)str_copy(rest->m.reason, sizeof(rest->m.reason), "too many kinds to list each");
	(void)str_copy(rest->m.policy, sizeof(rest->m.policy), m->policy);
	rest->m.protocol = m->protocol;
	return rest;
}

static void add(struct report *r, const struct jail_egress *m)
{
	int64_t now = clock_mono_ms();
	struct report_slot *s = find_slot(r, m);
	s->m.times++;
	s->m.bytes_in += m->bytes_in;
	s->m.bytes_out += m->bytes_out;
	bool fresh = s->sent_ms == 0 || now - s->sent_ms >= REPORT_WINDOW_MS ||
	             m->verdict == EGRESS_ALLOWED;
	if (fresh && take_token(r, now))
		send_slot(r, s, now);
}

static void report(
        struct report *r, struct jail_egress *m, const struct report_of *what, const char *reason)
{
	m->port = what->port;
	m->protocol = what->protocol;
	(void)str_copy(m->host, sizeof(m->host), what->host);
	(void)str_copy(m->policy, sizeof(m->policy), what->policy->name);
	if (what->rule >= 0)
		rule_text(&what->policy->rules[what->rule], m->rule);
	else if (what->inject)
		snprintf(m->rule, sizeof(m->rule), "inject %s", what->inject);
	(void)str_copy(m->reason, sizeof(m->reason), reason);
	add(r, m);
}

void report_denied(struct report *r, const struct report_of *what, const char *reason)
{
	struct jail_egress m = {.verdict = EGRESS_DENIED, .remedy = what->remedy};
	report(r, &m, what, reason);
}

void report_allowed(struct report *r, const struct report_of *what, const char *reason,
        uint64_t bytes_in, uint64_t bytes_out)
{
	struct jail_egress m = {
	        .verdict = EGRESS_ALLOWED, .bytes_in = bytes_in, .bytes_out = bytes_out};
	report(r, &m, what, reason);
}

void report_flush(struct report *r, bool last)
{
	int64_t now = clock_mono_ms();
	for (size_t i = 0; i < REPORT_SLOTS; i++) {
		struct report_slot *s = &r->slots[i];
		if (s->m.times == 0)
			continue;
		bool due = last || now - s->sent_ms >= REPORT_WINDOW_MS;
		if (due && (last || take_token(r, now)))
			send_slot(r, s, now);
	}
}
