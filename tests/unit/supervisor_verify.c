/* What the end of a check means: only an exit with 0 that counts has passed. */
#include "supervisor/verify.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/t.h"

static struct verify ended(void)
{
	return (struct verify){.required = true, .done = true, .exited = true, .timeout_ms = 700};
}

static void says(struct verify v, const char *want)
{
	struct err e;
	ok(!verify_passed(&v), "has not passed: %s", want);
	ok(verify_fails(&v, &e), "and fails the run");
	is_str(e.text, want, "says how");
	v.required = false;
	ok(verify_fails(&v, &e) == (v.why.code != 0), "unless it need not pass");
}

static void ends(void)
{
	struct err e;
	struct verify v = ended();
	ok(verify_passed(&v) && !verify_fails(&v, &e), "an exit with 0");
	ok(!verify_passed(NULL) && !verify_fails(NULL, &e),
	        "none has not passed, and fails nothing");
	v.done = false;
	ok(!verify_passed(&v), "one whose run was ended meanwhile");
	v = ended();
	v.code = 2;
	says(v, "verification failed (exit 2)");
	v = ended();
	v.sig = 9;
	says(v, "verification failed (signal 9)");
	v = ended();
	v.timed_out = true;
	says(v, "verification failed (not done after 700 ms)");
	v = ended();
	v.oom = true;
	says(v, "verification failed (out of memory)");
	v = ended();
	v.exited = false;
	says(v, "verification failed (its jail ended by itself)");
	v = ended();
	v.exited = false;
	err_set(&v.why, -EAGAIN, "no room");
	says(v, "verification failed: no room");
}

/* As it is told, and taken up by another supervisor. */
static void again(struct verify *v)
{
	struct err a, b;
	auto_buf struct buf first = BUF_INIT(16384), second = BUF_INIT(16384);
	struct jw w = JW_INIT(&first);
	verify_members(v, &w);
	auto_json struct json *event = json_parse_members(first.p, first.len);
	must(event != NULL, "members: %s", first.p);
	struct verify *copy = verify_from(event);
	w = (struct jw)JW_INIT(&second);
	verify_members(copy, &w);
	is_str(second.p, first.p, "told again");
	bool fails = verify_fails(v, &a);
	ok(verify_fails(copy, &b) == fails, "with the same verdict");
	if (fails)
		is_str(b.text, a.text, "in the same words");
	verify_free(copy);
}

static void members(void)
{
	struct verify v = ended();
	v.tail = (struct buf)BUF_INIT(2 * VERIFY_TAIL);
	again(&v);
	for (int i = 0; i < 2000; i++)
		verify_print(&v, "\xc3\xa4\xe2\x82\xac", 5);
	ok(v.tail.len == VERIFY_TAIL, "the end of what it printed");
	again(&v);
	v.code = 1;
	again(&v);
	v.code = 0;
	v.sig = 15;
	again(&v);
	v.sig = 0;
	v.timed_out = true;
	again(&v);
	v.timed_out = v.exited = false;
	v.oom = true;
	again(&v);
	v.oom = false;
	err_set(&v.why, -EIO, "no \"room\"");
	again(&v);
	char all[3 * VERIFY_TAIL];
	memset(all, 'x', sizeof(all));
	verify_print(&v, all, sizeof(all));
	ok(v.tail.len == VERIFY_TAIL && v.tail.p[0] == 'x', "also of much at once");
	buf_done(&v.tail);
}

int main(void)
{
	ends();
	members();
	return done();
}
