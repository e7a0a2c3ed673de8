#include "abctl/query.h"
#include "abctl/show.h"

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs/");
	url_encode(&path, argv[0]);
	return show_object(cli, path.p);
}

const struct verb cmd_show = {
        .name = "show",
        .synopsis = "RUN",
        .summary = "one run, with its result",
        .min = 1,
        .max = 1,
        .run = run,
};
