/* Agents: facts about products, what each can, and which version of it is installed here. */
#include "supervisor/api.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/driver.h"
#include "policy/forms.h"
#include "proto/children.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"

#include <string.h>

enum {
	LIST_MAX = 4 << 20,
	VERSION_MAX = 128, /* of one that is installed; a pinned one has a dozen bytes */
};

/* The version that its installer wrote beside it, owned; NULL: it is not installed. */
static char *installed(const struct agent *a)
{
	if (!a->installed_files)
		return NULL;
	auto_free char *path = xasprintf("%s/VERSION", a->name);
	auto_free char *text = NULL;
	size_t n = 0;
	struct err e;
	if (file_slurp_plain_at(CHILD_AGENTS, path, VERSION_MAX, &text, &n, &e) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return form_printable(text) ? take(text) : NULL;
}

static void abilities(struct jw *w, uint32_t can)
{
	jw_open(w, "abilities", '{');
	for (enum ability a = 0; a < ABILITY_COUNT; a++)
		jw_str(w, ability_name(a), ability_word(can, a));
	jw_close(w, '}');
}

static void facts(struct jw *w, const struct agent *a)
{
	const struct driver *d = driver_find(a->driver);
	auto_free char *version = installed(a);
	jw_str(w, "description", a->description);
	jw_str(w, "driver", a->driver);
	jw_str(w, "version", a->version);
	if (version)
		jw_str(w, "installed", version);
	else
		jw_null(w, "installed");
	jw_bool(w, "installable", a->installed_files);
	jw_str(w, "unavailable", a->unavailable);
	jw_str(w, "untried", a->untried);
	jw_str(w, "program", a->program);
	jw_texts(w, "probe", a->probe);
	jw_texts(w, "inject", a->inject);
	if (d)
		abilities(w, agent_can(a, d));
}

/* What the names mean, once for all agents. */
static void legend(struct jw *w)
{
	jw_open(w, "abilities", '[');
	for (enum ability a = 0; a < ABILITY_COUNT; a++) {
		jw_open(w, NULL, '{');
		jw_str(w, "name", ability_name(a));
		jw_str(w, "what", ability_what(a));
		jw_str(w, "asked", ability_key(a));
		jw_str(w, "enforced", ability_enforced(a));
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

static void show(struct jw *w, const char *dir, const struct agent *a, const char *error)
{
	jw_open(w, NULL, '{');
	jw_str(w, "name", a ? a->name : dir);
	if (a)
		facts(w, a);
	if (error || !a || driver_find(a->driver)) {
		jw_str(w, "error", error);
	} else {
		auto_free char *text = xasprintf("there is no driver '%s'", a->driver);
		jw_str(w, "error", text);
	}
	jw_close(w, '}');
}

static void list_one(void *ctx, const char *dir, const struct agent *a, const char *error)
{
	show(ctx, dir, a, error);
}

void api_agent_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	struct jw w = JW_INIT(&b);
	harnesses_catch_up(d->harnesses);
	jw_open(&w, NULL, '{');
	jw_open(&w, "agents", '[');
	harnesses_agents(d->harnesses, list_one, &w);
	jw_close(&w, ']');
	legend(&w);
	jw_close(&w, '}');
	if (b.failed)
		problem_reply(r, PROBLEM_INTERNAL, NULL, "the list of agents is too long");
	else
		http_reply(r, 200, "application/json", &b);
}

struct wanted {
	const char *name;
	struct jw *w;
	bool found;
};

static void show_wanted(void *ctx, const char *dir, const struct agent *a, const char *error)
{
	struct wanted *x = ctx;
	if (x->found || strcmp(a ? a->name : dir, x->name) != 0)
		return;
	x->found = true;
	show(x->w, dir, a, error);
}

void api_agent_show(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT((size_t)8 * LIMIT_YAML_FILE);
	struct jw w = JW_INIT(&b);
	struct wanted x = {.name = http_param(r, 0), .w = &w};
	struct err e;
	const struct agent *unused;
	harnesses_catch_up(d->harnesses);
	harnesses_agents(d->harnesses, show_wanted, &x);
	if (x.found)
		http_reply(r, 200, "application/json", &b);
	else if (harnesses_agent(d->harnesses, x.name, &unused, &e) < 0) /* words the refusal */
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
}
