#include "drivers/launch.h"
#include "base/mem.h"

#include <ctype.h>
#include <string.h>

static void append(char ***list, char *taken)
{
	size_t n = 0;
	while (*list && (*list)[n])
		n++;
	*list = xrealloc(*list, n + 2, sizeof(char *));
	(*list)[n] = taken;
	(*list)[n + 1] = NULL;
}

void launch_arg(struct driver_command *c, const char *arg)
{
	append(&c->argv, xstrdup(arg));
}

void launch_args(struct driver_command *c, const char *const *args)
{
	for (; args && *args; args++)
		launch_arg(c, *args);
}

void launch_env(struct driver_command *c, const char *name, const char *value)
{
	append(&c->env, xasprintf("%s=%s", name, value));
}

void launch_file(struct driver_command *c, const char *path, char *text)
{
	c->files = xrealloc(c->files, c->nfiles + 1, sizeof(*c->files));
	c->files[c->nfiles++] = (struct driver_file){.path = xstrdup(path), .text = text};
}

/* ---- MCP servers ---- */

static int check_mcp(const struct driver_mcp *m, struct err *e)
{
	if (!m->name || !*m->name || strlen(m->name) > 64 || strstr(m->name, "__"))
		return err_set(e, -ENOEXEC, "tools.mcp: '%.80s' is no name for a server",
		        m->name ? m->name : "");
	for (const char *p = m->name; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return err_set(e, -ENOEXEC,
			        "tools.mcp.%s: names are letters, digits, - and _", m->name);
	bool command = m->command && m->command[0];
	if (command == (m->url != NULL))
		return err_set(e, -ENOEXEC, "tools.mcp.%s: needs either command or url", m->name);
	return 0;
}

int launch_check_mcp(const struct driver_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->nmcp; i++) {
		int r = check_mcp(&spec->mcp[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

void launch_put_args(struct jw *w, const char *key, const char *const *command)
{
	jw_open(w, key, '[');
	for (const char *const *a = command + 1; *a; a++)
		jw_str(w, NULL, *a);
	jw_close(w, ']');
}

/* "K=V" or "K: V" as a member. */
static void put_pair(struct jw *w, const char *pair, char sep)
{
	const char *at = strchr(pair, sep);
	auto_free char *key = xstrndup(pair, at ? (size_t)(at - pair) : strlen(pair));
	const char *value = at ? at + 1 : "";
	while (sep == ':' && *value == ' ')
		value++;
	jw_str(w, key, value);
}

void launch_put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep)
{
	if (!pairs)
		return;
	jw_open(w, key, '{');
	for (; *pairs; pairs++)
		put_pair(w, *pairs, sep);
	jw_close(w, '}');
}

static void put_server(struct jw *w, const struct driver_mcp *m, const struct launch_servers *how)
{
	jw_open(w, m->name, '{');
	if (m->url) {
		jw_str(w, "type", how->http);
		jw_str(w, how->url, m->url);
		launch_put_pairs(w, "headers", m->headers, ':');
	} else {
		jw_str(w, "type", how->stdio);
		jw_str(w, "command", m->command[0]);
		launch_put_args(w, "args", m->command);
		launch_put_pairs(w, "env", m->env, '=');
	}
	if (how->more)
		jw_members(w, how->more, strlen(how->more));
	jw_close(w, '}');
}

void launch_put_servers(struct jw *w, const char *key, const struct driver_spec *spec,
        const struct launch_servers *how)
{
	jw_open(w, key, '{');
	for (size_t i = 0; i < spec->nmcp; i++)
		put_server(w, &spec->mcp[i], how);
	jw_close(w, '}');
}

/* ---- names ---- */

bool launch_id_ok(const char *id)
{
	size_t n = id ? strnlen(id, 65) : 0;
	if (n == 0 || n > 64 || *id == '-')
		return false;
	for (const char *p = id; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return false;
	return true;
}

int launch_check_names(const char *key, const char *const *names, struct err *e)
{
	for (; names && *names; names++) {
		const char *p = *names;
		while (isalnum((unsigned char)*p) || strchr("_-.", *p ? *p : ' '))
			p++;
		if (p == *names || *p || **names == '-')
			return err_set(e, -ENOEXEC,
			        "%s: '%.80s': this agent takes names of its tools, no patterns",
			        key, *names);
	}
	return 0;
}

/* ---- agents that are told little ---- */

int launch_check_tools(const struct driver_spec *spec, struct err *e)
{
	if ((spec->tools_allow && spec->tools_allow[0]) ||
	        (spec->tools_deny && spec->tools_deny[0]))
		return err_set(e, -ENOEXEC, "it has no tools that could be allowed or denied here");
	if (spec->nmcp)
		return err_set(e, -ENOEXEC, "it is told of no MCP servers here: remove tools.mcp");
	return 0;
}

int launch_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->model && (!spec->model_flag || !*spec->model || *spec->model == '-'))
		return err_set(
		        e, -ENOEXEC, "model: this agent cannot be told '%.80s'", spec->model);
	if (spec->system_prompt && !spec->instructions)
		return err_set(e, -ENOEXEC, "this agent cannot be told a system prompt");
	if (spec->permissions != PERMISSIONS_AUTO)
		return err_set(e, -ENOEXEC, "this agent asks nobody: only permissions: auto");
	if (spec->max_turns)
		return err_set(e, -ENOEXEC, "limits.maxTurns: this agent has no such limit");
	return launch_check_tools(spec, e);
}

void launch_agent(struct driver_command *c, const struct driver_spec *spec)
{
	launch_args(c, spec->args);
	if (spec->model) {
		launch_arg(c, spec->model_flag);
		launch_arg(c, spec->model);
	}
	/* Also without one: that of an earlier run must not count. */
	if (spec->instructions)
		launch_file(c, spec->instructions,
		        xstrdup(spec->system_prompt ? spec->system_prompt : ""));
}
