#include "abctl/human.h"
#include "abctl/table.h"
#include "tests/t.h"

static void numbers(void)
{
	is_str(human_bytes(0).s, "0 B", "no bytes");
	is_str(human_bytes(999).s, "999 B", "bytes");
	is_str(human_bytes(1000).s, "1.0 kB", "a kilobyte");
	is_str(human_bytes(12345678).s, "12 MB", "megabytes");
	is_str(human_bytes(999999).s, "1.0 MB", "no 1000 kB");
	is_str(human_bytes(UINT64_MAX).s, "18 EB", "the most");
	is_str(human_count(1234).s, "1.2k", "a count");
	is_str(human_count(-1).s, "0", "a count below nothing");
	is_str(human_duration(12).s, "12 ms", "milliseconds");
	is_str(human_duration(3450).s, "3.4 s", "seconds");
	is_str(human_duration(125000).s, "2m05s", "minutes");
	is_str(human_duration(3720000).s, "1h02m", "hours");
	is_str(human_duration(-5).s, "0 ms", "a clock that went back");
	is_str(human_money(0.0123).s, "$0.0123", "cents");
	is_str(human_money(1.2).s, "$1.20", "dollars");
	is_str(human_time("2026-11-29T20:56:48.769Z").s, "11-29 20:56:48", "a time");
	is_str(human_time("never").s, "never", "what is no time");
}

static void tables(void)
{
	static const char text[] =
	        "[{\"id\":\"a\",\"n\":1500,\"ts\":\"2026-11-29T20:56:48.769Z\",\"x\":{\"y\":true}},"
	        "{\"id\":\"longer\\u001b[31m\",\"n\":2,\"list\":[\"p\",\"q\"]}]";
	static const struct column columns[] = {
	        {"ID", "id", CELL_TEXT},
	        {"N", "n", CELL_BYTES},
	        {"WHEN", "ts", CELL_TIME},
	        {"Y", "x.y", CELL_TEXT},
	        {"LIST", "list", CELL_TEXT},
	        {.heading = NULL},
	};
	auto_json struct json *j = json_parse(text, strlen(text), NULL);
	auto_buf struct buf b = BUF_INIT(1 << 16), cut = BUF_INIT(1 << 16),
	                    none = BUF_INIT(1 << 16), counted = BUF_INIT(1 << 16);
	table_write(&b, columns, j, 0);
	is_str(b.p,
	        "ID            N       WHEN            Y     LIST\n"
	        "a             1.5 kB  11-29 20:56:48  true  -\n"
	        "longer^[[31m  2 B     -               -     p, q\n",
	        "aligned columns");
	static const struct column counts[] = {{"ID", "id", CELL_SHORT},
	        {"LIST", "list", CELL_COUNT}, {"X", "x", CELL_TEXT}, {.heading = NULL}};
	table_write(&counted, counts, j, 0);
	is_str(counted.p,
	        "ID            LIST  X\n"
	        "a             -     {\"y\":true}\n"
	        "longer^[[31m  2     -\n",
	        "a list that is counted, an object");
	table_write(&cut, columns, j, 10);
	is_str(cut.p, "ID\na\nlonger^[[3\n", "cut to the width");
	table_write(&none, columns, NULL, 0);
	is_str(none.p, "ID  N  WHEN  Y  LIST\n", "an empty list");
}

static void trees(void)
{
	static const char text[] =
	        "{\"name\":\"x\\u0007\",\"n\":1.5,\"list\":[1,2],\"o\":{\"k\":null},"
	        "\"prompt\":\"two\\nlines\",\"e\":[],\"f\":{},\"deep\":[{\"a\":1},{\"a\":2}]}";
	auto_json struct json *j = json_parse(text, strlen(text), NULL);
	auto_buf struct buf b = BUF_INIT(1 << 16);
	table_tree(&b, j, 0);
	is_str(b.p,
	        "name: x^G\nn: 1.5\nlist: 1, 2\no:\n  k: null\nprompt:\n  two\n  lines\ne: -\nf: "
	        "-\n"
	        "deep:\n  -\n    a: 1\n  -\n    a: 2\n",
	        "an object as a tree");
}

int main(void)
{
	numbers();
	tables();
	trees();
	return done();
}
