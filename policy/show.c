#include "policy/show.h"
#include "base/mem.h"
#include "policy/layers.h"
#include "policy/units.h"

#include <string.h>

static const char *truth(uint32_t bit)
{
	return bit ? "true" : "false";
}

/* In double quotes, as YAML wants it: texts are printable or plain lines. */
static void quoted(FILE *to, const char *key, const char *text)
{
	(void)fprintf(to, "%s: \"", key);
	for (; *text; text++)
		(void)fprintf(to, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	(void)fputs("\"\n", to);
}

static void show_files(const struct policy *p, FILE *to)
{
	(void)fprintf(
	        to, "filesystem:\n  root: %s\n", p->root == POLICY_ROOT_IMAGE ? "image" : "host");
	if (p->root == POLICY_ROOT_IMAGE)
		quoted(to, "  image", p->image);
	(void)fprintf(to, "  private: %s\n", truth(p->flags & POLICY_PRIVATE_FILES));
	(void)fputs(p->nmounts ? "  mounts:\n" : "  mounts: []\n", to);
	for (uint32_t i = 0; i < p->nmounts; i++) {
		quoted(to, "    - source", p->mounts[i].source);
		quoted(to, "      target", p->mounts[i].target);
		(void)fprintf(to, "      writable: %s\n      optional: %s\n",
		        truth(p->mounts[i].writable), truth(p->mounts[i].optional));
	}
	(void)fputs(p->nbindable ? "  bindable:\n" : "  bindable: []\n", to);
	for (uint32_t i = 0; i < p->nbindable; i++) {
		quoted(to, "    - source", p->bindable[i].source);
		(void)fprintf(to, "      writable: %s\n", truth(p->bindable[i].writable));
	}
	(void)fprintf(to, "  volatile: %s\n", truth(p->flags & POLICY_VOLATILE));
}

static void show_limits(const struct limits *l, FILE *to)
{
	enum unit { BYTES, COUNT, MILLI, TIME };
	const struct {
		const char *key;
		uint64_t value;
		enum unit unit;
	} rows[] = {
	        {"  memory", l->memory_bytes, BYTES},
	        {"  pids", l->pids, COUNT},
	        {"  cpus", l->cpu_milli, MILLI},
	        {"  io:\n    read", l->io_read_bps, BYTES},
	        {"    write", l->io_write_bps, BYTES},
	        {"  disk", l->disk_bytes, BYTES},
	        {"  inodes", l->inodes, COUNT},
	        {"  nofile", l->nofile, COUNT},
	        {"  file", l->file_bytes, BYTES},
	        {"  tmp", l->tmp_bytes, BYTES},
	        {"  shm", l->shm_bytes, BYTES},
	        {"  wall", l->wall_ms, TIME},
	        {"  output", l->output_bytes, BYTES},
	};
	(void)fputs("limits:\n", to);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[UNITS_TEXT_MAX] = "none";
		if (rows[i].value && rows[i].unit == BYTES)
			units_print_bytes(rows[i].value, text);
		else if (rows[i].value && rows[i].unit == MILLI)
			units_print_milli(rows[i].value, text);
		else if (rows[i].value && rows[i].unit == TIME)
			units_print_time_ms(rows[i].value, text);
		else if (rows[i].value)
			(void)snprintf(
			        text, sizeof(text), "%llu", (unsigned long long)rows[i].value);
		(void)fprintf(to, "%s: %s\n", rows[i].key, text);
	}
}

static void show_requests(
        const struct policy *p, struct request_range range, const char *indent, FILE *to)
{
	for (uint32_t i = 0; i < range.n; i++) {
		const struct policy_request *q = &p->requests[range.first + i];
		if (i == 0)
			(void)fprintf(to, "%srequests:\n", indent);
		(void)fprintf(to, "%s  - \"%s%s%s\"\n", indent, q->method, q->method[0] ? " " : "",
		        q->path);
	}
}

static void show_list(const struct policy_rule *r, FILE *to)
{
	(void)fputs("      ports: [", to);
	for (uint32_t i = 0; i < r->nports; i++)
		(void)fprintf(to, "%s%u", i ? ", " : "", r->ports[i]);
	(void)fputs("]\n", to);
	for (uint32_t i = 0; i < r->ncidrs; i++) {
		char text[RULE_TEXT_MAX];
		cidr_text(&r->cidrs[i], text);
		(void)fprintf(to, "%s\"%s\"%s", i ? ", " : "      addresses: [", text,
		        i + 1 == r->ncidrs ? "]\n" : "");
	}
}

static void show_bytes(const char *key, uint64_t value, FILE *to)
{
	char text[UNITS_TEXT_MAX];
	units_print_bytes(value, text);
	if (value)
		(void)fprintf(to, "%s: %s\n", key, text);
}

static void show_rule(const struct policy *p, const struct policy_rule *r, FILE *to)
{
	(void)fprintf(to, "    - protocol: %s%s%s\n", rule_protocol_name(r->protocol),
	        r->group[0] ? "  # @" : "", r->group);
	if (r->host[0])
		(void)fprintf(to, "      host: \"%s%s\"\n", r->host[0] == '.' ? "*" : "", r->host);
	show_list(r, to);
	if (r->terminate)
		(void)fputs("      terminate: true\n", to);
	show_bytes("      rate", r->rate_bps, to);
	show_bytes("      bytes", r->bytes, to);
	show_requests(p, r->requests, "      ", to);
}

void show_rules(const struct policy *p, FILE *to)
{
	for (uint32_t i = 0; i < p->nrules; i++)
		show_rule(p, &p->rules[i], to);
}

static void show_inject(const struct policy *p, const struct policy_inject *j, FILE *to)
{
	quoted(to, "    - host", j->host);
	quoted(to, "      upstream", j->upstream);
	if (j->header[0])
		quoted(to, "      header", j->header);
	if (j->prefix[0])
		quoted(to, "      prefix", j->prefix);
	if (j->secret[0])
		quoted(to, "      secret", j->secret);
	(void)fprintf(to, "      allow_loopback: %s\n", truth(j->loopback));
	show_requests(p, j->requests, "      ", to);
}

static void show_budgets(const struct policy *p, FILE *to)
{
	static const char *const scopes[BUDGET_SCOPES] = {"run", "session", "user", "secret"};
	(void)fputs("  budget:\n", to);
	for (int i = 0; i < BUDGET_SCOPES; i++) {
		const struct budget *b = &p->budgets[i];
		const struct {
			const char *key;
			uint64_t value;
		} counts[] = {{"requests", b->requests}, {"tokens", b->tokens}};
		(void)fprintf(to, "    %s:%s\n", scopes[i],
		        b->requests || b->tokens || b->cost_micro || b->bytes ? "" : " {}");
		for (size_t k = 0; k < ARRAY_LEN(counts); k++)
			if (counts[k].value)
				(void)fprintf(to, "      %s: %llu\n", counts[k].key,
				        (unsigned long long)counts[k].value);
		if (b->cost_micro)
			(void)fprintf(to, "      cost: %llu.%06llu\n",
			        (unsigned long long)(b->cost_micro / 1000000),
			        (unsigned long long)(b->cost_micro % 1000000));
		show_bytes("      bytes", b->bytes, to);
	}
}

static void show_given(const struct policy *p, FILE *to)
{
	(void)fputs(p->ngiven ? "secrets:\n" : "secrets: {}\n", to);
	for (uint32_t i = 0; i < p->ngiven; i++)
		(void)fprintf(to, "  %s: { env: %s }\n", p->given[i].secret, p->given[i].variable);
}

static void show_ports(const struct policy *p, FILE *to)
{
	(void)fputs("ports: [", to);
	for (uint32_t i = 0; i < p->ninbound; i++)
		(void)fprintf(to, "%s%u", i ? ", " : "", p->inbound[i]);
	(void)fputs("]\n", to);
}

static void show_egress(const struct policy *p, FILE *to)
{
	(void)fputs(p->nrules ? "egress:\n  allow:\n" : "egress:\n  allow: []\n", to);
	show_rules(p, to);
	(void)fputs(p->ninject ? "  inject:\n" : "  inject: []\n", to);
	for (uint32_t i = 0; i < p->ninject; i++)
		show_inject(p, &p->inject[i], to);
	show_budgets(p, to);
	(void)fprintf(to, "  proxy: %s\n", truth(p->flags & POLICY_PROXY));
}

void show_policy(const struct policy *p, FILE *to)
{
	(void)fprintf(to, "# policy %s, from %s; filter of %u instructions\n", p->name, p->source,
	        p->ninsns);
	quoted(to, "description", p->description);
	show_files(p, to);
	(void)fprintf(to, "seccomp:\n  debug: %s\n  no_unix_sockets: %s\n",
	        truth(p->flags & POLICY_DEBUG), truth(p->flags & POLICY_NO_UNIX_SOCKETS));
	(void)fprintf(to, "proc: %s\ninner_root: %s\n",
	        p->flags & POLICY_STRICT_PROC ? "strict" : "masked",
	        p->flags & POLICY_INNER_ROOT_PACKAGES ? "packages" : "none");
	show_limits(&p->limits, to);
	(void)fputs("layers:\n", to);
	for (int i = 0; i < LAYER_COUNT; i++)
		(void)fprintf(to, "  %s: %s\n", layer_name((enum layer)i),
		        p->warned & LAYER_BIT((enum layer)i) ? "warn" : "require");
	show_egress(p, to);
	show_given(p, to);
	show_ports(p, to);
}
