#include "supervisor/harness_json.h"

static void show_params(struct jw *w, const struct harness *x)
{
	jw_open(w, "params", '[');
	for (size_t i = 0; i < x->nparams; i++) {
		const struct harness_param *p = &x->params[i];
		jw_open(w, NULL, '{');
		jw_str(w, "name", p->name);
		jw_bool(w, "required", p->required);
		jw_str(w, "default", p->dflt);
		if (p->choices)
			jw_texts(w, "enum", p->choices);
		jw_str(w, "pattern", p->pattern);
		jw_str(w, "description", p->description);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

static void show_steps(struct jw *w, const struct harness *x)
{
	jw_open(w, "pipeline", '[');
	for (size_t i = 0; i < x->nsteps; i++) {
		const struct harness_step *s = &x->steps[i];
		jw_open(w, NULL, '{');
		jw_str(w, "harness", s->harness);
		jw_str(w, "prompt", s->prompt);
		jw_bool(w, "approve", s->approve);
		if (s->approve)
			jw_int(w, "timeoutMs", (int64_t)s->timeout_ms);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

void harness_json(struct jw *w, const struct harness *x)
{
	if (x->nparams)
		show_params(w, x);
	if (x->nsteps)
		show_steps(w, x);
	jw_str(w, "systemPrompt", x->system_prompt);
	jw_texts(w, "toolsAllow", x->tools_allow);
	jw_texts(w, "toolsDeny", x->tools_deny);
	jw_texts(w, "egressOnly", x->egress_only);
	jw_texts(w, "readOnly", x->read_only);
	jw_texts(w, "secrets", x->secrets);
	jw_texts(w, "verify", x->verify);
	jw_texts(w, "command", x->command);
	jw_str(w, "repo", x->repo);
	jw_open(w, "seed", '[');
	for (size_t i = 0; i < x->nseed; i++)
		jw_str(w, NULL, x->seed[i].name);
	jw_close(w, ']');
	jw_open(w, "mcp", '[');
	for (size_t i = 0; i < x->nmcp; i++)
		jw_str(w, NULL, x->mcp[i].name);
	jw_close(w, ']');
	if (x->max_turns)
		jw_int(w, "maxTurns", x->max_turns);
}
