/*
 * agent_install.h - `abctl agent install` and `abctl agent rm`: an agent into the directory that
 * agentboxd shows jails as /opt/agent.
 */
#ifndef ABCTL_AGENT_INSTALL_H
#define ABCTL_AGENT_INSTALL_H

#include "abctl/verb.h"

struct agent_install_args {
	const char *file;     /* --file: an agent.yaml of one's own */
	const char *dir;      /* --agents: where, if not where agentboxd says */
	const char *policy;   /* --policy: of the jail that fetches */
	const char *registry; /* --registry */
};

/* For the verb's option table; S is its struct, M the member of this type. */
#define AGENT_INSTALL_OPTS(S, M)                                                                   \
	{"file", 0, OPT_TEXT, offsetof(S, M.file), "AGENT.yaml", "install: an agent of your own"}, \
	        {"agents", 0, OPT_TEXT, offsetof(S, M.dir), "DIR",                                 \
	                "install, rm: where (default: where agentboxd looks)"},                    \
	        {"policy", 0, OPT_TEXT, offsetof(S, M.policy), "NAME",                             \
	                "install: of the jail that fetches (default: install); "                   \
	                "probe: of the jail"},                                                     \
	{                                                                                          \
		"registry", 0, OPT_TEXT, offsetof(S, M.registry), "URL",                           \
		        "install: npm's registry, else npm_config_registry or ~/.npmrc"            \
	}

/* Exit codes, after having said what came of it. */
int agent_install(const struct cli *cli, const struct agent_install_args *a, const char *name);
int agent_rm(const struct cli *cli, const struct agent_install_args *a, const char *name);
/* npm's registry as npm on this host would be told: `named` (or NULL), the environment, root's
 * .npmrc.  Owned, or NULL: npm's own. */
char *agent_registry(const char *named);

#endif
