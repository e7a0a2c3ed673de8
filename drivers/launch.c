#include "drivers/launch.h"
#include "base/mem.h"

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
