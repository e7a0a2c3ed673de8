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

static void show_egress(const struct policy *p, FILE *to)
{
	(void)fputs(p->ninject ? "egress:\n  inject:\n" : "egress:\n  inject: []\n", to);
	for (uint32_t i = 0; i < p->ninject; i++) {
		const struct policy_inject *j = &p->inject[i];
		quoted(to, "    - host", j->host);
		quoted(to, "      upstream", j->upstream);
		if (j->header[0])
			quoted(to, "      header", j->header);
		if (j->prefix[0])
			quoted(to, "      prefix", j->prefix);
		if (j->secret[0])
			quoted(to, "      secret", j->secret);
		(void)fprintf(to, "      allow_loopback: %s\n", truth(j->loopback));
	}
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
}
