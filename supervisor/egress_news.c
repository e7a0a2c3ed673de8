#include "supervisor/egress_news.h"

#include "base/log.h"

#include <stdio.h>

const char *egress_news_type(const struct jail_egress *x)
{
	return x->verdict == EGRESS_DENIED ? "egress.denied" : "egress.allowed";
}

static struct advice advice_of(const struct jail_egress *x)
{
	return (struct advice){.remedy = (enum egress_remedy)x->remedy,
	        .protocol = (enum egress_protocol)x->protocol,
	        .host = x->host,
	        .port = x->port,
	        .policy = x->policy,
	        .rule = x->rule};
}

void egress_news_members(const struct jail_egress *x, struct jw *w)
{
	jw_str(w, "host", x->host);
	jw_int(w, "port", x->port);
	jw_str(w, "protocol", egress_protocol_name(x->protocol));
	if (x->reason[0])
		jw_str(w, "reason", x->reason);
	jw_str(w, "policy", x->policy);
	if (x->rule[0])
		jw_str(w, "rule", x->rule);
	if (x->times > 1)
		jw_int(w, "times", x->times);
	if (x->verdict == EGRESS_ALLOWED) {
		jw_int(w, "bytesIn", (int64_t)x->bytes_in);
		jw_int(w, "bytesOut", (int64_t)x->bytes_out);
		return;
	}
	const struct advice a = advice_of(x);
	char entry[ADVICE_ENTRY_MAX], hint[ADVICE_HINT_MAX];
	if (advice_entry(&a, entry))
		jw_str(w, "add", entry);
	if (advice_hint(&a, hint))
		jw_str(w, "hint", hint);
}

void egress_news_sentence(const struct jail_egress *x, char to[EGRESS_SENTENCE_MAX])
{
	char times[32] = "";
	if (x->times > 1)
		snprintf(times, sizeof(times), " (%u times)", x->times);
	snprintf(to, EGRESS_SENTENCE_MAX, "egress denied: %s:%u (%s): %s%s", x->host, x->port,
	        egress_protocol_name(x->protocol), x->reason, times);
}

void egress_news_notice(const struct jail_egress *x, struct buf *to)
{
	char sentence[EGRESS_SENTENCE_MAX];
	egress_news_sentence(x, sentence);
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", egress_news_type(x));
	jw_str(&w, "message", sentence);
	egress_news_members(x, &w);
	jw_close(&w, '}');
}

void egress_news_log(const struct jail_egress *x, const char *session, const char *run)
{
	char sentence[EGRESS_SENTENCE_MAX], hint[ADVICE_HINT_MAX] = "";
	char line[EGRESS_SENTENCE_MAX + ADVICE_HINT_MAX + sizeof(x->rule) + 80];
	const struct advice a = advice_of(x);
	bool hinted = advice_hint(&a, hint);
	egress_news_sentence(x, sentence);
	(void)snprintf(line, sizeof(line), "jail %llu: %s; %s%s%s%s", (unsigned long long)x->jail,
	        sentence, x->rule[0] ? "decided by rule " : "no rule has it", x->rule,
	        hinted ? "; " : "", hint);
	/* Its ids by the format (base/log.h). */
	if (session[0] && run[0])
		log_info("s=%s r=%s: %s", session, run, line);
	else if (session[0])
		log_info("s=%s: %s", session, line);
	else
		log_info("%s", line);
}
