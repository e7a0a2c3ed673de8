#include "jail/options.h"
#include "base/mem.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char options_help[] =
        "usage: agentboxd [OPTION]...\n"
        "\n"
        "Runs in the foreground as root, logs to stderr.\n"
        "\n"
        "  --config FILE    settings (default /etc/agentbox/agentboxd.yaml, may be missing)\n"
        "  --state DIR      sessions, events, store (default /var/lib/agentbox)\n"
        "  --socket PATH    control socket (default /run/agentbox/agentbox.sock)\n"
        "  --share DIR      bundled harnesses and policies (default: beside the binary)\n"
        "  --agents DIR     installed agents (default STATE/agents)\n"
        "  --log-level L    err, warn, info or debug (default info)\n"
        "  --libexec DIR    where the other programs are (default: beside the binary)\n"
        "  --check-handover FD\n"
        "                   could this program go on with what FD tells?  For agentboxd itself,\n"
        "                   before it is replaced by a new binary; starts nothing\n"
        "  --help, --version\n"
        "\n"
        "SIGHUP reads the policies again and takes new binaries into use, SIGTERM stops\n"
        "gracefully, a second one at once.\n"
        "Exit: 0 stopped, 100 usage, 111 system.\n";

static const struct {
	const char *name;
	size_t at; /* of the char * in struct options */
	const char *dflt;
} paths[] = {
        {"config", offsetof(struct options, config), "/etc/agentbox/agentboxd.yaml"},
        {"state", offsetof(struct options, state), "/var/lib/agentbox"},
        {"socket", offsetof(struct options, socket), "/run/agentbox/agentbox.sock"},
        {"share", offsetof(struct options, share), NULL},
        {"agents", offsetof(struct options, agents), NULL},
        {"libexec", offsetof(struct options, libexec), NULL},
};

static char **path_at(struct options *o, size_t i)
{
	return (char **)(void *)((char *)o + paths[i].at);
}

static int set_path(char **to, const char *name, const char *value, struct err *e)
{
	if (value[0] == '\0')
		return err_set(e, -EINVAL, "--%s: empty path", name);
	free(*to);
	*to = NULL;
	if (value[0] == '/') {
		*to = xstrdup(value);
		return 0;
	}
	auto_free char *cwd = getcwd(NULL, 0);
	if (!cwd)
		return err_set(e, -EINVAL, "--%s %s: no working directory", name, value);
	*to = xasprintf("%s/%s", cwd, value);
	return 0;
}

static int set_level(struct options *o, const char *value, struct err *e)
{
	int level = log_level_by_name(value);
	if (level >= 0) {
		o->log_level = (enum log_level)level;
		return 0;
	}
	return err_set(e, -EINVAL, "--log-level %s: not one of err, warn, info, debug", value);
}

static int set_handover(struct options *o, const char *value, struct err *e)
{
	char *end;
	long n = strtol(value, &end, 10);
	if (!*value || *end || n < 3 || n > INT_MAX)
		return err_set(e, -EINVAL, "--check-handover %s: not a descriptor", value);
	o->handover = (int)n;
	return 0;
}

static int set_option(struct options *o, const char *name, const char *value, struct err *e)
{
	if (strcmp(name, "log-level") == 0)
		return set_level(o, value, e);
	if (strcmp(name, "check-handover") == 0)
		return set_handover(o, value, e);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (strcmp(paths[i].name, name) != 0)
			continue;
		o->config_named |= strcmp(name, "config") == 0;
		o->socket_named |= strcmp(name, "socket") == 0;
		return set_path(path_at(o, i), name, value, e);
	}
	return err_set(e, -EINVAL, "unknown option --%s", name);
}

static int parse(int argc, char *const *argv, struct options *o, struct err *e)
{
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
			return OPTIONS_HELP;
		if (strcmp(arg, "--version") == 0)
			return OPTIONS_VERSION;
		if (strncmp(arg, "--", 2) != 0)
			return err_set(e, -EINVAL, "unexpected argument '%s'", arg);
		const char *eq = strchr(arg, '=');
		auto_free char *name =
		        eq ? xstrndup(arg + 2, (size_t)(eq - arg - 2)) : xstrdup(arg + 2);
		const char *value = eq ? eq + 1 : argv[++i];
		if (!value)
			return err_set(e, -EINVAL, "%s wants a value", arg);
		int r = set_option(o, name, value, e);
		if (r < 0)
			return r;
	}
	return o->handover ? OPTIONS_CHECK : OPTIONS_RUN;
}

int options_parse(int argc, char *const *argv, struct options *ret, struct err *e)
{
	struct options o = {.log_level = LOG_LEVEL_INFO, .argv = argv};
	int r = parse(argc, argv, &o, e);
	if (r < 0) {
		options_done(&o);
		return r;
	}
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (!*path_at(&o, i) && paths[i].dflt)
			*path_at(&o, i) = xstrdup(paths[i].dflt);
	if (!o.agents)
		o.agents = xasprintf("%s/agents", o.state);
	*ret = o;
	return r;
}

void options_done(struct options *o)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		free(*path_at(o, i));
		*path_at(o, i) = NULL;
	}
}
