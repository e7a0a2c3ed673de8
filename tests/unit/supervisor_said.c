/* What is said to an agent: through the journal unchanged, and told of with who it was. */
#include "supervisor/said.h"

#include "base/mem.h"
#include "drivers/emit.h"
#include "tests/t.h"

static bool same(const struct said *a, const struct said *b)
{
	return a->what == b->what && a->answer == b->answer && a->by_harness == b->by_harness &&
	       a->uid == b->uid && strcmp(a->id, b->id) == 0 && !a->text == !b->text &&
	       a->remote == b->remote && !a->key == !b->key &&
	       (!a->key || strcmp(a->key, b->key) == 0) &&
	       (!a->text || (a->len == b->len && memcmp(a->text, b->text, a->len) == 0));
}

static void journal(void)
{
	static const struct said all[] = {
	        {.what = SAID_ANSWER, .answer = ANSWER_ALWAYS, .uid = 1000, .id = "perm/1"},
	        {.what = SAID_ANSWER, .by_harness = true, .id = "p", .text = "late", .len = 4},
	        {.what = SAID_REPLY, .uid = 7, .id = "q", .text = "", .len = 0},
	        {.what = SAID_REPLY, .by_harness = true, .id = "q"},
	        {.what = SAID_INPUT, .uid = 4294967295u, .id = "", .text = "a\nb", .len = 3},
	        {.what = SAID_INPUT, .remote = true, .key = "ci", .id = "", .text = "a", .len = 1},
	        {.what = SAID_REPLY, .uid = 5, .key = "ci", .id = "q", .text = "", .len = 0},
	        {.what = SAID_ANSWER, .remote = true, .key = "k", .id = "p"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		auto_buf struct buf b = BUF_INIT(4096);
		struct said back;
		struct err e;
		said_pack(&all[i], &b);
		must(said_unpack(b.p, b.len, &back, &e) == 0, "%zu: is read again", i);
		ok(same(&all[i], &back), "%zu: as it was", i);
		size_t torn = 0;
		for (size_t n = 0; n < b.len - all[i].len; n++) {
			char *copy = xcalloc(1, n + 1); /* so that a sanitizer sees a read beyond */
			memcpy(copy, b.p, n);
			torn += said_unpack(copy, n, &back, &e) == -EBADMSG;
			free(copy);
		}
		ok(torn == b.len - all[i].len, "%zu: and what is torn is refused", i);
	}
	auto_buf struct buf b = BUF_INIT(4096);
	struct said back;
	struct err e;
	said_pack(&all[0], &b);
	b.p[0] = 9;
	ok(said_unpack(b.p, b.len, &back, &e) == -EBADMSG, "as is what this version does not know");
}

static void told(const struct said *s, const char *members, const char *want, const char *what)
{
	auto_buf struct buf b = BUF_INIT(4096);
	said_retell(s, members, strlen(members), &b);
	(void)buf_putc(&b, '\0');
	is_str(b.p, want, "%s", what);
}

static void retold(void)
{
	struct said s = {.what = SAID_ANSWER, .uid = 1000, .id = "p"};
	told(&s, "\"permissionId\":\"p\",\"answer\":\"once\",\"by\":\"user\"",
	        "\"permissionId\":\"p\",\"answer\":\"once\",\"by\":\"user\",\"uid\":1000",
	        "a person has a number");
	s.key = "ci";
	told(&s, "\"answer\":\"once\",\"by\":\"user\",\"key\":\"agents\"",
	        "\"answer\":\"once\",\"by\":\"user\",\"uid\":1000,\"key\":\"ci\"", "and a key");
	s.remote = true;
	told(&s, "\"answer\":\"once\",\"by\":\"user\"",
	        "\"answer\":\"once\",\"by\":\"user\",\"key\":\"ci\"", "or over TCP that alone");
	char who[32];
	said_who(&s, who, sizeof(who));
	is_str(who, "key ci", "in a sentence");
	s = (struct said){.by_harness = true, .id = "p", .text = "too \"late\"", .len = 10};
	told(&s, "\"answer\":\"deny\",\"by\":\"user\",\"reason\":\"x\"",
	        "\"answer\":\"deny\",\"by\":\"harness\",\"reason\":\"too \\\"late\\\"\"",
	        "nobody is the harness");
	s = (struct said){
	        .what = SAID_REPLY, .by_harness = true, .id = "q", .text = "late", .len = 4};
	told(&s, "\"questionId\":\"q\",\"text\":\"\"",
	        "\"questionId\":\"q\",\"text\":\"\",\"by\":\"harness\",\"reason\":\"late\"",
	        "of questions, too");
	told(&s, "\"answer\":", "", "what is no JSON is left as it is");
}

int main(void)
{
	journal();
	retold();
	for (int a = ANSWER_DENY; a <= ANSWER_ALWAYS; a++)
		ok(said_answer_by_name(emit_answer_word((enum driver_answer)a)) == a, "answer %d",
		        a);
	ok(said_answer_by_name("yes") == -1, "an answer that is none");
	return done();
}
