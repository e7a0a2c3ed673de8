#include "policy/log_yaml.h"

#include "base/log.h"

static int set_level(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char *const levels[] = {"err", "warn", "info", "debug", NULL};
	struct daemon_config *c = obj;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	int level = log_level_by_name(n->text);
	if (level < 0)
		return keys_unknown(k, n->line, "level", n->text, levels);
	c->log_level = (uint32_t)level;
	return 0;
}

static const struct key log_rows[] = {
        {.name = "format",
                .type = KEY_ENUM,
                .offset = offsetof(struct daemon_config, log_format),
                .names = log_format_names,
                .dflt = "text",
                .doc = "A line of text, or one JSON object a line."},
        {.name = "level",
                .type = KEY_OTHER,
                .set = set_level,
                .want = "err, warn, info or debug",
                .dflt = "info, or what --log-level says",
                .doc = "What is logged: this and what is graver."},
};
const struct key_table log_keys = KEY_TABLE(log_rows);
