#include "policy/groups.h"
#include "policy/builtin.h"

struct yaml_doc *groups_parse(struct err *e)
{
	const struct builtin *b = builtin_groups();
	return yaml_parse("built-in/groups.yaml", 1, b->text, (size_t)(b->end - b->text), e);
}

const struct yaml_node *groups_allow(const struct yaml_doc *d, const char *name)
{
	return yaml_get(yaml_get(yaml_root(d), name), "allow");
}
