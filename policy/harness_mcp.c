#include "policy/harness_mcp.h"
#include "base/mem.h"
#include "policy/harness_keys.h"
#include "policy/harness_pairs.h"

#include <ctype.h>
#include <string.h>

/* `command` is one word or an argv; `args` follow it. */
static int set_mcp_command(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness_mcp *m = obj;
	if (n->kind == YAML_SEQ)
		return keys_list(k, n, NULL, NULL, &m->command);
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	m->command = xcalloc(2, sizeof(*m->command));
	m->command[0] = xstrdup(n->text);
	return 0;
}

static int set_mcp_env(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness_mcp *m = obj;
	return pairs_list(k, n, "=", form_variable, "a variable's name", &m->env);
}

static bool form_field_name(const char *text)
{
	size_t n = strlen(text);
	for (size_t i = 0; i < n; i++)
		if (!isascii(text[i]) ||
		        !(isalnum((unsigned char)text[i]) || strchr("-_", text[i])))
			return false;
	return n > 0 && n < 128;
}

static int set_mcp_headers(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness_mcp *m = obj;
	return pairs_list(k, n, ": ", form_field_name, "a header's name", &m->headers);
}

/* Applied by set_one_mcp, when `command` is there. */
static int set_mcp_args(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	return keys_kind(k, n, YAML_SEQ);
}

static const struct key mcp_rows[] = {
        {.name = "command",
                .type = KEY_OTHER,
                .set = set_mcp_command,
                .want = "text or list",
                .doc = "Program of a server on stdio, run in the jail."},
        {.name = "args",
                .type = KEY_OTHER,
                .set = set_mcp_args,
                .want = "list of texts",
                .doc = "Its arguments."},
        {.name = "env",
                .type = KEY_OTHER,
                .set = set_mcp_env,
                .want = "map of texts",
                .doc = "Its environment."},
        {.name = "url",
                .type = KEY_TEXT,
                .offset = offsetof(struct harness_mcp, url),
                .form = form_reference,
                .want = "a URL",
                .doc = "A server over HTTP instead."},
        {.name = "headers",
                .type = KEY_OTHER,
                .set = set_mcp_headers,
                .want = "map of texts",
                .doc = "Headers sent to it."},
};
const struct key_table harness_mcp_keys = KEY_TABLE(mcp_rows);

static int append_args(
        const struct keys_ctx *k, const struct yaml_node *args, struct harness_mcp *m)
{
	char **more = NULL;
	int r = keys_list(k, args, NULL, NULL, &more);
	if (r < 0)
		return r;
	size_t n = 0;
	while (m->command[n])
		n++;
	m->command = xrealloc(m->command, n + args->count + 1, sizeof(*m->command));
	memcpy(m->command + n, more, (args->count + 1) * sizeof(*more));
	free(more); /* its texts belong to command now */
	return 0;
}

static int set_one_mcp(const struct keys_ctx *k, const struct yaml_node *n, struct harness_mcp *m)
{
	m->name = xstrdup(n->key);
	m->line = n->key_line;
	if (!form_field_name(n->key))
		return keys_error(k, n->key_line, "'%.60s' cannot be a server's name", n->key);
	/* Its tools are mcp__NAME__TOOL for agents and rules: where NAME ends must be plain. */
	if (strstr(n->key, "__") || n->key[strlen(n->key) - 1] == '_')
		return keys_error(k, n->key_line,
		        "'%.60s' cannot be a server's name: '__' in mcp__NAME__TOOL is its end; "
		        "use "
		        "'-' or a single '_' within it",
		        n->key);
	int r = keys_apply(k, &harness_mcp_keys, n, m);
	if (r < 0)
		return r;
	if ((m->command && m->command[0]) == (m->url != NULL))
		return keys_error(k, n->key_line,
		        "server '%.60s': one of command and url is expected", n->key);
	const struct yaml_node *args = yaml_get(n, "args");
	if (args && !m->command)
		return keys_error(k, args->key_line, "'args' go with a command");
	return args ? append_args(k, args, m) : 0;
}

int harness_set_mcp(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = keys_kind(k, n, YAML_MAP);
	if (r < 0)
		return r;
	h->mcp = xcalloc(n->count, sizeof(*h->mcp));
	yaml_each (it, n) {
		r = set_one_mcp(k, it, &h->mcp[h->nmcp++]);
		if (r < 0)
			return r;
	}
	return 0;
}
