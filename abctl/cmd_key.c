#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BODY_MAX = 256 << 10,
	DAYS_MAX = 36500,
};

struct key_args {
	struct opt_list users, harnesses, policies, verbs;
	const char *tenant, *budget, *expires;
	int64_t rate, run_rate;
};

static const struct opt opts[] = {
        {"tenant", 0, OPT_TEXT, offsetof(struct key_args, tenant), "NAME",
                "whose it is (default: the key's name)"},
        {"user", 'u', OPT_LIST, offsetof(struct key_args, users), "USER",
                "only for this user of the tenant; may be given again"},
        {"harness", 0, OPT_LIST, offsetof(struct key_args, harnesses), "NAME",
                "only for this harness; may be given again"},
        {"policy", 0, OPT_LIST, offsetof(struct key_args, policies), "NAME",
                "only for this policy; may be given again"},
        {"verbs", 0, OPT_LIST, offsetof(struct key_args, verbs), "V,V",
                "read run steer session exec port (default: all)"},
        {"rate", 0, OPT_NUMBER, offsetof(struct key_args, rate), "N", "requests a minute"},
        {"run-rate", 0, OPT_NUMBER, offsetof(struct key_args, run_rate), "N",
                "runs and commands a minute"},
        {"budget", 0, OPT_TEXT, offsetof(struct key_args, budget), "USD|Ntokens",
                "what its tenant may spend a day (5, 2.50, 200000tokens)"},
        {"expires", 0, OPT_TEXT, offsetof(struct key_args, expires), "Nd|Nh|TIME",
                "when it ends: in so many days or hours, or 2027-01-31T00:00:00.000Z"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"KEY", "name", CELL_TEXT},
        {"TENANT", "tenant", CELL_TEXT},
        {"VERBS", "verbs", CELL_TEXT},
        {"CREATED", "createdAt", CELL_TIME},
        {"USED", "usedAt", CELL_TIME},
        {"EXPIRES", "expiresAt", CELL_TIME},
        {"ID", "id", CELL_TEXT},
        {.heading = NULL},
};

/* ---- add ---- */

static void list_member(struct jw *w, const char *name, const struct opt_list *l)
{
	if (l->n == 0)
		return;
	jw_open(w, name, '[');
	for (int i = 0; i < l->n; i++)
		jw_str(w, NULL, l->v[i]);
	jw_close(w, ']');
}

/* "read,run" as two. */
static void verbs_member(struct jw *w, const struct opt_list *l)
{
	if (l->n == 0)
		return;
	jw_open(w, "verbs", '[');
	for (int i = 0; i < l->n; i++)
		for (const char *p = l->v[i]; p && l->v[i][0];) {
			size_t n = strcspn(p, ",");
			jw_bytes(w, NULL, p, n);
			p = p[n] ? p + n + 1 : NULL;
		}
	jw_close(w, ']');
}

static int budget_member(struct jw *w, const char *text)
{
	char *end;
	double n = strtod(text, &end);
	bool tokens = strcmp(end, "tokens") == 0 || strcmp(end, "t") == 0;
	if (end == text || !(n > 0 && n < 1e15) || (*end && !tokens))
		return fail_usage(
		        "--budget: '%.40s' is neither USD (2.50) nor tokens (50000tokens)", text);
	if (tokens)
		jw_int(w, "tokensPerDay", (int64_t)n);
	else
		jw_num(w, "costUsdPerDay", n);
	return 0;
}

static int expires_member(struct jw *w, const char *text)
{
	char *end, when[CLOCK_TEXT_MAX];
	int64_t hour_ms = (int64_t)3600 * 1000;
	if (clock_from_rfc3339(text, strlen(text)) > 0) {
		jw_str(w, "expiresAt", text);
		return 0;
	}
	long n = strtol(text, &end, 10);
	bool days = strcmp(end, "d") == 0;
	if (end == text || n < 1 || n > DAYS_MAX || (!days && strcmp(end, "h") != 0))
		return fail_usage("--expires: '%.40s' is not like 30d, 12h or "
		                  "2027-01-31T00:00:00.000Z",
		        text);
	clock_rfc3339(clock_wall_ms() + n * hour_ms * (days ? 24 : 1), when);
	jw_str(w, "expiresAt", when);
	return 0;
}

static int body_of(struct buf *to, const struct key_args *a, const char *name)
{
	struct jw w = JW_INIT(to);
	int code = 0;
	jw_open(&w, NULL, '{');
	jw_str(&w, "name", name);
	jw_str(&w, "tenant", a->tenant);
	list_member(&w, "users", &a->users);
	list_member(&w, "harnesses", &a->harnesses);
	list_member(&w, "policies", &a->policies);
	verbs_member(&w, &a->verbs);
	if (a->rate)
		jw_int(&w, "rate", a->rate);
	if (a->run_rate)
		jw_int(&w, "runRate", a->run_rate);
	if (a->budget)
		code = budget_member(&w, a->budget);
	if (a->expires && code == 0)
		code = expires_member(&w, a->expires);
	jw_close(&w, '}');
	if (code == 0 && to->failed)
		code = fail_usage("too many names");
	return code;
}

/* The key alone on stdout, so that it can be sent to a file; what it is on stderr. */
static int add(const struct cli *cli, const struct key_args *a, const char *name)
{
	auto_buf struct buf body = BUF_INIT(BODY_MAX);
	auto_json struct json *answer = NULL;
	int code = body_of(&body, a, name);
	if (code)
		return code;
	struct client_request req = {
	        .method = "POST", .path = "/v1/keys", .body = body.p, .body_len = body.len};
	code = query_send(cli, &req, &answer);
	if (code)
		return code;
	if (cli->json) {
		query_print(answer);
		return EXIT_DONE;
	}
	const struct json *about = json_get(answer, "about");
	const struct json *warnings = json_get(answer, "warnings");
	for (const struct json *x = json_first(warnings); x; x = json_next(x))
		fail_note("%s", json_text(x));
	fprintf(stderr, "abctl: key %s of tenant %s; it is shown this once\n",
	        json_str(about, "name", name), json_str(about, "tenant", name));
	puts(json_str(answer, "key", ""));
	return EXIT_DONE;
}

/* ---- the others ---- */

static int path_of(struct buf *to, const char *name)
{
	buf_puts(to, "/v1/keys/");
	url_encode(to, name);
	return to->failed ? fail_usage("'%.64s...' is no key's name", name) : 0;
}

static int revoke(const struct cli *cli, const char *path, const char *name)
{
	struct client_request req = {.method = "DELETE", .path = path};
	return query_say(cli, &req, "%s: revoked", name);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return show_list(cli, "/v1/keys", "keys", columns);
	if (argc != 2)
		return fail_usage("abctl key (ls | add NAME | show NAME | rm NAME)");
	if (strcmp(argv[0], "add") == 0)
		return add(cli, args, argv[1]);
	int code = path_of(&path, argv[1]);
	if (code)
		return code;
	if (strcmp(argv[0], "show") == 0)
		return show_object(cli, path.p);
	if (strcmp(argv[0], "rm") == 0)
		return revoke(cli, path.p, argv[1]);
	return fail_usage("abctl key (ls | add NAME | show NAME | rm NAME)");
}

const struct verb cmd_key = {
        .name = "key",
        .synopsis = "(ls | add NAME [bounds] | show NAME | rm NAME)",
        .summary = "API keys of tenants (root)",
        .help = "`add` prints the key, which is kept nowhere: abctl key add web >web.key. Whoever\n"
                "has it sees and does what is its tenant's, within its bounds, and never more "
                "than\n"
                "a user of the socket's group. With --harness and without --verbs a key starts "
                "no\n"
                "commands in jails. `rm` revokes: what is open with the key is cut at once; runs\n"
                "go on.\n",
        .words = "ls add show rm",
        .opts = opts,
        .args_size = sizeof(struct key_args),
        .min = 1,
        .max = 2,
        .run = run,
};
