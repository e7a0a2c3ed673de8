#include "policy/harness.h"
#include "base/mem.h"
#include "base/neutral.h"
#include "policy/harness_keys.h"
#include "policy/harness_pairs.h"
#include "policy/harness_params.h"
#include "policy/harness_steps.h"
#include "policy/limits_keys.h"
#include "policy/outlets.h"
#include "policy/wishes.h"

#include <string.h>

/* ---- life ---- */

static void mcp_free(struct harness_mcp *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(m[i].name);
		list_free(m[i].command);
		list_free(m[i].env);
		free(m[i].url);
		list_free(m[i].headers);
	}
	free(m);
}

static void rules_free(struct harness_rule *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(r[i].deny);
	free(r);
}

static void harness_clear(struct harness *h)
{
	char *texts[] = {h->name, h->file, h->description, h->backend, h->model, h->policy,
	        h->system_prompt, h->source, h->snapshot, h->template_dir, h->repo, h->git_name,
	        h->git_email, h->image};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	char **lists[] = {h->tools_allow, h->tools_deny, h->artifacts, h->egress_only, h->read_only,
	        h->secrets, h->webhooks, h->env_names, h->verify, h->command};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		list_free(lists[i]);
	mcp_free(h->mcp, h->nmcp);
	pairs_free(h->seed, h->nseed);
	pairs_free(h->env, h->nenv);
	rules_free(h->guard_input, h->nguard_input);
	rules_free(h->guard_output, h->nguard_output);
	harness_params_free(h->params, h->nparams);
	harness_steps_free(h->steps, h->nsteps);
}

struct harness *harness_ref(struct harness *h)
{
	h->refs++;
	return h;
}

void harness_unref(struct harness *h)
{
	if (!h || --h->refs > 0)
		return;
	harness_clear(h);
	free(h);
}

/* ---- front matter ---- */

struct parts {
	const char *yaml, *body; /* in the text that was split */
	size_t yaml_len, body_len;
};

/* Length of the line at p without its newline; `---` and trailing blanks make a fence. */
static bool is_fence(const char *p, size_t n)
{
	if (n < 3 || memcmp(p, "---", 3) != 0)
		return false;
	for (size_t i = 3; i < n; i++)
		if (p[i] != ' ' && p[i] != '\t')
			return false;
	return true;
}

static const char *line_end(const char *p, const char *end)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));
	return nl ? nl : end;
}

static void trim(struct parts *s)
{
	static const char blanks[] = " \t\n";
	while (s->body_len && strchr(blanks, s->body[0])) {
		s->body++;
		s->body_len--;
	}
	while (s->body_len && strchr(blanks, s->body[s->body_len - 1]))
		s->body_len--;
}

static int split(const struct keys_ctx *k, const char *p, size_t n, struct parts *ret)
{
	const char *end = p + n;
	const char *nl = line_end(p, end);
	if (!is_fence(p, (size_t)(nl - p)) || nl == end)
		return keys_error(k, 1, "a harness begins with a line '---' and its keys");
	struct parts s = {.yaml = nl + 1};
	for (const char *at = s.yaml; at < end; at = nl + 1) {
		nl = line_end(at, end);
		if (is_fence(at, (size_t)(nl - at))) {
			s.yaml_len = (size_t)(at - s.yaml);
			s.body = nl < end ? nl + 1 : end;
			s.body_len = (size_t)(end - s.body);
			trim(&s);
			*ret = s;
			return 0;
		}
		if (nl == end)
			break;
	}
	return keys_error(k, 1, "the keys that begin here have no line '---' after them");
}

/* A copy without carriage returns before newlines and without a byte order mark. */
static char *plain_text(const char *text, size_t n, size_t *ret_n)
{
	char *copy = xcalloc(n + 1, 1);
	size_t len = 0;
	size_t i = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	for (; i < n; i++)
		if (text[i] != '\r' || (i + 1 < n && text[i + 1] != '\n'))
			copy[len++] = text[i];
	*ret_n = len;
	return copy;
}

/* ---- what the rows cannot say ---- */

static void name_by_file(struct harness *h, const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t n = strlen(base);
	if (n > 3 && strcmp(base + n - 3, ".md") == 0)
		n -= 3;
	h->name = xstrndup(base, n);
}

static int line_of(const struct yaml_node *root, const char *dotted)
{
	const struct yaml_node *n = yaml_path(root, dotted);
	return n ? n->key_line : 0;
}

/* Whose names are chosen elsewhere take none of root's. */
static int name_by_pack(const struct keys_ctx *k, const struct yaml_node *root, struct harness *h)
{
	auto_free char *pack = pack_of_file(k->file);
	if (!pack)
		return 0;
	if (h->nsteps)
		return keys_error(k, line_of(root, "pipeline"),
		        "a pack has no pipelines: root's own may name its harnesses");
	char *name = xasprintf("%s.%s", pack, h->name);
	free(h->name);
	h->name = name;
	return 0;
}

static void merge_limits(struct limits *into, const struct limits *also)
{
	uint64_t a[sizeof(*into) / sizeof(uint64_t)], b[ARRAY_LEN(a)];
	memcpy(a, into, sizeof(a));
	memcpy(b, also, sizeof(b));
	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		if (b[i] && (!a[i] || b[i] < a[i]))
			a[i] = b[i];
	memcpy(into, a, sizeof(a));
}

/* Both tighten the policy, and narrow is the one that may not widen: it cannot be the looser. */
static int fit_narrow(
        const struct keys_ctx *k, const struct yaml_node *root, const struct harness_build *b)
{
	const struct yaml_node *limits = yaml_get(root, "limits");
	const struct yaml_node *narrow = yaml_path(root, "narrow.limits");
	struct err why;
	struct outlets reach;
	if (outlets_make(b->h.egress_only, b->h.secrets, &reach, &why) < 0)
		return keys_error(k, 1, "%s", why.text);
	if (!limits || !narrow)
		return 0;
	yaml_each (n, narrow) {
		const struct key *row = limits_named(n->key);
		if (!row || row->sub)
			continue;
		uint64_t asked, given;
		memcpy(&asked, (const char *)&b->also + row->offset, sizeof(asked));
		memcpy(&given, (const char *)&b->h.narrow + row->offset, sizeof(given));
		if (given && asked > given)
			return keys_error(k, n->line,
			        "narrow.limits.%s: %.40s is wider than what 'limits' says", n->key,
			        n->text);
	}
	return 0;
}

static int fit_command(
        const struct keys_ctx *k, const struct yaml_node *root, struct harness_build *b)
{
	struct harness *h = &b->h;
	const struct yaml_node *command = yaml_get(root, "command");
	if (h->nsteps) {
		h->backend = xstrdup(HARNESS_PIPELINE);
		return 0;
	}
	bool exec = strcmp(h->backend, "exec") == 0;
	if (b->driver_command && !exec)
		return keys_error(k, b->driver_command_line,
		        "'driverOptions.command' cannot be honoured: root installs the program of "
		        "backend '%.40s'",
		        h->backend);
	if (b->driver_command && h->command)
		return keys_error(k, b->driver_command_line,
		        "'driverOptions.command' and 'command' are one key");
	if (b->driver_command && b->driver_command[0]) {
		keys_note(k, b->driver_command_line,
		        "'driverOptions.command' is called 'command' here");
		h->command = take(b->driver_command);
	}
	if (exec && !h->command)
		return keys_error(
		        k, yaml_get(root, "backend")->line, "backend exec needs a 'command'");
	if (!exec && command)
		return keys_error(k, command->key_line,
		        "'command' belongs to backend exec, not '%.40s'", h->backend);
	return 0;
}

/* Is the key there and does it ask for something?  The empty and the default do not. */
static bool asks(const struct harness *h, enum harness_later which, const struct yaml_node *n)
{
	switch (which) {
	case HARNESS_LATER_REUSE:
		return h->reuse == HARNESS_REUSE_SESSION;
	case HARNESS_LATER_IMAGE:
	case HARNESS_LATER_PROVIDER:
	case HARNESS_LATER_COUNT:
		break;
	}
	return n->kind == YAML_SCALAR || n->count > 0;
}

static const struct {
	const char *key, *other, *why;
} laters[HARNESS_LATER_COUNT] = {
#define HARNESS_LATER_ROW(sym, key, other, why) [HARNESS_LATER_##sym] = {key, other, why},
        HARNESS_LATERS(HARNESS_LATER_ROW)
#undef HARNESS_LATER_ROW
};

static void find_laters(struct harness *h, const struct yaml_node *root)
{
	for (int i = 0; i < HARNESS_LATER_COUNT; i++) {
		const struct yaml_node *n = yaml_path(root, laters[i].key);
		if (!n && laters[i].other)
			n = yaml_path(root, laters[i].other);
		if (n && asks(h, (enum harness_later)i, n))
			h->later_line[i] = n->key_line;
	}
}

static void find_lines(struct harness *h, const struct yaml_node *root)
{
	h->lines = (struct harness_lines){
	        .permissions = line_of(root, "permissions"),
	        .model = line_of(root, "model"),
	        .tools_allow = line_of(root, "tools.allow"),
	        .tools_deny = line_of(root, "tools.deny"),
	        .max_turns = line_of(root, "limits.maxTurns"),
	        .warm = line_of(root, "warm"),
	        .policy = line_of(root, "policy"),
	        .secrets = line_of(root, "secrets"),
	        .env = line_of(root, "env"),
	        .webhooks = line_of(root, "webhooks"),
	        .template = line_of(root, "workspace.template"),
	        .snapshot = line_of(root, "workspace.snapshot"),
	        .repo = line_of(root, "workspace.repo"),
	        .user = line_of(root, "sandbox.user"),
	};
}

int harness_unsupported(const struct harness *h, harness_note_fn *note, void *ctx, struct err *e)
{
	auto_buf struct buf all = BUF_INIT(4096);
	for (int i = 0; i < HARNESS_LATER_COUNT; i++) {
		if (!h->later_line[i])
			continue;
		auto_free char *text = xasprintf(
		        "'%s' is not executed by this version: %s", laters[i].key, laters[i].why);
		if (note)
			note(ctx, h->file, h->later_line[i], text);
		buf_printf(&all, "%s'%s' (line %d)", all.len ? ", " : "", laters[i].key,
		        h->later_line[i]);
	}
	if (all.len == 0)
		return 0;
	return err_set(e, -ENOEXEC, "%s: this version does not execute %s", h->file, all.p);
}

/* A command holds no conversation. */
static int fit_resume(
        const struct keys_ctx *k, const struct yaml_node *root, const struct harness *h)
{
	const struct yaml_node *n = yaml_path(root, "resume");
	if (!n || h->resume != HARNESS_RESUME_NATIVE || strcmp(h->backend, "exec") != 0)
		return 0;
	return keys_error(k, n->line,
	        "'resume: native': backend exec holds no conversation of its own; leave it out");
}

static int fit_warm(const struct keys_ctx *k, const struct yaml_node *root, const struct harness *h)
{
	bool anew = h->resume == HARNESS_RESUME_NONE || h->resume == HARNESS_RESUME_TRANSCRIPT;
	if (h->warm_ahead && strstr(h->system_prompt, "{{"))
		return keys_error(k, yaml_path(root, "warm")->line,
		        "'warm.ahead': the text has parameters, which are not known before a run");
	if (h->warm_idle_ms && !h->warm_ahead && anew)
		return keys_error(k, yaml_path(root, "warm")->line,
		        "'warm' keeps an agent for the conversation's next run, and with this "
		        "'resume' each run begins a new one; leave one of them out");
	return 0;
}

/* A file of the workspace is the agent's to change. */
static int fit_verify(
        const struct keys_ctx *k, const struct yaml_node *root, const struct harness *h)
{
	const struct yaml_node *n = yaml_path(root, "verify.command");
	if (!n)
		return 0;
	if (!h->verify[0][0])
		return keys_error(k, n->line, "'verify.command' must name a program");
	if (h->warm_idle_ms)
		return keys_error(k, yaml_path(root, "warm")->line,
		        "'warm' keeps an agent alive, and what 'verify' checks must be the work of "
		        "one that is gone; leave one of them out");
	if (strchr(h->verify[0], '/') && h->verify[0][0] != '/')
		keys_note(k, n->line,
		        "'%.60s' is a file of the workspace: the agent can change what checks it",
		        h->verify[0]);
	return 0;
}

/* ---- parsing ---- */

static int fill(const struct keys_ctx *k, const struct parts *s, struct harness_build *b)
{
	auto_yaml struct yaml_doc *doc = yaml_parse(k->file, 2, s->yaml, s->yaml_len, k->e);
	if (!doc)
		return -EINVAL;
	const struct yaml_node *root = yaml_root(doc);
	struct harness *h = &b->h;
	int r = keys_apply(k, &harness_keys, root, b);
	if (r < 0)
		return r;
	if (!h->name)
		name_by_file(h, k->file);
	h->system_prompt = xstrndup(s->body, s->body_len);
	r = name_by_pack(k, root, h);
	if (r < 0)
		return r;
	r = harness_fit_steps(k, root, h);
	if (r == 0)
		r = fit_command(k, root, b);
	if (r == 0)
		r = fit_narrow(k, root, b);
	if (r == 0 && !form_name(h->name))
		return keys_error(
		        k, 1, "'%.60s', from the file's name, is not a name; give 'name'", h->name);
	if (r == 0)
		r = fit_warm(k, root, h);
	if (r == 0)
		r = fit_resume(k, root, h);
	if (r == 0)
		r = fit_verify(k, root, h);
	if (r < 0)
		return r;
	harness_params_note(k, h);
	merge_limits(&h->narrow, &b->also);
	find_laters(h, root);
	find_lines(h, root);
	return 0;
}

/* Of what is none agents would get something else, and it could not be told. */
static int check_text(const struct keys_ctx *k, const char *text, size_t n)
{
	const char *end = text + n, *next;
	int line = 1;
	for (const char *p = text; p < end; p = next, line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		next = nl ? nl + 1 : end;
		if (!neutral_is_text(p, (size_t)(next - p)))
			return keys_error(k, line, "this line is not UTF-8");
	}
	return 0;
}

struct harness *harness_parse(const char *file, const char *text, size_t n, harness_note_fn *note,
        void *ctx, struct err *e)
{
	const struct keys_ctx k = {.file = file, .e = e, .note = note, .note_ctx = ctx};
	if (memchr(text, '\0', n)) {
		(void)keys_error(&k, 1, "a NUL character is not accepted");
		return NULL;
	}
	size_t len = 0;
	auto_free char *copy = plain_text(text, n, &len);
	struct parts s = {0};
	if (check_text(&k, copy, len) < 0 || split(&k, copy, len, &s) < 0)
		return NULL;
	struct harness_build b = {.h = {.refs = 1,
	                                  .file = xstrdup(file),
	                                  .source = xstrndup(text, n),
	                                  .timeout_ms = 600000,
	                                  .max_attempts = 1,
	                                  .ask_timeout_ms = 300000,
	                                  .git_timeout_ms = 120000,
	                                  .warm_memory = UINT64_C(1) << 30,
	                                  .retry_on = 1 | 2, /* failed, timeout */
	                                  .verify_required = true,
	                                  .verify_timeout_ms = 120000}};
	int r = fill(&k, &s, &b);
	list_free(b.driver_command);
	if (r < 0) {
		harness_clear(&b.h);
		return NULL;
	}
	struct harness *h = xnew(struct harness);
	*h = b.h;
	return h;
}
