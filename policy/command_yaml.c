#include "policy/command_yaml.h"

#include "policy/policy.h"

#include <string.h>

int command_set(const struct keys_ctx *k, const struct yaml_node *n, char *to, size_t size,
        uint32_t *ret_nargs)
{
	size_t at = 0;
	uint32_t nargs = 0;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && (n->count < 1 || n->count > FORM_COMMAND_ARGS))
		r = keys_error(k, n->line, "'command' has 1 to %d entries", FORM_COMMAND_ARGS);
	yaml_each (it, n) {
		if (r == 0)
			r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
		if (nargs == 0 && !form_path(it->text))
			return keys_error(k, it->line,
			        "'%.80s' is not the absolute path of a program", it->text);
		if (strlen(it->text) >= size - at)
			return keys_error(k, it->line, "'command' is longer than %zu bytes", size);
		memcpy(to + at, it->text, strlen(it->text) + 1);
		at += strlen(it->text) + 1;
		nargs++;
	}
	*ret_nargs = nargs;
	return r;
}
