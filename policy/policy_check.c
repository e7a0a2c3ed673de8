#include "policy/policy_check.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/forms.h"
#include "policy/layers.h"

#include <linux/seccomp.h>
#include <string.h>

static int bad(struct err *e, const char *what, const char *why)
{
	return err_set(e, -EBADMSG, "%s %s", what, why);
}

/* ---- the filter ---- */

static bool load_fine(const struct sock_filter *f)
{
	return f->code == (BPF_LD | BPF_W | BPF_ABS) && f->k % 4 == 0 &&
	       f->k < sizeof(struct seccomp_data);
}

static bool action_fine(uint32_t ret)
{
	switch (ret & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		return ret == SECCOMP_RET_ALLOW;
	case SECCOMP_RET_KILL_PROCESS:
		return ret == SECCOMP_RET_KILL_PROCESS;
	case SECCOMP_RET_ERRNO:
		/* Errno 0 would be success without the call; 4095 is the kernel's MAX_ERRNO. */
		return (ret & SECCOMP_RET_DATA) >= 1 && (ret & SECCOMP_RET_DATA) <= 4095;
	default:
		return false;
	}
}

static bool jump_fine(const struct sock_filter *f, size_t at, size_t n)
{
	size_t next = at + 1;
	switch (BPF_OP(f->code)) {
	case BPF_JA:
		return f->code == (BPF_JMP | BPF_JA) && f->k < n - next;
	case BPF_JEQ:
	case BPF_JGE:
	case BPF_JGT:
	case BPF_JSET:
		return BPF_SRC(f->code) == BPF_K && next + f->jt < n && next + f->jf < n;
	default:
		return false;
	}
}

static const char *insn_fault(const struct sock_filter *f, size_t at, size_t n)
{
	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
		return load_fine(f) ? NULL : "loads outside struct seccomp_data";
	case BPF_ALU:
		return f->code == (BPF_ALU | BPF_AND | BPF_K) ? NULL : "computes other than AND";
	case BPF_JMP:
		return jump_fine(f, at, n) ? NULL : "jumps out of the program";
	case BPF_RET:
		return f->code == (BPF_RET | BPF_K) && action_fine(f->k)
		               ? NULL
		               : "returns an unknown action";
	default:
		return "is of a class that filters here do not use";
	}
}

int bpf_check(const struct sock_filter *insns, size_t n, struct err *e)
{
	if (n == 0 || n > POLICY_INSNS)
		return err_set(e, -EBADMSG, "filter has %zu instructions, 1 to %d are possible", n,
		        POLICY_INSNS);
	for (size_t i = 0; i < n; i++) {
		const char *fault = insn_fault(&insns[i], i, n);
		if (fault)
			return err_set(e, -EBADMSG, "filter instruction %zu %s", i, fault);
	}
	if (BPF_CLASS(insns[n - 1].code) != BPF_RET)
		return err_set(e, -EBADMSG, "filter ends without a return");
	return 0;
}

/* ---- texts ---- */

static bool terminated(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}

#define TEXT(field, form)                                                                          \
	(terminated((field), sizeof(field)) && form(field) ? 0 : bad(e, #field, "is not " #form))
#define TEXT_OR_EMPTY(field, form)                                                                 \
	(terminated((field), sizeof(field)) && (!(field)[0] || form(field))                        \
	                ? 0                                                                        \
	                : bad(e, #field, "is not " #form))

/* Where the host must not be shown through: kernel views and devices (own instances are made),
 * sockets (pathname sockets cross network namespaces), and what holds the host's secrets. */
const char *mount_source_refusal(const char *path)
{
	static const char *const trees[] = {"/proc", "/sys", "/dev", "/run", "/var/run", "/boot",
	        "/root", "/etc/agentbox", "/etc/shadow", "/etc/gshadow", "/etc/ssh",
	        "/var/lib/agentbox"};
	if (strcmp(path, "/") == 0)
		return "the whole host cannot be shown";
	if (strcmp(path, "/etc") == 0)
		return "/etc holds secrets of the host; name what is needed below it";
	if (strcmp(path, "/var") == 0 || strcmp(path, "/var/lib") == 0)
		return "holds the state of other programs; name what is needed below it";
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		if (path_within(path, trees[i]))
			return "holds kernel views, sockets or secrets of the host";
	return NULL;
}

/* What the jail is made of is not to be covered by a mount of a policy, and what it gets when it is
 * made would cover one. */
const char *mount_target_refusal(const char *path)
{
	static const char *const trees[] = {"/proc", "/sys", "/dev", "/usr", "/bin", "/sbin",
	        "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/run", "/var/run", "/var/tmp",
	        "/opt/agent"};
	static const char *const own[] = {"/workspace", "/home/agent", "/tmp"};
	static const char *const places[] = {"/", "/home", "/opt", "/var", "/mnt"};
	for (size_t i = 0; i < ARRAY_LEN(trees); i++)
		if (path_within(path, trees[i]))
			return "is part of every jail and cannot be covered";
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (path_within(path, own[i]))
			return "is in a directory that each jail has for itself, which would hide "
			       "it; name a place elsewhere (/srv/...)";
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (strcmp(path, places[i]) == 0)
			return "is part of every jail; name a place below it or another";
	return NULL;
}

static int mount_check(const struct policy *p, size_t i, struct err *e)
{
	const struct policy_mount *m = &p->mounts[i];
	int r = TEXT(m->source, form_path);
	if (r == 0)
		r = TEXT(m->target, form_path);
	if (r < 0)
		return r;
	if (m->writable > 1 || m->optional > 1)
		return bad(e, m->source, "has a flag that is neither 0 nor 1");
	const char *why = mount_source_refusal(m->source);
	if (why)
		return bad(e, m->source, why);
	why = mount_target_refusal(m->target);
	if (why)
		return bad(e, m->target, why);
	if ((p->flags & POLICY_INNER_ROOT_PACKAGES) &&
	        (path_within(m->target, "/var") || path_within(m->target, "/opt")))
		return bad(e, m->target,
		        "would be hidden by the image's writable layer (inner_root: packages)");
	for (size_t j = 0; j < i; j++)
		if (strcmp(p->mounts[j].target, m->target) == 0)
			return bad(e, m->target, "is mounted twice");
	return 0;
}

static int bindable_check(const struct policy_bindable *b, struct err *e)
{
	int r = TEXT(b->source, form_path);
	if (r < 0)
		return r;
	const char *why = mount_source_refusal(b->source);
	if (why)
		return bad(e, b->source, why);
	return b->writable > 1 ? bad(e, b->source, "has a flag that is neither 0 nor 1") : 0;
}

static int inject_check(const struct policy *p, size_t i, struct err *e)
{
	const struct policy_inject *j = &p->inject[i];
	int r = TEXT(j->host, form_host);
	if (r == 0)
		r = TEXT(j->upstream, form_url);
	if (r == 0)
		r = TEXT_OR_EMPTY(j->header, form_header);
	if (r == 0)
		r = TEXT(j->prefix, form_printable);
	if (r == 0)
		r = TEXT_OR_EMPTY(j->secret, form_variable);
	if (r < 0)
		return r;
	if (j->loopback > 1)
		return bad(e, j->host, "has a flag that is neither 0 nor 1");
	if (j->secret[0] && !j->header[0])
		return bad(e, j->host, "has a secret and no header to send it in");
	/* Plain HTTP carries prompt and secret for all to read; on this machine there is nobody. */
	if (!j->loopback && strncmp(j->upstream, "https://", 8) != 0)
		return bad(e, j->host,
		        "goes out over plain http; only an upstream with allow_loopback may");
	for (size_t k = 0; k < i; k++)
		if (strcmp(p->inject[k].host, j->host) == 0)
			return bad(e, j->host, "is given twice");
	return 0;
}

/* ---- egress rules ---- */

static int request_check(const struct policy_request *q, struct err *e)
{
	if (!terminated(q->method, sizeof(q->method)) ||
	        strspn(q->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(q->method))
		return bad(e, "a request's method", "is not a word in upper case");
	return TEXT(q->path, form_path_glob);
}

static bool range_fine(const struct policy *p, struct request_range r)
{
	return r.n <= p->nrequests && r.first <= p->nrequests - r.n;
}

static int rule_check(const struct policy *p, const struct policy_rule *r, struct err *e)
{
	if (!terminated(r->host, sizeof(r->host)) ||
	        (r->host[0] && !form_host(r->host + (r->host[0] == '.'))))
		return bad(e, "a rule's host", "is no host name");
	int bad_group = TEXT_OR_EMPTY(r->group, form_name);
	if (bad_group < 0)
		return bad_group;
	if (r->protocol > RULE_RAW || r->nports < 1 || r->nports > RULE_PORTS ||
	        r->ncidrs > RULE_CIDRS || !range_fine(p, r->requests))
		return bad(e, "a rule's numbers", "are out of range");
	for (uint32_t i = 0; i < r->nports; i++)
		if (r->ports[i] == 0 || r->ports[i] == 53)
			return bad(e, "a rule's port", "is 0 or the resolver's");
	for (uint32_t i = 0; i < r->ncidrs; i++)
		if (!cidr_fine(&r->cidrs[i]))
			return bad(e, "a rule's network", "has bits behind its prefix");
	/* Without a name in what is sent, only an exact one or an address means something. */
	if (r->protocol == RULE_RAW ? r->host[0] == '.' : !r->host[0])
		return bad(e, "a rule", "has no name that its protocol could be held to");
	if (!r->host[0] && r->ncidrs == 0)
		return bad(e, "a rule", "has neither host nor addresses");
	if (r->terminate > (r->protocol == RULE_TLS))
		return bad(e, "a rule", "terminates what is not TLS");
	if (r->requests.n && !rule_shows_requests(r))
		return bad(e, "a rule", "judges what its protocol does not show");
	return 0;
}

/* Every port of a rule has a listener, and none is there twice. */
static int ports_check(const struct policy *p, struct err *e)
{
	for (uint32_t i = 0; i < p->nports; i++)
		if (p->ports[i] == 0 || p->ports[i] == 53 || p->ports[i] == 80 ||
		        p->ports[i] == 443 || (i && p->ports[i] <= p->ports[i - 1]))
			return bad(e, "ports", "are not ascending or are served anyhow");
	for (uint32_t i = 0; i < p->nrules; i++)
		for (uint32_t j = 0; j < p->rules[i].nports; j++) {
			unsigned port = p->rules[i].ports[j];
			bool there = port == 80 || port == 443;
			for (uint32_t k = 0; k < p->nports; k++)
				there = there || p->ports[k] == port;
			if (!there)
				return bad(e, "a rule's port", "has no listener");
		}
	return 0;
}

static int inbound_check(const struct policy *p, struct err *e)
{
	for (uint32_t i = 0; i < p->ninbound; i++)
		if (p->inbound[i] == 0 || (i && p->inbound[i] <= p->inbound[i - 1]) ||
		        policy_serves(p, p->inbound[i]))
			return bad(e, "ports", "are not ascending or are those of egress");
	return 0;
}

static int rules_check(const struct policy *p, struct err *e)
{
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < p->nrequests; i++)
		r = request_check(&p->requests[i], e);
	for (uint32_t i = 0; r == 0 && i < p->nrules; i++)
		r = rule_check(p, &p->rules[i], e);
	for (uint32_t i = 0; r == 0 && i < p->ninject; i++)
		if (!range_fine(p, p->inject[i].requests))
			r = bad(e, p->inject[i].host, "has requests out of range");
	return r == 0 ? ports_check(p, e) : r;
}

static int given_check(const struct policy *p, size_t i, struct err *e)
{
	const struct policy_given *g = &p->given[i];
	int r = TEXT(g->secret, form_variable);
	if (r == 0)
		r = TEXT(g->variable, form_variable);
	for (size_t k = 0; r == 0 && k < i; k++)
		if (strcmp(p->given[k].secret, g->secret) == 0 ||
		        strcmp(p->given[k].variable, g->variable) == 0)
			r = bad(e, g->secret, "is given twice");
	return r;
}

static int policy_head_check(const struct policy *p, struct err *e)
{
	int r = TEXT(p->name, form_name);
	if (r == 0)
		r = TEXT(p->description, form_line);
	if (r == 0)
		r = TEXT(p->source, form_line);
	if (r == 0)
		r = TEXT_OR_EMPTY(p->image, form_path);
	if (r < 0)
		return r;
	const uint32_t all =
	        layers_of_kind(LAYER_KIND_ISOLATION) | layers_of_kind(LAYER_KIND_LIMIT);
	const uint32_t flags = POLICY_INNER_ROOT_PACKAGES | POLICY_STRICT_PROC | POLICY_DEBUG |
	                       POLICY_NO_UNIX_SOCKETS | POLICY_PRIVATE_FILES | POLICY_VOLATILE |
	                       POLICY_PROXY;
	if (((p->required | p->warned) & ~all) || (p->required & p->warned))
		return bad(e, "layers", "are unknown or both required and warned about");
	if (p->flags & ~flags)
		return bad(e, "flags", "are unknown");
	if (p->root > POLICY_ROOT_IMAGE || (p->root == POLICY_ROOT_IMAGE) != (p->image[0] != 0))
		return bad(e, "root", "and image do not go together");
	if (p->nmounts > POLICY_MOUNTS || p->nbindable > POLICY_BINDABLE ||
	        p->ninject > POLICY_INJECTS || p->nrules > POLICY_RULES ||
	        p->nrequests > POLICY_REQUESTS || p->nports > POLICY_PORTS ||
	        p->ninbound > POLICY_INBOUND || p->ngiven > POLICY_GIVEN)
		return bad(e, "counts", "are out of range");
	return 0;
}

int policy_check(const struct policy *p, struct err *e)
{
	int r = policy_head_check(p, e);
	for (size_t i = 0; r == 0 && i < p->nmounts; i++)
		r = mount_check(p, i, e);
	for (size_t i = 0; r == 0 && i < p->nbindable; i++)
		r = bindable_check(&p->bindable[i], e);
	for (size_t i = 0; r == 0 && i < p->ninject; i++)
		r = inject_check(p, i, e);
	for (size_t i = 0; r == 0 && i < p->ngiven; i++)
		r = given_check(p, i, e);
	if (r == 0)
		r = rules_check(p, e);
	if (r == 0)
		r = inbound_check(p, e);
	return r == 0 ? bpf_check(p->bpf, p->ninsns, e) : r;
}

/* ---- the daemon's configuration ---- */

static bool id_fine(uint32_t id)
{
	const uint64_t leases_end = ID_STORE_BASE + (uint64_t)(ID_LEASES + 1) * ID_BLOCK;
	return id != 0 && id != UINT32_MAX && !(id >= ID_STORE_BASE && id < leases_end);
}

static bool credential_name(const char *text)
{
	return text[0] && text[0] != '.' && !strchr(text, '/') && form_printable(text);
}

static int secret_check(const struct daemon_config *c, size_t i, struct err *e)
{
	const struct secret_def *s = &c->secrets[i];
	int r = TEXT(s->name, form_variable);
	if (r < 0)
		return r;
	for (size_t k = 0; k < i; k++)
		if (strcmp(c->secrets[k].name, s->name) == 0)
			return bad(e, s->name, "is given twice");
	if ((s->source == SECRET_COMMAND) != (s->nargs != 0))
		return bad(e, s->name, "has arguments, or none, against its source");
	switch (s->source) {
	case SECRET_COMMAND:
		return form_command(s->where, sizeof(s->where), s->nargs)
		               ? 0
		               : bad(e, s->name, "has a command that is none");
	case SECRET_FILE:
		return TEXT(s->where, form_path);
	case SECRET_ENV:
		return TEXT(s->where, form_variable);
	case SECRET_CREDENTIAL:
		return TEXT(s->where, credential_name);
	default:
		return bad(e, s->name, "has an unknown source");
	}
}

static int price_check(const struct price *p, struct err *e)
{
	int r = TEXT(p->model, form_printable);
	if (r == 0 && (!p->model[0] || p->input > PRICE_MAX || p->output > PRICE_MAX ||
	                      p->cached > PRICE_MAX || p->stored > PRICE_MAX))
		r = bad(e, "a price", "is out of range");
	return r;
}

static int share_check(const struct run_share *x, struct err *e)
{
	if (x->weight < 1 || x->weight > 1000 || x->max > LIMIT_JAILS ||
	        x->queue > LIMIT_QUEUED_RUNS || (!x->tenant[0] && !x->user[0]))
		return bad(e, "shares", "are out of range");
	int r = TEXT_OR_EMPTY(x->tenant, form_name);
	return r < 0 ? r : TEXT_OR_EMPTY(x->user, form_line);
}

int daemon_config_check(const struct daemon_config *c, struct err *e)
{
	if (!id_fine(c->supervisor_uid) || !id_fine(c->supervisor_gid) || !id_fine(c->egress_uid) ||
	        !id_fine(c->egress_gid) || !id_fine(c->listener_uid) || !id_fine(c->listener_gid))
		return bad(e, "users", "are root or ids of jails");
	if (c->supervisor_uid == c->egress_uid || c->listener_uid == c->egress_uid ||
	        c->listener_uid == c->supervisor_uid)
		return bad(e, "users",
		        "must differ: supervisor, egress and listener do not trust each other");
	if (c->max_runs < 1 || c->max_runs > LIMIT_JAILS || c->max_queued > LIMIT_QUEUED_RUNS ||
	        c->pool > LIMIT_JAILS || c->max_warm > LIMIT_JAILS)
		return bad(e, "runs", "are out of range");
	if (c->user_runs > LIMIT_JAILS || c->user_queued > LIMIT_QUEUED_RUNS ||
	        c->nshares > RUN_SHARES)
		return bad(e, "runs", "are out of range");
	if (c->state_reserve > STATE_RESERVE_MOST ||
	        c->keep.journals_bytes < RETENTION_JOURNALS_LEAST ||
	        c->keep.journals_bytes > RETENTION_JOURNALS_MOST)
		return bad(e, "state", "is out of range");
	if (c->log_format >= LOG_FORMAT_COUNT || c->log_level > LOG_LEVEL_DEBUG)
		return bad(e, "log", "is out of range");
	if (c->sessions.evict >= SESSION_EVICT_COUNT)
		return bad(e, "sessions", "are out of range");
	if (c->nsecrets > POLICY_SECRETS || c->nexposed > POLICY_EXPOSED ||
	        c->nprices > POLICY_PRICES || c->nwebhooks > POLICY_WEBHOOKS ||
	        c->nlistens > LISTENS)
		return bad(e, "counts", "are out of range");
	int r = TEXT(c->default_policy, form_name);
	for (size_t i = 0; r == 0 && i < c->nsecrets; i++)
		r = secret_check(c, i, e);
	for (size_t i = 0; r == 0 && i < c->nprices; i++)
		r = price_check(&c->prices[i], e);
	for (size_t i = 0; r == 0 && i < c->nwebhooks; i++)
		r = webhook_check(&c->webhooks[i], c->webhooks, i, e);
	if (r == 0)
		r = otlp_check(&c->otlp, e);
	if (r == 0)
		r = bucket_check(&c->bucket, e);
	for (size_t i = 0; r == 0 && i < c->nlistens; i++)
		r = listen_check(&c->listens[i], e);
	for (size_t i = 0; r == 0 && i < c->nshares; i++)
		r = share_check(&c->shares[i], e);
	for (size_t i = 0; r == 0 && i < c->nexposed; i++)
		r = TEXT(c->exposed[i], form_variable);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(c->harness_dirs); i++)
		r = TEXT_OR_EMPTY(c->harness_dirs[i], form_path);
	return r;
}
