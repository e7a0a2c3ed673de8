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

static int check_servers(const struct driver_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->nmcp; i++) {
		int r = check_mcp(&spec->mcp[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

enum { SPELLED_MAX = 40 }; /* bytes that one is written as */

char *launch_spelled(const char *text, const struct launch_spelling *how)
{
	struct buf b = BUF_INIT(strlen(text) * SPELLED_MAX);
	if (how && how->bang && *text == '!') {
		buf_puts(&b, how->bang);
		text++;
	}
	for (; *text; text++)
		if (how && how->dollar && *text == '$')
			buf_puts(&b, how->dollar);
		else
			buf_putc(&b, *text);
	return buf_take(&b);
}

static void put_spelled(
        struct jw *w, const char *key, const char *text, const struct launch_spelling *how)
{
	auto_free char *spelled = launch_spelled(text, how);
	jw_str(w, key, spelled);
}

void launch_put_args(struct jw *w, const char *key, const char *const *command,
        const struct launch_spelling *how)
{
	jw_open(w, key, '[');
	for (const char *const *a = command + 1; *a; a++)
		put_spelled(w, NULL, *a, how);
	jw_close(w, ']');
}

char *launch_pair_value(const char *pair, char sep, const struct launch_spelling *how)
{
	const char *at = strchr(pair, sep), *value = at ? at + 1 : "";
	while (sep == ':' && *value == ' ')
		value++;
	return launch_spelled(value, how);
}

void launch_put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep,
        const struct launch_spelling *how)
{
	if (!pairs)
		return;
	jw_open(w, key, '{');
	for (; *pairs; pairs++) {
		auto_free char *name = xstrndup(*pairs, strcspn(*pairs, (char[]){sep, '\0'}));
		auto_free char *value = launch_pair_value(*pairs, sep, how);
		jw_str(w, name, value);
	}
	jw_close(w, '}');
}

static void put_server(struct jw *w, const struct driver_mcp *m, const struct launch_servers *how)
{
	jw_open(w, m->name, '{');
	if (m->url) {
		jw_str(w, "type", how->http);
		put_spelled(w, how->url, m->url, how->words);
		launch_put_pairs(w, "headers", m->headers, ':', how->headers);
	} else {
		jw_str(w, "type", how->stdio);
		put_spelled(w, "command", m->command[0], how->words);
		launch_put_args(w, "args", m->command, how->words);
		launch_put_pairs(w, "env", m->env, '=', how->env);
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

/* ---- what may be asked ---- */

int launch_check(const struct driver *d, const struct driver_spec *spec, struct err *e)
{
	uint32_t told =
	        (spec->model_flag ? CAN(MODEL) : 0) | (spec->instructions ? CAN(SYSTEM_PROMPT) : 0);
	uint32_t can = d->can & ~(d->can_if_told & ~told);
	uint32_t missing = driver_wants(spec) & ~can;
	for (enum ability a = 0; a < ABILITY_COUNT; a++)
		if (ability_in(missing, a))
			return ability_refuse(e, "", d->name, a, "leave it out");
	if (spec->model && (!*spec->model || *spec->model == '-'))
		return err_set(e, -ENOEXEC, "model: '%.80s' is no model", spec->model);
	return check_servers(spec, e);
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
