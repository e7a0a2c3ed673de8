#include "abctl/query.h"
#include "abctl/show.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	struct err e = {0};
	struct client_request req = {.method = "GET", .path = "/metrics", .accept = "text/plain"};
	auto_client struct client *c = NULL;
	int r = query_open(cli, &req, &c);
	if (r)
		return r;
	const char *text = NULL;
	size_t n = 0;
	if (client_body(c, &text, &n, &e) < 0)
		return query_failed(&e);
	auto_buf struct buf b = BUF_INIT(64 << 20);
	buf_put(&b, text, n);
	return show_text(&b);
}

const struct verb cmd_metrics = {
        .name = "metrics",
        .synopsis = "",
        .summary = "the same in Prometheus' text form",
        .run = run,
};
