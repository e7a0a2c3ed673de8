#include "supervisor/verify.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "supervisor/pump.h"

#include <errno.h>
#include <string.h>

struct verify *verify_new(bool required, uint64_t timeout_ms)
{
	struct verify *v = xnew(struct verify);
	v->required = required;
	v->timeout_ms = timeout_ms;
	v->tail = (struct buf)BUF_INIT(2 * (size_t)VERIFY_TAIL);
	return v;
}

void verify_free(struct verify *v)
{
	if (!v)
		return;
	pump_close(v->pump);
	buf_done(&v->tail);
	free(v);
}

void verify_print(struct verify *v, const char *p, size_t n)
{
	struct buf *b = &v->tail;
	if (n > VERIFY_TAIL) {
		p += n - VERIFY_TAIL;
		n = VERIFY_TAIL;
	}
	(void)buf_put(b, p, n); /* fits: the buffer holds twice the tail */
	if (b->len > VERIFY_TAIL)
		buf_consume(b, b->len - VERIFY_TAIL);
}

bool verify_passed(const struct verify *v)
{
	return v && v->done && !v->why.code && !v->timed_out && !v->oom && v->exited && !v->sig &&
	       v->code == 0;
}

bool verify_fails(const struct verify *v, struct err *ret)
{
	if (!v || verify_passed(v))
		return false;
	if (v->why.code) { /* nobody knows what it would have said */
		err_set(ret, v->why.code, "verification failed: %.200s", v->why.text);
		return true;
	}
	if (v->timed_out)
		err_set(ret, -ETIMEDOUT, "verification failed (not done after %llu ms)",
		        (unsigned long long)v->timeout_ms);
	else if (v->oom)
		err_set(ret, -ENOMEM, "verification failed (out of memory)");
	else if (v->exited && v->sig)
		err_set(ret, -EINTR, "verification failed (signal %d)", v->sig);
	else if (v->exited)
		err_set(ret, -EBADMSG, "verification failed (exit %d)", v->code);
	else
		err_set(ret, -ESRCH, "verification failed (its jail ended by itself)");
	return v->required;
}

void verify_members(const struct verify *v, struct jw *w)
{
	size_t cut = v->tail.len == VERIFY_TAIL ? utf8_rest(v->tail.p, v->tail.len) : 0;
	jw_bool(w, "passed", verify_passed(v));
	jw_bool(w, "required", v->required);
	if (v->exited && v->sig)
		jw_int(w, "signal", v->sig);
	else if (v->exited)
		jw_int(w, "exitCode", v->code);
	if (v->timed_out) {
		jw_bool(w, "timedOut", true);
		jw_int(w, "timeoutMs", (int64_t)v->timeout_ms);
	}
	if (v->oom)
		jw_bool(w, "outOfMemory", true);
	jw_bytes(w, "output", v->tail.len ? v->tail.p + cut : "", v->tail.len - cut);
	jw_int(w, "durationMs", (int64_t)v->took_ms);
	if (v->why.code)
		jw_str(w, "error", v->why.text);
}

struct verify *verify_from(const struct json *event)
{
	struct verify *v = verify_new(json_bool(event, "required", true), 0);
	const char *output = json_str(event, "output", ""), *why = json_str(event, "error", NULL);
	v->code = (int)json_int(event, "exitCode", -1);
	v->sig = (int)json_int(event, "signal", 0);
	v->exited = v->code >= 0 || v->sig;
	v->timed_out = json_bool(event, "timedOut", false);
	v->oom = json_bool(event, "outOfMemory", false);
	v->timeout_ms = (uint64_t)json_int(event, "timeoutMs", 0);
	v->took_ms = (uint64_t)json_int(event, "durationMs", 0);
	if (why)
		err_set(&v->why, -EIO, "%s", why);
	verify_print(v, output, strlen(output));
	v->done = true;
	return v;
}
