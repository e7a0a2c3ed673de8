#include "jail/options.h"
#include "base/mem.h"
#include "tests/t.h"

static int parse(struct options *o, struct err *e, char *const *argv)
{
	int n = 0;
	while (argv[n])
		n++;
	*e = (struct err){0};
	return options_parse(n, argv, o, e);
}
#define PARSE(...) parse(&o, &e, (char *const[]){S("agentboxd"), ##__VA_ARGS__, NULL})
#define S(x)       ((char[]){x})

int main(void)
{
	struct options o;
	struct err e;
	must(PARSE() == OPTIONS_RUN, "no option");
	is_str(o.config, "/etc/agentbox/agentboxd.yaml", "config");
	is_str(o.state, "/var/lib/agentbox", "state");
	is_str(o.socket, "/run/agentbox/agentbox.sock", "socket");
	is_str(o.agents, "/var/lib/agentbox/agents", "agents");
	ok(!o.share && !o.libexec && !o.config_named && o.log_level == LOG_LEVEL_INFO, "the rest");
	options_done(&o);

	must(PARSE(S("--state"), S("/s"), S("--socket=/x=y"), S("--config"), S("/c"),
	             S("--log-level=debug"), S("--libexec"), S("/l"),
	             S("--share=/h")) == OPTIONS_RUN,
	        "both forms");
	is_str(o.state, "/s", "state");
	is_str(o.socket, "/x=y", "socket");
	is_str(o.agents, "/s/agents", "agents follow the state");
	is_str(o.libexec, "/l", "libexec");
	ok(o.config_named && o.log_level == LOG_LEVEL_DEBUG, "config was named");
	options_done(&o);

	must(chdir("/tmp") == 0, "in /tmp");
	must(PARSE(S("--state"), S("a"), S("--state"), S("b/c")) == OPTIONS_RUN, "relative, twice");
	is_str(o.state, "/tmp/b/c", "the last one, absolute");
	options_done(&o);

	ok(PARSE(S("--help")) == OPTIONS_HELP, "help");
	options_done(&o);
	ok(PARSE(S("--state=/s"), S("--version")) == OPTIONS_VERSION, "version");
	options_done(&o);

	ok(PARSE(S("--stat"), S("/s")) == -EINVAL, "%s", e.text);
	ok(PARSE(S("--state")) == -EINVAL, "%s", e.text);
	ok(PARSE(S("--state=")) == -EINVAL, "%s", e.text);
	ok(PARSE(S("run")) == -EINVAL, "%s", e.text);
	ok(PARSE(S("--log-level"), S("loud")) == -EINVAL, "%s", e.text);
	ok(PARSE(S("--")) == -EINVAL, "%s", e.text);
	return done();
}
