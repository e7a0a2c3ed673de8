#include "policy/policy_yaml.h"
#include "base/mem.h"
#include "policy/arch.h"
#include "policy/bpf.h"
#include "policy/builtin.h"
#include "policy/egress_yaml.h"
#include "policy/layers.h"
#include "policy/limits_keys.h"
#include "policy/policy_check.h"

#include <stdio.h>
#include <string.h>

/* ---- filesystem ---- */

static const struct key mount_rows[] = {
        {.name = "source",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_mount, source),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_path,
                .want = "an absolute path without '.', '..' or a slash at its end",
                .doc = "Directory or file of the host."},
        {.name = "target",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_mount, target),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_path,
                .want = "an absolute path without '.', '..' or a slash at its end",
                .doc = "Where jails see it."},
        {.name = "writable",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = offsetof(struct policy_mount, writable),
                .dflt = "false",
                .doc = "Jails may write to it, as far as its owner and modes let them."},
        {.name = "optional",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = offsetof(struct policy_mount, optional),
                .dflt = "false",
                .doc = "A missing source is skipped instead of refusing the jail."},
};
static const struct key_table mount_keys = KEY_TABLE(mount_rows);

static int set_mounts(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_counted(k, n, POLICY_MOUNTS);
	if (r < 0)
		return r;
	memset(p->mounts, 0, sizeof(p->mounts));
	p->nmounts = 0;
	yaml_each (it, n) {
		struct policy_mount *m = &p->mounts[p->nmounts];
		r = keys_apply(k, &mount_keys, it, m);
		if (r < 0)
			return r;
		const char *why = mount_source_refusal(m->source);
		if (why)
			return keys_error(
			        k, yaml_get(it, "source")->line, "source %s: %s", m->source, why);
		why = mount_target_refusal(m->target);
		if (why)
			return keys_error(
			        k, yaml_get(it, "target")->line, "target %s: %s", m->target, why);
		for (uint32_t i = 0; i < p->nmounts; i++)
			if (strcmp(p->mounts[i].target, m->target) == 0)
				return keys_error(
				        k, it->line, "target %s is mounted twice", m->target);
		p->nmounts++;
	}
	return 0;
}

static const struct key bindable_rows[] = {
        {.name = "source",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_bindable, source),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_path,
                .want = "an absolute path without '.', '..' or a slash at its end",
                .doc = "`--bind` may name this directory and what is below it."},
        {.name = "writable",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = offsetof(struct policy_bindable, writable),
                .dflt = "false",
                .doc = "A bind may ask for write access."},
};
static const struct key_table bindable_keys = KEY_TABLE(bindable_rows);

static int set_bindable(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_counted(k, n, POLICY_BINDABLE);
	if (r < 0)
		return r;
	memset(p->bindable, 0, sizeof(p->bindable));
	p->nbindable = 0;
	yaml_each (it, n) {
		struct policy_bindable *b = &p->bindable[p->nbindable];
		r = keys_apply(k, &bindable_keys, it, b);
		if (r < 0)
			return r;
		const char *why = mount_source_refusal(b->source);
		if (why)
			return keys_error(
			        k, yaml_get(it, "source")->line, "source %s: %s", b->source, why);
		p->nbindable++;
	}
	return 0;
}

static const char *const roots[] = {"host", "image", NULL};

static const struct key filesystem_rows[] = {
        {.name = "root",
                .type = KEY_ENUM,
                .offset = offsetof(struct policy, root),
                .names = roots,
                .dflt = "host",
                .doc = "The programs of the jail: the host's /usr read-only, or an image."},
        {.name = "image",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy, image),
                .size = POLICY_PATH_MAX,
                .form = form_path,
                .want = "an absolute path",
                .doc = "Directory of a root file system, owned by root."},
        {.name = "private",
                .type = KEY_FLAG,
                .bit = POLICY_PRIVATE_FILES,
                .offset = offsetof(struct policy, flags),
                .dflt = "true",
                .doc = "What jails share for reading gets inodes of the jail's own: locks and "
                       "watches do not reach other jails."},
        {.name = "mounts",
                .type = KEY_OTHER,
                .set = set_mounts,
                .sub = &mount_keys,
                .want = "list of maps",
                .doc = "What else every jail sees of the host; at most 16."},
        {.name = "bindable",
                .type = KEY_OTHER,
                .set = set_bindable,
                .sub = &bindable_keys,
                .want = "list of maps",
                .doc = "What a request may bind; at most 16."},
        {.name = "volatile",
                .type = KEY_FLAG,
                .bit = POLICY_VOLATILE,
                .offset = offsetof(struct policy, flags),
                .dflt = "false",
                .doc = "Where nothing else holds limits.disk, a session's files are in memory and "
                       "end with each run."},
};
static const struct key_table filesystem_keys = KEY_TABLE(filesystem_rows);

/* ---- switches ---- */

static const struct key seccomp_rows[] = {
        {.name = "debug",
                .type = KEY_FLAG,
                .bit = POLICY_DEBUG,
                .offset = offsetof(struct policy, flags),
                .dflt = "false",
                .doc = "Allows ptrace and its kin within the jail: strace and gdb work."},
        {.name = "no_unix_sockets",
                .type = KEY_FLAG,
                .bit = POLICY_NO_UNIX_SOCKETS,
                .offset = offsetof(struct policy, flags),
                .dflt = "false",
                .doc = "Refuses unix sockets: tmux, chromium and local databases stop working."},
};
static const struct key_table seccomp_keys = KEY_TABLE(seccomp_rows);

/* A word of two that sets or clears a flag. */
static int set_word(const struct keys_ctx *k, const struct yaml_node *n, void *obj,
        const char *const *words, uint32_t bit)
{
	uint32_t index = 0;
	const struct key row = {.name = n->key, .type = KEY_ENUM, .names = words};
	int r = keys_set(k, &row, n, &index);
	if (r < 0)
		return r;
	struct policy *p = obj;
	p->flags = index ? p->flags | bit : p->flags & ~bit;
	return 0;
}

static int set_proc(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char *const words[] = {"masked", "strict", NULL};
	return set_word(k, n, obj, words, POLICY_STRICT_PROC);
}

static int set_inner_root(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char *const words[] = {"none", "packages", NULL};
	return set_word(k, n, obj, words, POLICY_INNER_ROOT_PACKAGES);
}

static int set_inbound(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	const struct key row = {.name = "port", .type = KEY_U32, .min = 1, .max = 65535};
	int r = keys_counted(k, n, POLICY_INBOUND);
	p->ninbound = 0;
	memset(p->inbound, 0, sizeof(p->inbound));
	yaml_each (it, n) {
		uint32_t port = 0;
		if (r == 0)
			r = keys_set(k, &row, it, &port);
		if (r < 0)
			return r;
		(void)ports_add(p->inbound, &p->ninbound, POLICY_INBOUND, (uint16_t)port);
	}
	return r;
}

/* ---- layers ---- */

static const char *const layer_words[] = {"require", "warn", NULL};

static void layers_set(struct policy *p, uint32_t bits, bool warn)
{
	p->required = warn ? p->required & ~bits : p->required | bits;
	p->warned = warn ? p->warned | bits : p->warned & ~bits;
}

static int layer_word(const struct keys_ctx *k, const struct yaml_node *n, bool *warn)
{
	uint32_t index = 0;
	const struct key row = {.name = n->key, .type = KEY_ENUM, .names = layer_words};
	int r = keys_set(k, &row, n, &index);
	*warn = index == 1;
	return r;
}

static int unknown_layer(const struct keys_ctx *k, const struct yaml_node *n)
{
	const char *names[LAYER_COUNT + 3] = {"isolation", "limits"};
	for (int i = 0; i < LAYER_COUNT; i++)
		names[i + 2] = layer_name((enum layer)i);
	return keys_unknown(k, n->key_line, "layer", n->key, names);
}

/* The two group words first, whatever the order in the file: a name says more than its group. */
static int set_layers(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_kind(k, n, YAML_MAP);
	bool warn = false;
	yaml_each (it, n) {
		bool isolation = strcmp(it->key, "isolation") == 0;
		if (r < 0 || (!isolation && strcmp(it->key, "limits") != 0))
			continue;
		r = layer_word(k, it, &warn);
		if (r == 0 && isolation && warn)
			r = keys_error(k, it->line,
			        "isolation can be warned about by the name of a layer only "
			        "(netns: warn), not as a whole");
		if (r == 0)
			layers_set(p,
			        layers_of_kind(isolation ? LAYER_KIND_ISOLATION : LAYER_KIND_LIMIT),
			        warn);
	}
	yaml_each (it, n) {
		if (r < 0)
			break;
		if (strcmp(it->key, "isolation") == 0 || strcmp(it->key, "limits") == 0)
			continue;
		int layer = layer_by_name(it->key);
		if (layer < 0)
			return unknown_layer(k, it);
		r = layer_word(k, it, &warn);
		if (r == 0)
			layers_set(p, LAYER_BIT((enum layer)layer), warn);
	}
	return r;
}

/* ---- the file ---- */

/* Read before everything else by extended(); here it is known and has nothing left to do. */
static int set_extends(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	return keys_kind(k, n, YAML_SCALAR);
}

static const struct key given_rows[] = {
        {.name = "env",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_given, variable),
                .size = NAME_MAX_LEN,
                .required = true,
                .form = form_variable,
                .want = "a variable's name such as NPM_TOKEN",
                .doc = "Variable of the jail that has the value."},
};
static const struct key_table given_keys = KEY_TABLE(given_rows);

static int set_given(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_kind(k, n, YAML_MAP);
	if (r == 0 && n->count > POLICY_GIVEN)
		return keys_error(
		        k, n->line, "%zu secrets, %d are possible", n->count, POLICY_GIVEN);
	memset(p->given, 0, sizeof(p->given));
	p->ngiven = 0;
	yaml_each (it, n) {
		if (r < 0)
			return r;
		struct policy_given *g = &p->given[p->ngiven];
		if (!form_variable(it->key) || !str_copy(g->secret, sizeof(g->secret), it->key))
			return keys_error(
			        k, it->key_line, "'%.60s' is not a secret's name (A_B1)", it->key);
		r = keys_apply(k, &given_keys, it, g);
		for (uint32_t i = 0; r == 0 && i < p->ngiven; i++)
			if (strcmp(p->given[i].variable, g->variable) == 0)
				r = keys_error(k, it->line,
				        "variable %s is another secret's already", g->variable);
		p->ngiven++;
	}
	return r;
}

static const struct key policy_rows[] = {
        {.name = "description",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy, description),
                .size = POLICY_TEXT_MAX,
                .form = form_line,
                .want = "one line of text",
                .doc = "One line for lists."},
        {.name = "extends",
                .type = KEY_OTHER,
                .set = set_extends,
                .want = "name of a built-in policy",
                .dflt = "default",
                .doc = "Built-in policy to start from."},
        {.name = "filesystem", .type = KEY_MAP, .sub = &filesystem_keys},
        {.name = "seccomp", .type = KEY_MAP, .sub = &seccomp_keys},
        {.name = "proc",
                .type = KEY_OTHER,
                .set = set_proc,
                .want = "masked, strict",
                .dflt = "masked",
                .doc = "strict: /proc has the jail's processes and nothing else; ps and node's "
                       "os.cpus() find less."},
        {.name = "inner_root",
                .type = KEY_OTHER,
                .set = set_inner_root,
                .want = "none, packages",
                .dflt = "none",
                .doc = "packages: inner root may change a layer of the jail's own over an image, "
                       "to install packages."},
        {.name = "limits",
                .type = KEY_MAP,
                .offset = offsetof(struct policy, limits),
                .sub = &limits_keys},
        {.name = "layers",
                .type = KEY_OTHER,
                .set = set_layers,
                .want = "map of layer to require or warn",
                .dflt = "isolation: require; landlock, limits: warn",
                .doc = "What a host must have.  `limits` and `isolation` stand for all layers of "
                       "that kind; isolation is relaxed layer by layer only."},
        {.name = "egress", .type = KEY_MAP, .sub = &egress_keys},
        {.name = "secrets",
                .type = KEY_OTHER,
                .set = set_given,
                .sub = &given_keys,
                .want = "map of a secret's name to `{ env: VARIABLE }`",
                .dflt = "{}",
                .doc = "Secrets whose values enter the jails of harnesses that name them, as "
                       "variables of the agent, and are kept out of what it prints; at most 4.  "
                       "Better: egress.inject, which keeps them outside."},
        {.name = "ports",
                .type = KEY_OTHER,
                .set = set_inbound,
                .want = "list of ports, at most 16",
                .dflt = "[]",
                .doc = "TCP ports on which clients of the control socket may reach a listener of "
                       "the jail."},
};
const struct key_table policy_keys = KEY_TABLE(policy_rows);

/* What a built-in without `extends` starts from: everything required, nothing going out. */
static void from_nothing(struct policy *p)
{
	memset(p, 0, sizeof(*p));
	p->required = layers_of_kind(LAYER_KIND_ISOLATION) | layers_of_kind(LAYER_KIND_LIMIT);
}

static int unknown_builtin(const struct keys_ctx *k, const struct yaml_node *n)
{
	auto_free const char **names = xcalloc(builtin_count() + 1, sizeof(*names));
	for (size_t i = 0; i < builtin_count(); i++)
		names[i] = builtin_at(i)->name;
	return keys_unknown(k, n->line, "built-in policy", n->text, names);
}

/* Fills *p with what the file extends.  `own` is the index of the built-in that is being parsed
 * (it may extend those before it, so that there is no circle), -1 for a file of root's. */
static int extended(
        const struct keys_ctx *k, const struct yaml_node *root, int own, struct policy *p)
{
	const struct yaml_node *n = yaml_get(root, "extends");
	if (!n && own >= 0) {
		from_nothing(p);
		return 0;
	}
	int base = 0;
	if (n) {
		int r = keys_kind(k, n, YAML_SCALAR);
		if (r < 0)
			return r;
		base = builtin_find(n->text);
		if (base < 0 || (own >= 0 && base >= own))
			return unknown_builtin(k, n);
	}
	return policy_builtin(base, p, k->e);
}

static int root_fits(const struct keys_ctx *k, const struct yaml_node *root, const struct policy *p)
{
	const struct yaml_node *image = yaml_path(root, "filesystem.image");
	const struct yaml_node *kind = yaml_path(root, "filesystem.root");
	const struct yaml_node *inner = yaml_get(root, "inner_root");
	if (p->root == POLICY_ROOT_IMAGE && !p->image[0])
		return keys_error(k, kind ? kind->line : root->line,
		        "root: image needs filesystem.image, the directory");
	if (p->root != POLICY_ROOT_IMAGE && p->image[0])
		return keys_error(
		        k, image ? image->line : root->line, "filesystem.image needs root: image");
	if (strcmp(p->image, "/") == 0)
		return keys_error(k, image ? image->line : root->line,
		        "filesystem.image: / is the host's own root, not an image");
	if ((p->flags & POLICY_INNER_ROOT_PACKAGES) && p->root != POLICY_ROOT_IMAGE)
		return keys_error(k, inner ? inner->line : root->line,
		        "inner_root: packages needs root: image; the host's /usr is not written");
	return 0;
}

/* The rules may come after the ports, or from what is extended. */
static int ports_fit(const struct keys_ctx *k, const struct yaml_node *root, const struct policy *p)
{
	const struct yaml_node *n = yaml_get(root, "ports");
	for (uint32_t i = 0; i < p->ninbound; i++)
		if (policy_serves(p, p->inbound[i]))
			return keys_error(k, n ? n->line : root->line,
			        "ports: %u is agentbox-egress's inside a jail, not a program's",
			        p->inbound[i]);
	return 0;
}

/* Who shares inodes neither needs the layer nor is warned of its absence. */
static int inodes_fit(const struct keys_ctx *k, const struct yaml_node *root, struct policy *p)
{
	uint32_t bit = LAYER_BIT(LAYER_INODES);
	const struct yaml_node *asked = yaml_path(root, "layers.inodes");
	if (p->flags & POLICY_PRIVATE_FILES)
		return 0;
	if (asked && (p->required & bit))
		return keys_error(
		        k, asked->line, "layers: inodes needs filesystem: { private: true }");
	p->required &= ~bit;
	p->warned &= ~bit;
	return 0;
}

static int parse(const struct keys_ctx *k, const char *name, const char *text, size_t n, int own,
        struct policy *ret)
{
	auto_yaml struct yaml_doc *doc = yaml_parse(k->file, 1, text, n, k->e);
	if (!doc)
		return -EINVAL;
	const struct yaml_node *root = yaml_root(doc);
	int r = keys_kind(k, root, YAML_MAP);
	if (r < 0)
		return r;
	auto_free struct policy *p = xnew(struct policy);
	r = extended(k, root, own, p);
	if (r < 0)
		return r;
	p->description[0] = '\0';
	r = keys_apply(k, &policy_keys, root, p);
	if (r == 0)
		r = root_fits(k, root, p);
	if (r == 0)
		r = egress_settle(k, root, p);
	if (r == 0)
		r = ports_fit(k, root, p);
	if (r == 0)
		r = inodes_fit(k, root, p);
	if (r < 0)
		return r;
	if (!name_valid(name) || !str_copy(p->name, sizeof(p->name), name))
		return keys_error(k, 1, "'%.80s' cannot be a policy's name", name);
	if (!str_copy(p->source, sizeof(p->source), own >= 0 ? "built-in" : k->file))
		return keys_error(k, 1, "the path of this file is too long");
	memset(p->bpf, 0, sizeof(p->bpf));
	int insns = bpf_compile(arch_native(), p->flags, p->bpf, k->e);
	if (insns < 0)
		return err_wrap(k->e, "%s:%d", k->file, 1);
	p->ninsns = (uint32_t)insns;
	/* A reader will check the same; what it would refuse is not written. */
	r = policy_check(p, k->e);
	if (r < 0)
		return err_wrap(k->e, "%s:%d", k->file, 1);
	*ret = *p;
	return 0;
}

int policy_parse(
        const struct keys_ctx *k, const char *name, const char *text, size_t n, struct policy *ret)
{
	return parse(k, name, text, n, -1, ret);
}

int policy_builtin(int index, struct policy *ret, struct err *e)
{
	const struct builtin *b = builtin_at((size_t)index);
	char file[96];
	(void)snprintf(file, sizeof(file), "built-in/%s.yaml", b->name);
	const struct keys_ctx k = {.file = file, .e = e};
	return parse(&k, b->name, b->text, (size_t)(b->end - b->text), index, ret);
}
