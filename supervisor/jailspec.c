#include "supervisor/jailspec.h"

#include "base/limits.h"
#include "base/mem.h"
#include "policy/limits_keys.h"
#include "proto/exec.h"
#include "supervisor/body.h"

#include <stdio.h>
#include <string.h>

/* ---- limits ---- */

/* The names of the API; types and bounds are a policy's.  Below the least a jail may not even come
 * up: PID 1 takes the program's stdio as descriptors of its own. */
static const struct {
	const char *name;
	size_t offset;
} limit_keys[] = {
        {"memory", offsetof(struct limits, memory_bytes)},
        {"pids", offsetof(struct limits, pids)},
        {"cpus", offsetof(struct limits, cpu_milli)},
        {"ioRead", offsetof(struct limits, io_read_bps)},
        {"ioWrite", offsetof(struct limits, io_write_bps)},
        {"disk", offsetof(struct limits, disk_bytes)},
        {"inodes", offsetof(struct limits, inodes)},
        {"nofile", offsetof(struct limits, nofile)},
        {"fileSize", offsetof(struct limits, file_bytes)},
        {"tmp", offsetof(struct limits, tmp_bytes)},
        {"shm", offsetof(struct limits, shm_bytes)},
        {"wall", offsetof(struct limits, wall_ms)},
};

static int read_limit(const char *name, const struct json *v, struct limits *to, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(limit_keys); i++) {
		if (strcmp(limit_keys[i].name, name) != 0)
			continue;
		uint64_t value;
		const char *text = json_text(v);
		if (!text)
			return err_set(e, -EINVAL,
			        "limits.%s: must be a text such as \"2G\", \"200\", \"1.5\" or "
			        "\"30s\"",
			        name);
		if (keys_number(limits_row(limit_keys[i].offset), text, &value, e) < 0)
			return err_wrap(e, "limits.%s", name);
		memcpy((char *)to + limit_keys[i].offset, &value, sizeof(value));
		return 0;
	}
	char names[160] = "";
	for (size_t i = 0; i < ARRAY_LEN(limit_keys); i++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, " %s", limit_keys[i].name);
	}
	return err_set(e, -EINVAL, "limits.%.64s: unknown (known:%s)", name, names);
}

/* ---- reading ---- */

static const struct body_key keys[] = {
        {"argv", BODY_ARRAY, true},
        {"env", BODY_OBJECT, false},
        {"cwd", BODY_STRING, false},
        {"tty", BODY_BOOL, false},
        {"rows", BODY_INTEGER, false},
        {"cols", BODY_INTEGER, false},
        /* a jail that is made for it */
        {"policy", BODY_STRING, false},
        {"snapshot", BODY_STRING, false}, /* of a session */
        /* a fresh jail only */
        {"agent", BODY_STRING, false},
        {"user", BODY_STRING, false},
        {"binds", BODY_ARRAY, false},
        {"limits", BODY_OBJECT, false},
};
enum { KEYS_OF_EXEC = 8 };

static int read_window(const struct json *body, const char *name, uint16_t *ret, struct err *e)
{
	int64_t v = json_int(body, name, 0);
	if (v < 0 || v > UINT16_MAX)
		return err_set(e, -EINVAL, "%s: must be 0 to %d", name, UINT16_MAX);
	*ret = (uint16_t)v;
	return 0;
}

/* What is said twice of one name would be taken once, and not the same one by everybody. */
static int check_once(const struct json *map, const char *path, struct err *e)
{
	for (const struct json *v = json_first(map); v; v = json_next(v))
		if (json_get(map, json_key(v)) != v)
			return err_set(e, -EINVAL, "%s.%.64s: given twice", path, json_key(v));
	return 0;
}

static int check_env(const struct json *env, struct err *e)
{
	if (check_once(env, "env", e) < 0)
		return e->code;
	for (const struct json *v = json_first(env); v; v = json_next(v)) {
		const char *name = json_key(v);
		if (!name[0] || strchr(name, '='))
			return err_set(e, -EINVAL, "env.%.64s: not a variable's name", name);
		if (!json_text(v))
			return err_set(e, -EINVAL, "env.%.64s: must be a string", name);
	}
	return 0;
}

static int read_fresh(const struct json *body, struct jailspec *j, struct err *e)
{
	const char *user = json_str(body, "user", "agent");
	j->agent = json_str(body, "agent", NULL);
	j->root = strcmp(user, "root") == 0;
	if (!j->root && strcmp(user, "agent") != 0)
		return err_set(e, -EINVAL, "user: '%.32s' is neither agent nor root", user);
	if (json_is_array(json_get(body, "binds"))) {
		j->binds = body_strings(json_get(body, "binds"), "binds", JAIL_BINDS, e);
		if (!j->binds)
			return e->code;
	}
	const struct json *limits = json_get(body, "limits");
	if (check_once(limits, "limits", e) < 0)
		return e->code;
	for (const struct json *v = json_first(limits); v; v = json_next(v))
		if (read_limit(json_key(v), v, &j->narrow, e) < 0)
			return e->code;
	return 0;
}

int jailspec_read(const struct json *body, bool fresh, struct jailspec *ret, struct err *e)
{
	if (body_check(body, "", keys, fresh ? ARRAY_LEN(keys) : KEYS_OF_EXEC, e) < 0)
		return e->code;
	ret->argv = body_strings(json_get(body, "argv"), "argv", LIMIT_EXEC_ARGS, e);
	if (!ret->argv)
		return e->code;
	if (!ret->argv[0] || !ret->argv[0][0])
		return err_set(e, -EINVAL, "argv: must name a program");
	ret->env = json_get(body, "env");
	ret->cwd = json_str(body, "cwd", NULL);
	if (ret->cwd && ret->cwd[0] != '/')
		return err_set(e, -EINVAL, "cwd: must be an absolute path");
	ret->tty = json_bool(body, "tty", false);
	ret->policy = json_str(body, "policy", NULL);
	ret->snapshot = json_str(body, "snapshot", NULL);
	if (ret->snapshot && (fresh || !name_valid(ret->snapshot)))
		return err_set(e, -EINVAL, "snapshot: '%.64s' %s", ret->snapshot,
		        fresh ? "is a session's to start from" : "is no snapshot's name");
	if (check_env(ret->env, e) < 0 || read_window(body, "rows", &ret->rows, e) < 0 ||
	        read_window(body, "cols", &ret->cols, e) < 0)
		return e->code;
	return read_fresh(body, ret, e);
}

void jailspec_done(struct jailspec *j)
{
	free(j->argv);
	free(j->binds);
}

/* ---- binds ---- */

/* Absolute, and nothing in it that a path walk would turn round: no empty part, "." or "..". */
static bool plain_path(const char *p)
{
	if (p[0] != '/')
		return false;
	while (*p == '/') {
		size_t n = strcspn(++p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

static bool lies_below(const char *path, const char *dir, const char **ret_rest)
{
	size_t n = strlen(dir);
	if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
		return false;
	*ret_rest = path[n] ? path + n + 1 : path + n;
	return true;
}

/* Splits "HOST:JAIL[:rw|:ro]" in place. */
static bool split(char *text, const char **host, const char **target, bool *writable)
{
	*host = strsep(&text, ":");
	*target = strsep(&text, ":");
	const char *mode = text ? text : "ro";
	*writable = strcmp(mode, "rw") == 0;
	return *target && (*writable || strcmp(mode, "ro") == 0);
}

static int find_source(
        const struct policy *p, const char *host, bool writable, struct jail_bind *b, struct err *e)
{
	bool read_only = false;
	for (uint32_t i = 0; i < p->nbindable; i++) {
		const char *rest;
		if (!lies_below(host, p->bindable[i].source, &rest))
			continue;
		if (writable && !p->bindable[i].writable) {
			read_only = true;
			continue;
		}
		b->index = i;
		b->writable = writable;
		return str_copy(b->below, sizeof(b->below), rest)
		               ? 0
		               : err_set(e, -EINVAL, "%.128s: too long", host);
	}
	if (read_only)
		return err_set(e, -EACCES, "policy %s gives %.128s read-only", p->name, host);
	return err_set(e, -EACCES, "%.128s is not under `bindable:` of policy %s", host, p->name);
}

static int read_bind(const char *text, const struct policy *p, struct jail_bind *b, struct err *e)
{
	auto_free char *copy = xstrdup(text);
	const char *host, *target;
	bool writable;
	if (!split(copy, &host, &target, &writable))
		return err_set(e, -EINVAL, "'%.128s' is not HOST:JAIL or HOST:JAIL:rw", text);
	if (!plain_path(host) || !plain_path(target))
		return err_set(e, -EINVAL,
		        "'%.128s': both paths must be absolute, without empty parts, . or ..",
		        text);
	if (!str_copy(b->target, sizeof(b->target), target))
		return err_set(e, -EINVAL, "%.128s: too long", target);
	return find_source(p, host, writable, b, e);
}

int jailspec_narrow(const struct jailspec *j, const struct policy *p, struct jail_make *m,
        struct limits *ret, struct err *e)
{
	if (limits_narrow(&p->limits, &j->narrow, ret, e) < 0)
		return err_wrap(e, "policy %s", p->name);
	m->narrow = j->narrow;
	for (size_t i = 0; j->binds && j->binds[i]; i++) {
		if (read_bind(j->binds[i], p, &m->binds[i], e) < 0)
			return err_wrap(e, "binds[%zu]", i);
		m->nbinds++;
	}
	return 0;
}

/* ---- exec ---- */

static size_t count(const struct json *env)
{
	size_t n = 0;
	for (const struct json *v = json_first(env); v; v = json_next(v))
		n++;
	return n;
}

/* What the client says of the variable counts. */
static size_t add_env(const struct jailspec *j, const char *pair, char **env, size_t n)
{
	char name[128];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(pair, "="), pair);
	if (!json_get(j->env, name))
		env[n++] = xstrdup(pair);
	return n;
}

#define JAILSPEC_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

int jailspec_pack(const struct jailspec *j, const struct policy *p, struct err *e)
{
	static const char *const none[] = {NULL};
	const char *const *trust = p ? policy_trust_env(p) : none;
	const char *ours[] = {
	        j->agent ? "PATH=/opt/agent/bin:" JAILSPEC_PATH : "PATH=" JAILSPEC_PATH,
	        j->root ? "HOME=/root" : "HOME=/home/agent",
	        j->root ? "USER=root" : "USER=agent",
	        "LANG=C.UTF-8",
	        j->tty ? "TERM=xterm-256color" : "TERM=dumb",
	        "TMPDIR=/tmp",
	};
	size_t nours = ARRAY_LEN(ours), n = 0, ntrust = 0, nagent = 0;
	while (trust[ntrust])
		ntrust++;
	while (j->agent_env && j->agent_env[nagent])
		nagent++;
	char **env = xcalloc(nours + ntrust + nagent + count(j->env) + 1, sizeof(*env));
	for (size_t i = 0; i < nours; i++)
		n = add_env(j, ours[i], env, n);
	for (size_t i = 0; i < ntrust; i++)
		n = add_env(j, trust[i], env, n);
	for (size_t i = 0; i < nagent; i++)
		n = add_env(j, j->agent_env[i], env, n);
	for (const struct json *v = json_first(j->env); v; v = json_next(v))
		env[n++] = xasprintf("%s=%s", json_key(v), json_text(v));
	struct exec_spec spec = {
	        .argv = j->argv,
	        .env = (const char *const *)(const void *)env,
	        .cwd = j->cwd ? j->cwd : "/workspace",
	};
	int fd = exec_pack(&spec, e);
	for (size_t i = 0; i < n; i++)
		free(env[i]);
	free(env);
	return fd;
}
