#include "policy/fits.h"
#include "base/mem.h"
#include "drivers/rules.h"

#include <string.h>

void fit_done(struct fit *f)
{
	free(f->mcp);
	memset(f, 0, sizeof(*f));
}

/* ---- the driver's view ---- */

static const char *const *texts(char **list)
{
	return (const char *const *)list;
}

static struct driver_mcp *mcp_of(const struct harness *h)
{
	struct driver_mcp *m = h->nmcp ? xcalloc(h->nmcp, sizeof(*m)) : NULL;
	for (size_t i = 0; i < h->nmcp; i++)
		m[i] = (struct driver_mcp){
		        .name = h->mcp[i].name,
		        .command = texts(h->mcp[i].command),
		        .env = texts(h->mcp[i].env),
		        .url = h->mcp[i].url,
		        .headers = texts(h->mcp[i].headers),
		};
	return m;
}

static const enum driver_permissions permissions[] = {
        [HARNESS_AUTO] = PERMISSIONS_AUTO,
        [HARNESS_ASK] = PERMISSIONS_ASK,
        [HARNESS_DENY] = PERMISSIONS_DENY,
};

static struct driver_spec spec_of(
        const struct harness *h, const struct agent *a, const struct driver_mcp *mcp)
{
	return (struct driver_spec){
	        .prompt = "",
	        /* Beside a command the text is for people. */
	        .system_prompt = a->program && h->system_prompt[0] ? h->system_prompt : NULL,
	        .model = h->model,
	        .tools_allow = texts(h->tools_allow),
	        .tools_deny = texts(h->tools_deny),
	        .mcp = mcp,
	        .nmcp = h->nmcp,
	        .max_turns = h->max_turns,
	        .permissions = permissions[h->permissions],
	        .command = texts(h->command),
	        .program = a->program,
	        .args = texts(a->args),
	        .model_flag = a->model_flag,
	        .instructions = a->instructions,
	        .mode = a->mode,
	        .ask_mode = a->ask_mode,
	        .auth_method = a->auth_method,
	        .failure_text = texts(a->failure_text),
	        .acp_files = a->acp_files,
	        .acp_terminals = a->acp_terminals,
	        .usage_sums = a->usage_sums,
	        .stays = h->warm_idle_ms > 0,
	        .mcp_flag = a->mcp_flag,
	        .mcp_dollar = a->mcp_dollar,
	};
}

/* ---- what is refused ---- */

static int line_of_server(const struct harness *h, bool http)
{
	for (size_t i = 0; i < h->nmcp; i++)
		if ((h->mcp[i].url != NULL) == http)
			return h->mcp[i].line;
	return 0;
}

int fits_line(const struct harness *h, enum ability a)
{
	const struct harness_lines *l = &h->lines;
	switch (a) {
	case ABILITY_ASK:
	case ABILITY_DENY:
		return l->permissions;
	case ABILITY_MODEL:
		return l->model;
	case ABILITY_TOOLS_ALLOW:
		return l->tools_allow;
	case ABILITY_TOOLS_DENY:
		return l->tools_deny;
	case ABILITY_TOOL_PATTERNS:
		return rules_any_pattern(texts(h->tools_allow)) ? l->tools_allow : l->tools_deny;
	case ABILITY_MCP_STDIO:
	case ABILITY_MCP_HTTP:
		return line_of_server(h, a == ABILITY_MCP_HTTP);
	case ABILITY_MAX_TURNS:
		return l->max_turns;
	case ABILITY_WARM:
		return l->warm;
	case ABILITY_RESUME:
	case ABILITY_INPUT:
	case ABILITY_INTERRUPT:
	case ABILITY_QUESTIONS:
	case ABILITY_SYSTEM_PROMPT:
	case ABILITY_THINKING:
	case ABILITY_PLAN:
	case ABILITY_COST:
	case ABILITY_USAGE:
	case ABILITY_COUNT:
		break;
	}
	return 1;
}

/* "use an agent that can (claude, pi), or leave it out" */
static void remedy(struct buf *to, enum ability a, const struct agent *const *others, size_t n)
{
	enum { NAMED = 4 };
	size_t named = 0;
	for (size_t i = 0; i < n && named < NAMED; i++) {
		const struct driver *d = driver_find(others[i]->driver);
		if (!d || !ability_in(agent_can(others[i], d), a))
			continue;
		(void)buf_printf(
		        to, "%s%.24s", named ? ", " : "use an agent that can (", others[i]->name);
		named++;
	}
	(void)buf_puts(to, named ? "), or leave it out" : "leave it out");
}

static int refuse(const struct harness *h, const struct agent *agent, enum ability a,
        const struct agent *const *others, size_t nothers, struct err *e)
{
	auto_free char *where = xasprintf("%.80s:%d: ", h->file, fits_line(h, a));
	auto_buf struct buf b = BUF_INIT(256);
	remedy(&b, a, others, nothers);
	return ability_refuse(e, where, agent->name, a, b.p ? b.p : "leave it out");
}

/* The supervisor does these itself. */
static void take_out(struct driver_spec *spec, uint32_t enforced)
{
	if (ability_in(enforced, ABILITY_TOOLS_ALLOW))
		spec->tools_allow = NULL;
	if (ability_in(enforced, ABILITY_TOOLS_DENY))
		spec->tools_deny = NULL;
	if (ability_in(enforced, ABILITY_MAX_TURNS))
		spec->max_turns = 0;
}

int fits(const struct harness *h, const struct agent *a, const struct agent *const *others,
        size_t nothers, struct fit *ret, struct err *e)
{
	struct fit f = {.driver = driver_find(a->driver)};
	if (!f.driver)
		return err_set(e, -ENOEXEC,
		        "agent '%s' names the driver '%s', which does not exist", a->name,
		        a->driver);
	f.can = agent_can(a, f.driver);
	f.mcp = mcp_of(h);
	f.spec = spec_of(h, a, f.mcp);
	uint32_t missing = driver_wants(&f.spec) & ~f.can;
	int r = 0;
	for (enum ability x = 0; r == 0 && x < ABILITY_COUNT; x++)
		if (ability_in(missing, x) && !ability_enforced(x))
			r = refuse(h, a, x, others, nothers, e);
	f.enforced = missing;
	take_out(&f.spec, missing);
	if (r == 0)
		r = f.driver->check(&f.spec, e) < 0 ? err_wrap(e, "%.80s", h->file) : 0;
	if (r < 0) {
		fit_done(&f);
		return r;
	}
	*ret = f;
	return 0;
}
