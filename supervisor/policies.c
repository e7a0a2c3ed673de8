#include "supervisor/policies.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "policy/layers.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct policies {
	const struct policy_set *set; /* owned: a read-only mapping of `bytes` */
	size_t bytes;
	uint32_t have; /* layers of this host */
	char detail[LAYER_COUNT][LAYER_TEXT_MAX], remedy[LAYER_COUNT][LAYER_TEXT_MAX];
	char unproven[ERR_TEXT_MAX];
};

struct policies *policies_new(void)
{
	return xnew(struct policies);
}

static void unmap(const struct policy_set *set, size_t bytes)
{
	if (set)
		(void)munmap((void *)(uintptr_t)set, bytes);
}

void policies_free(struct policies *p)
{
	if (!p)
		return;
	unmap(p->set, p->bytes);
	free(p);
}

int policies_load(struct policies *p, int fd, struct err *e)
{
	auto_close int owned = fd;
	struct stat st;
	if (fstat(owned, &st) < 0)
		return err_errno(e, "policy set");
	if (st.st_size < (off_t)sizeof(struct policy_set))
		return err_set(e, -EBADMSG, "policy set: too short");
	size_t bytes = (size_t)st.st_size;
	void *m = mmap(NULL, bytes, PROT_READ, MAP_SHARED, owned, 0);
	if (m == MAP_FAILED)
		return err_errno(e, "policy set: mmap");
	int rc = policy_set_check(m, bytes, e);
	if (rc < 0) {
		unmap(m, bytes);
		return rc;
	}
	unmap(p->set, p->bytes);
	p->set = m;
	p->bytes = bytes;
	return 0;
}

bool policies_ready(const struct policies *p)
{
	return p->set != NULL;
}

const struct policy_set *policies_set(const struct policies *p)
{
	return p->set;
}

void policies_host(struct policies *p, const struct jail_reply *doctor)
{
	p->have = doctor->layers;
	memcpy(p->unproven, doctor->unproven, sizeof(p->unproven) - 1);
	for (int l = 0; l < LAYER_COUNT; l++) {
		memcpy(p->detail[l], doctor->detail[l], sizeof(p->detail[l]) - 1);
		memcpy(p->remedy[l], doctor->remedy[l], sizeof(p->remedy[l]) - 1);
	}
}

int policies_met(const struct policies *p, const struct policy *x, struct err *e)
{
	int r = policy_proven(x, p->unproven, e);
	return r < 0 ? r : policy_met(x, p->have, p->detail, p->remedy, e);
}

const char *policies_unproven(const struct policies *p)
{
	return p->unproven;
}

static void not_found(const struct policies *p, const char *name, struct err *e)
{
	auto_buf struct buf names = BUF_INIT(128);
	for (uint32_t i = 0; p->set && i < p->set->count; i++)
		(void)buf_printf(&names, "%s%s", i ? ", " : "", p->set->policies[i].name);
	err_set(e, -ENOENT, "no policy '%.64s' (there are: %s)", name, names.p ? names.p : "none");
}

int policies_find(
        const struct policies *p, const char *name, const struct policy **ret, struct err *e)
{
	if (!name)
		name = p->set ? p->set->config.default_policy : "default";
	int i = p->set ? policy_find(p->set, name) : -ENOENT;
	if (i < 0) {
		not_found(p, name, e);
		return -ENOENT;
	}
	*ret = &p->set->policies[i];
	return i;
}

void policies_limits_json(const struct limits *l, struct buf *json)
{
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
	        {"memoryBytes", l->memory_bytes},
	        {"pids", l->pids},
	        {"cpuMilli", l->cpu_milli},
	        {"ioReadBps", l->io_read_bps},
	        {"ioWriteBps", l->io_write_bps},
	        {"diskBytes", l->disk_bytes},
	        {"inodes", l->inodes},
	        {"nofile", l->nofile},
	        {"fileBytes", l->file_bytes},
	        {"tmpBytes", l->tmp_bytes},
	        {"shmBytes", l->shm_bytes},
	        {"wallMs", l->wall_ms},
	        {"outputBytes", l->output_bytes},
	};
	struct jw w = JW_INIT(json);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].value)
			jw_int(&w, rows[i].name, (int64_t)rows[i].value);
}

void policies_layers_json(uint32_t layers, struct buf *json)
{
	struct jw w = JW_INIT(json);
	jw_open(&w, NULL, '[');
	for (int i = 0; i < LAYER_COUNT; i++)
		if (layers & LAYER_BIT(i))
			jw_str(&w, NULL, layer_name((enum layer)i));
	jw_close(&w, ']');
}

void policies_jail_ports_json(const struct policies *p, const char *name, struct jw *w)
{
	const struct policy *x;
	if (policies_find(p, name, &x, NULL) >= 0 && x->ninbound > 0)
		policies_ports_json(x, w);
}

void policies_ports_json(const struct policy *p, struct jw *w)
{
	jw_open(w, "ports", '[');
	for (uint32_t i = 0; i < p->ninbound; i++)
		jw_int(w, NULL, p->inbound[i]);
	jw_close(w, ']');
}

static void layers_member(struct jw *w, const char *key, uint32_t layers)
{
	auto_buf struct buf b = BUF_INIT(4096);
	policies_layers_json(layers, &b);
	jw_raw(w, key, b.p, b.len);
}

static void injects_member(struct jw *w, const struct policy *p)
{
	jw_open(w, "inject", '[');
	for (uint32_t i = 0; i < p->ninject; i++) {
		const struct policy_inject *in = &p->inject[i];
		jw_open(w, NULL, '{');
		jw_str(w, "host", in->host);
		jw_str(w, "upstream", in->upstream);
		if (in->header[0])
			jw_str(w, "header", in->header);
		if (in->secret[0])
			jw_str(w, "secret", in->secret);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

static bool listed(const struct policies_view *v, const struct policy *p)
{
	bool found = !v->names;
	for (char *const *n = v->names; n && *n && !found; n++)
		found = strcmp(*n, p->name) == 0;
	return found;
}

static void show(const struct policy *p, const struct policies_view *v, struct jw *w, bool whole)
{
	auto_buf struct buf limits = BUF_INIT(4096);
	policies_limits_json(&p->limits, &limits);
	jw_open(w, NULL, '{');
	jw_str(w, "name", p->name);
	jw_str(w, "description", p->description);
	if (!v->outside)
		jw_str(w, "source", p->source);
	jw_str(w, "root", p->root == POLICY_ROOT_IMAGE ? "image" : "host");
	jw_open(w, "limits", '{');
	jw_members(w, limits.p, limits.len);
	jw_close(w, '}');
	layers_member(w, "required", p->required);
	layers_member(w, "warned", p->warned);
	if (whole && !v->outside) {
		injects_member(w, p);
		policies_ports_json(p, w);
		jw_open(w, "bindable", '[');
		for (uint32_t i = 0; i < p->nbindable; i++) {
			jw_open(w, NULL, '{');
			jw_str(w, "source", p->bindable[i].source);
			jw_bool(w, "writable", p->bindable[i].writable != 0);
			jw_close(w, '}');
		}
		jw_close(w, ']');
		jw_int(w, "filterInstructions", p->ninsns);
	}
	jw_close(w, '}');
}

void policies_list(const struct policies *p, const struct policies_view *v, struct buf *json)
{
	struct jw w = JW_INIT(json);
	for (uint32_t i = 0; p->set && i < p->set->count; i++)
		if (listed(v, &p->set->policies[i]))
			show(&p->set->policies[i], v, &w, false);
}

int policies_show(const struct policies *p, const struct policies_view *v, const char *name,
        struct buf *json, struct err *e)
{
	const struct policy *x;
	int i = policies_find(p, name, &x, e);
	if (i < 0)
		return i;
	struct jw w = JW_INIT(json);
	show(x, v, &w, true);
	return 0;
}
