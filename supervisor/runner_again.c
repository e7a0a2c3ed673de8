#include "supervisor/runner_again.h"

#include "base/json.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/runner_end.h"
#include "supervisor/runner_retry.h"

#include <string.h>

static void emit_lost(struct run *r)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	auto_free char *why = xasprintf("the agent has lost this session's conversation (%s)",
	        r->outcome.error ? r->outcome.error : "it does not say how");
	struct jw w = JW_INIT(&b);
	jw_int(&w, "attempt", r->attempt);
	jw_bytes(&w, "reason", why, strlen(why));
	jw_int(&w, "delayMs", 0);
	active_emit(r, EVENT_RUN_RETRY, b.p, b.len);
}

void runner_again(struct run *r)
{
	r->attempt++;
	r->lost = true;
	emit_lost(r);
	runner_end_release(r);
	runner_retry_forget(r);
	active_step(r, RUN_EVENT_SLOT); /* it has not given it back */
}
