#include "policy/config_yaml.h"
#include "base/ids.h"
#include "base/mem.h"
#include "policy/bucket_yaml.h"
#include "policy/listen_yaml.h"
#include "policy/log_yaml.h"
#include "policy/otlp_yaml.h"
#include "policy/policy_check.h"
#include "policy/prices_yaml.h"
#include "policy/shares_yaml.h"
#include "policy/state_yaml.h"
#include "policy/units.h"
#include "policy/command_yaml.h"
#include "policy/webhooks_yaml.h"

#include <string.h>

/* What the rows fill: the configuration first, so that their offsets are its own. */
struct build {
	struct daemon_config c;
	const struct idents *ids; /* borrowed: for config_parse */
};

/* A name of /etc/passwd, or a number (which is then the gid as well). */
static int user(const struct keys_ctx *k, const struct yaml_node *n, const struct idents *ids,
        uint32_t *ret_uid, uint32_t *ret_gid)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	uint64_t number = 0;
	if (units_plain(n->text, &number) == 0 && number < UINT32_MAX)
		*ret_uid = *ret_gid = (uint32_t)number;
	else if (idents_user(ids, n->text, ret_uid, ret_gid) < 0)
		return keys_error(
		        k, n->line, "'%s': /etc/passwd has no user '%.60s'", n->key, n->text);
	if (*ret_uid == 0 || *ret_gid == 0)
		return keys_error(
		        k, n->line, "'%s' cannot be root: this program gives it up", n->key);
	return 0;
}

static int set_supervisor(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return user(k, n, b->ids, &b->c.supervisor_uid, &b->c.supervisor_gid);
}

static int set_egress(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return user(k, n, b->ids, &b->c.egress_uid, &b->c.egress_gid);
}

static int set_listener(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return user(k, n, b->ids, &b->c.listener_uid, &b->c.listener_gid);
}

static int set_group(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	uint64_t number = 0;
	if (units_plain(n->text, &number) == 0 && number < UINT32_MAX)
		b->c.socket_gid = (uint32_t)number;
	else if (idents_group(b->ids, n->text, &b->c.socket_gid) < 0)
		return keys_error(
		        k, n->line, "'%s': /etc/group has no group '%.60s'", n->key, n->text);
	return 0;
}

/* Exactly one of these says where a secret is. */
static const char *const secret_sources[] = {[SECRET_FILE] = "file",
        [SECRET_ENV] = "env",
        [SECRET_CREDENTIAL] = "credential",
        [SECRET_COMMAND] = "command",
        NULL};

static int set_secret(const struct keys_ctx *k, const struct yaml_node *n, struct secret_def *s)
{
	if (!form_variable(n->key) || !str_copy(s->name, sizeof(s->name), n->key))
		return keys_error(k, n->key_line, "'%.60s' is not a secret's name (A_B1)", n->key);
	int r = keys_kind(k, n, YAML_MAP);
	if (r < 0)
		return r;
	if (n->count != 1)
		return keys_error(k, n->line,
		        "secret '%s': one of file, env, credential, command is expected", n->key);
	const struct yaml_node *where = n->first;
	uint32_t i = 0;
	while (secret_sources[i] && strcmp(secret_sources[i], where->key) != 0)
		i++;
	if (!secret_sources[i])
		return keys_unknown(k, where->key_line, "key", where->key, secret_sources);
	s->source = i;
	if (i == SECRET_COMMAND)
		return command_set(k, where, s->where, sizeof(s->where), &s->nargs);
	const struct key row = {.name = where->key,
	        .type = KEY_FIXED,
	        .size = sizeof(s->where),
	        .form = i == SECRET_FILE  ? form_path
	                : i == SECRET_ENV ? form_variable
	                                  : form_printable,
	        .want = i == SECRET_FILE  ? "an absolute path"
	                : i == SECRET_ENV ? "a variable's name"
	                                  : "a credential's name"};
	return keys_set(k, &row, where, s->where);
}

static int set_secrets(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	int r = keys_kind(k, n, YAML_MAP);
	if (r == 0 && n->count > POLICY_SECRETS)
		return keys_error(
		        k, n->line, "%zu secrets, %d are possible", n->count, POLICY_SECRETS);
	if (r < 0)
		return r;
	yaml_each (it, n) {
		r = set_secret(k, it, &b->c.secrets[b->c.nsecrets]);
		if (r < 0)
			return r;
		b->c.nsecrets++;
	}
	return 0;
}

/* Copies a list of texts into an array of fixed-size ones. */
static int fixed_list(const struct keys_ctx *k, const struct yaml_node *n, const struct key *row,
        char *to, size_t max, uint32_t *ret_n)
{
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && n->count > max)
		return keys_error(k, n->line, "'%s' has %zu entries, %zu are possible", n->key,
		        n->count, max);
	if (r < 0)
		return r;
	uint32_t count = 0;
	yaml_each (it, n) {
		r = keys_set(k, row, it, to + count * row->size);
		if (r < 0)
			return r;
		count++;
	}
	*ret_n = count;
	return 0;
}

static int set_exposed(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	static const struct key row = {.name = "entry",
	        .type = KEY_FIXED,
	        .size = NAME_MAX_LEN,
	        .form = form_variable,
	        .want = "a variable's name"};
	return fixed_list(k, n, &row, b->c.exposed[0], POLICY_EXPOSED, &b->c.nexposed);
}

static int set_harness_dirs(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	static const struct key row = {.name = "entry",
	        .type = KEY_FIXED,
	        .size = POLICY_PATH_MAX,
	        .form = form_path,
	        .want = "an absolute path"};
	memset(b->c.harness_dirs, 0, sizeof(b->c.harness_dirs));
	uint32_t n_dirs = 0;
	return fixed_list(k, n, &row, b->c.harness_dirs[0], ARRAY_LEN(b->c.harness_dirs), &n_dirs);
}

static const struct key users_rows[] = {
        {.name = "supervisor",
                .type = KEY_OTHER,
                .set = set_supervisor,
                .want = "user or number",
                .dflt = "agentbox-supervisor, else 536805377",
                .doc = "Whom agentbox-supervisor runs as."},
        {.name = "egress",
                .type = KEY_OTHER,
                .set = set_egress,
                .want = "user or number",
                .dflt = "agentbox-egress, else 536805378",
                .doc = "Whom agentbox-egress runs as."},
        {.name = "listener",
                .type = KEY_OTHER,
                .set = set_listener,
                .want = "user or number",
                .dflt = "agentbox-listener, else 536805384",
                .doc = "Whom agentbox-listener runs as."},
};
_Static_assert(ID_SUPERVISOR == 536805377 && ID_EGRESS == 536805378 && ID_LISTENER == 536805384,
        "the manual says otherwise");
static const struct key_table users_keys = KEY_TABLE(users_rows);

enum {
	MAX_RUNS = 16,
	MAX_QUEUED = 1000,
	POOL = 4,
	MAX_WARM = 8,
	PATIENCE_MS = 120000, /* a supervisor that is busy for seconds is no news */
	LEAST_MEMORY = 64 << 20,
	LEAST_CPU_MILLI = 100,
};

static int set_shares(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return shares_set(k, n, &b->c);
}

static int set_memory(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return shares_total(k, n, KEY_BYTES, LEAST_MEMORY, &b->c.runs_memory);
}

static int set_cpus(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return shares_total(k, n, KEY_CPUS, LEAST_CPU_MILLI, &b->c.runs_cpu);
}

static const struct key runs_rows[] = {
        {.name = "max",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, max_runs),
                .min = 1,
                .max = LIMIT_JAILS,
                .dflt = "16",
                .doc = "Runs at once."},
        {.name = "queue",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, max_queued),
                .max = LIMIT_QUEUED_RUNS,
                .dflt = "1000",
                .doc = "Runs that may wait; beyond, requests are refused with 429."},
        {.name = "queue_timeout",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, queue_ms),
                .min = 10,
                .none = true,
                .dflt = "none",
                .doc = "How long a run may wait for its session and a slot; then it ends as "
                       "`timeout`.  A harness may say less (limits.queueMs)."},
        {.name = "per_user",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, user_runs),
                .max = LIMIT_JAILS,
                .dflt = "0",
                .doc = "Runs of one user at once. 0: as many as of all."},
        {.name = "per_user_queue",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, user_queued),
                .max = LIMIT_QUEUED_RUNS,
                .dflt = "0",
                .doc = "Runs of one user that may wait. 0: as many as of all."},
        {.name = "memory",
                .type = KEY_OTHER,
                .set = set_memory,
                .want = "size (512M, 2G), host or none",
                .dflt = "none",
                .doc = "Memory that all runs together may be promised (limits.memory of policies, "
                       "narrowed by harnesses); the next one waits. `host`: what the host has."},
        {.name = "cpus",
                .type = KEY_OTHER,
                .set = set_cpus,
                .want = "processors (1.5), host or none",
                .dflt = "none",
                .doc = "Likewise processors (limits.cpus)."},
        {.name = "shares",
                .type = KEY_OTHER,
                .set = set_shares,
                .sub = &share_keys,
                .want = "list of maps",
                .doc = "What single tenants and users may have; at most 64."},
        {.name = "pool",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, pool),
                .max = 256,
                .dflt = "4",
                .doc = "Jails made ahead for each pooled policy."},
        {.name = "warm",
                .type = KEY_U32,
                .offset = offsetof(struct daemon_config, max_warm),
                .max = 1024,
                .dflt = "8",
                .doc = "Agents that may wait for another run of their session, of all harnesses "
                       "with `warm`; never more than `max` with those that run. 0: none."},
};
static const struct key_table runs_keys = KEY_TABLE(runs_rows);

static const struct key secret_rows[] = {
        {.name = "file",
                .type = KEY_TEXT,
                .want = "absolute path",
                .doc = "File of root's that holds the value."},
        {.name = "env",
                .type = KEY_TEXT,
                .want = "variable",
                .doc = "Variable of the daemon's environment."},
        {.name = "credential",
                .type = KEY_TEXT,
                .want = "name",
                .doc = "Credential of the service manager, $CREDENTIALS_DIRECTORY/name."},
        {.name = "command",
                .type = KEY_LIST,
                .want = "absolute path and arguments",
                .doc = "Program that prints the value; run at start and at each reload, without "
                       "privileges, for at most 5 seconds."},
};
static const struct key_table secret_keys = KEY_TABLE(secret_rows);

static int set_prices(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return prices_add(k, n, &b->c);
}

static int set_webhooks(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return webhooks_set(k, n, &b->c);
}

static int set_listen(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return listen_set(k, n, &b->c);
}

static int set_hooks(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct build *b = obj;
	return hooks_set(k, n, &b->c);
}

static const struct key config_rows[] = {
        {.name = "users", .type = KEY_MAP, .sub = &users_keys},
        {.name = "group",
                .type = KEY_OTHER,
                .set = set_group,
                .want = "group or number",
                .dflt = "agentbox, else root",
                .doc = "Who may open the control socket."},
        {.name = "listen",
                .type = KEY_OTHER,
                .set = set_listen,
                .sub = &listen_keys,
                .want = "list of maps",
                .doc = "Where the API is served over TCP, besides the control socket; at most 8."},
        {.name = "runs", .type = KEY_MAP, .sub = &runs_keys},
        {.name = "state", .type = KEY_MAP, .sub = &state_keys},
        {.name = "log", .type = KEY_MAP, .sub = &log_keys},
        {.name = "retention", .type = KEY_MAP, .sub = &retention_keys},
        {.name = "hang_timeout",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, patience_ms),
                .min = 1000,
                .none = true,
                .dflt = "2m",
                .doc = "How long the supervisor or egress may say nothing; then it is killed and "
                       "started again, and runs go on."},
        {.name = "sessions", .type = KEY_MAP, .sub = &sessions_keys},
        {.name = "default_policy",
                .type = KEY_FIXED,
                .offset = offsetof(struct daemon_config, default_policy),
                .size = NAME_MAX_LEN,
                .form = form_name,
                .want = "a policy's name",
                .dflt = "default",
                .doc = "Policy of harnesses and jails that name none."},
        {.name = "secrets",
                .type = KEY_OTHER,
                .set = set_secrets,
                .sub = &secret_keys,
                .want = "map of name to place",
                .doc = "Where secrets are that policies name; at most 32, one place each."},
        {.name = "prices",
                .type = KEY_OTHER,
                .set = set_prices,
                .sub = &price_keys,
                .want = "map of model to prices",
                .doc = "What models cost, by globs of their names, before the built-in table; the "
                       "first that matches counts."},
        {.name = "webhooks",
                .type = KEY_OTHER,
                .set = set_webhooks,
                .sub = &webhook_keys,
                .want = "list of maps",
                .doc = "Who is called when something happens in a run; at most 16, with `hooks`."},
        {.name = "hooks",
                .type = KEY_OTHER,
                .set = set_hooks,
                .sub = &hook_keys,
                .want = "list of maps",
                .doc = "Which command is run when something happens in a run."},
        {.name = "otlp",
                .type = KEY_MAP,
                .offset = offsetof(struct daemon_config, otlp),
                .sub = &otlp_keys},
        {.name = "artifacts",
                .type = KEY_MAP,
                .offset = offsetof(struct daemon_config, bucket),
                .sub = &artifacts_keys},
        {.name = "expose_env",
                .type = KEY_OTHER,
                .set = set_exposed,
                .want = "list of variables",
                .dflt = "none",
                .doc = "Variables of the daemon that a harness may ask for; at most 32."},
        {.name = "harness_dirs",
                .type = KEY_OTHER,
                .set = set_harness_dirs,
                .want = "list of absolute paths",
                .dflt = "harnesses/ beside this file",
                .doc = "Directories with harnesses besides the bundled ones; at most 4."},
};
const struct key_table config_keys = KEY_TABLE(config_rows);

static void defaults(const struct idents *ids, struct daemon_config *ret)
{
	*ret = (struct daemon_config){
	        .supervisor_uid = ID_SUPERVISOR,
	        .supervisor_gid = ID_SUPERVISOR,
	        .egress_uid = ID_EGRESS,
	        .egress_gid = ID_EGRESS,
	        .listener_uid = ID_LISTENER,
	        .listener_gid = ID_LISTENER,
	        .max_runs = MAX_RUNS,
	        .max_queued = MAX_QUEUED,
	        .pool = POOL,
	        .max_warm = MAX_WARM,
	        .patience_ms = PATIENCE_MS,
	        .default_policy = "default",
	};
	state_defaults(ret);
	otlp_defaults(&ret->otlp);
	bucket_defaults(&ret->bucket);
	/* A host may have given our names other numbers; where it knows none, those above stand. */
	(void)!idents_user(ids, "agentbox-supervisor", &ret->supervisor_uid, &ret->supervisor_gid);
	(void)!idents_user(ids, "agentbox-egress", &ret->egress_uid, &ret->egress_gid);
	(void)!idents_user(ids, "agentbox-listener", &ret->listener_uid, &ret->listener_gid);
	/* Without the group the socket stays root's: 0 is what the field holds already. */
	(void)!idents_group(ids, "agentbox", &ret->socket_gid);
}

int config_defaults(const struct idents *ids, struct daemon_config *ret, struct err *e)
{
	defaults(ids, ret);
	return prices_builtin(ret, e);
}

int config_parse(const struct keys_ctx *k, const struct idents *ids, const char *text, size_t n,
        struct daemon_config *ret)
{
	auto_yaml struct yaml_doc *doc = yaml_parse(k->file, 1, text, n, k->e);
	if (!doc)
		return -EINVAL;
	auto_free struct build *b = xnew(struct build);
	b->ids = ids;
	defaults(ids, &b->c);
	int r = keys_apply(k, &config_keys, yaml_root(doc), b);
	const struct yaml_node *otlp = yaml_get(yaml_root(doc), "otlp");
	if (r == 0 && otlp)
		r = otlp_fits(k, otlp, &b->c.otlp);
	if (r == 0)
		r = bucket_fits(k, yaml_get(yaml_root(doc), "artifacts"), &b->c.bucket);
	if (r == 0)
		r = prices_builtin(&b->c, k->e);
	if (r < 0)
		return r;
	r = daemon_config_check(&b->c, k->e);
	if (r < 0)
		return err_wrap(k->e, "%s:%d", k->file, 1);
	*ret = b->c;
	return 0;
}
