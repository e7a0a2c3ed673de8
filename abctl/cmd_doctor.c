#include "abctl/human.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/buf.h"

#include <stddef.h>
#include <string.h>

enum { TEXT_WIDTH = 100 };

struct doctor_args {
	const char *policy;
};

static const struct opt opts[] = {
        {"policy", 0, OPT_TEXT, offsetof(struct doctor_args, policy), "NAME",
                "against another policy than 'default'"},
        {.name = NULL},
};

/* Not cut to the terminal: the remedy stands last and is what one came for. */
static const struct column layers[] = {
        {"LAYER", "layer", CELL_TEXT},
        {"HAVE", "have", CELL_TEXT},
        {"NEED", "need", CELL_TEXT},
        {"WHAT IT IS", "missing", CELL_TEXT},
        {"DETAIL", "detail", CELL_TEXT},
        {"REMEDY", "remedy", CELL_TEXT},
        {.heading = NULL},
};

static const struct column checks[] = {
        {"HOST", "check", CELL_TEXT},
        {"STATE", "state", CELL_TEXT},
        {"FOUND", "found", CELL_TEXT},
        {"WHY", "why", CELL_TEXT},
        {"REMEDY", "remedy", CELL_TEXT},
        {.heading = NULL},
};

static void write_selftest(struct buf *b, const struct json *t)
{
	struct human took = human_duration((json_int(t, "us", 0) + 999) / 1000);
	buf_puts(b, "\nself-test: ");
	if (json_bool(t, "ok", false))
		buf_printf(b, "a canary jail has shown what is in force (%s)\n", took.s);
	else
		buf_printf(b, "FAILED, so no policy is served: %s; mend that, then abctl reload\n",
		        json_str(t, "detail", "no answer"));
}

/* A paragraph, broken at blanks. */
static void write_text(struct buf *b, const char *text)
{
	while (*text) {
		size_t n = strlen(text);
		if (n > TEXT_WIDTH) {
			n = TEXT_WIDTH;
			while (n > 0 && text[n] != ' ')
				n--;
			if (n == 0)
				n = TEXT_WIDTH;
		}
		buf_printf(b, "%.*s\n", (int)n, text);
		text += n + (text[n] == ' ');
	}
}

static void write_isolation(struct buf *b, const struct json *i)
{
	buf_puts(b, "\n");
	write_text(b, json_str(i, "note", ""));
	write_text(b, json_str(i, "rootNote", ""));
	buf_printf(b, "See %s.\n", json_str(i, "see", "the documentation"));
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct doctor_args *a = args;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/doctor");
	if (a->policy) {
		buf_puts(&path, "?policy=");
		url_encode(&path, a->policy);
	}
	auto_json struct json *j = NULL;
	int r = query_get(cli, path.p, &j);
	if (r)
		return r;
	bool ok = json_bool(j, "ok", false);
	if (cli->json) {
		query_print(j);
		return ok ? EXIT_DONE : EXIT_FAILED;
	}
	auto_buf struct buf b = BUF_INIT(1 << 20);
	table_write(&b, layers, json_get(j, "layers"), 0);
	write_selftest(&b, json_get(j, "selfTest"));
	buf_puts(&b, "\n");
	table_write(&b, checks, json_get(j, "host"), 0);
	write_isolation(&b, json_get(j, "isolation"));
	buf_printf(&b, "\npolicy '%s' %s\n", json_str(j, "policy", "default"),
	        ok ? "can be met on this host"
	           : "cannot be met on this host: see the remedies above");
	r = show_text(&b);
	return r ? r : ok ? EXIT_DONE : EXIT_FAILED;
}

const struct verb cmd_doctor = {
        .name = "doctor",
        .synopsis = "[--policy NAME]",
        .summary = "each isolation layer and the host's own switches: have, need, remedy",
        .help = "Exits 1 when this host cannot meet the policy: a required layer is missing, the "
                "self-test\nfailed, or a switch of the host is `bad`. `advice` does not count.\n",
        .opts = opts,
        .args_size = sizeof(struct doctor_args),
        .run = run,
};
