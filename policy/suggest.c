#include "policy/suggest.h"
#include "base/mem.h"
#include "policy/advice.h"
#include "policy/builtin.h"
#include "policy/groups.h"
#include "policy/lookup.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENTRIES_MAX = 512, /* different ones; more are counted and not listed */
	REMARK_MAX = 512,
	FIELDS = 7,
};

/* One line of the answer: an entry, or a remark where there is none. */
struct entry {
	char text[ADVICE_ENTRY_MAX]; /* YAML; of a group "@name"; of a remark HOST:PORT */
	char hosts[REMARK_MAX];      /* of a group: which of it */
	char by[REMARK_MAX];         /* what was going on, or why there is no entry */
	bool remark;
	unsigned long long times;
};

struct suggestion {
	struct entry *entries; /* owned, ENTRIES_MAX */
	size_t n;
	unsigned long long unlisted;
	struct yaml_doc *groups; /* owned */
};

/* Of UTF-8, how many bytes at `at` are a control character or, for YAML, the end of a line. */
static size_t unfit(const char *at)
{
	const unsigned char *p = (const unsigned char *)at;
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 1;
	if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)
		return 2;
	return p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9) ? 3 : 0;
}

/* In a comment: one line, printable. */
static void plain(char *text)
{
	for (size_t n; *text; text += n ? n : 1) {
		n = unfit(text);
		memset(text, ' ', n);
	}
}

static void append(char *to, size_t size, const char *word)
{
	size_t n = strlen(to), len = strlen(word);
	const char *at = strstr(to, word);
	bool known = at && (at == to || at[-1] == ' ') && (!at[len] || at[len] == ',');
	if (word[0] && !known && n + len + 3 < size)
		snprintf(to + n, size - n, "%s%s", n ? ", " : "", word);
}

static struct entry *find(struct suggestion *s, const char *text, bool remark)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].remark == remark && strcmp(s->entries[i].text, text) == 0)
			return &s->entries[i];
	if (s->n == ENTRIES_MAX)
		return NULL;
	struct entry *e = &s->entries[s->n++];
	(void)str_copy(e->text, sizeof(e->text), text);
	e->remark = remark;
	return e;
}

/* The group that has this word, or NULL. */
static const char *group_of(const struct suggestion *s, const char *entry)
{
	char word[ADVICE_ENTRY_MAX];
	size_t n = strlen(entry);
	bool quoted = n > 2 && entry[0] == '"';
	snprintf(word, sizeof(word), "%.*s", (int)(quoted ? n - 2 : n), entry + quoted);
	yaml_each (group, yaml_root(s->groups)) {
		yaml_each (it, yaml_get(group, "allow"))
			if (strcmp(it->text, word) == 0)
				return group->key;
	}
	return NULL;
}

static void take_refusal(struct suggestion *s, char *const f[FIELDS])
{
	const struct advice a = {
	        .remedy = strcmp(f[4], "add") == 0 ? EGRESS_REMEDY_ALLOW : EGRESS_REMEDY_NONE,
	        .protocol = (enum egress_protocol)egress_protocol_by_name(f[1]),
	        .host = f[3],
	        .port = (unsigned)strtoul(f[2], NULL, 10)};
	char text[ADVICE_ENTRY_MAX];
	/* Numbers say nothing about whose they are: nobody should allow them unread. */
	bool number = cidr_parse(a.host, &(struct cidr){.bits = 0});
	bool remark = number || !advice_entry(&a, text);
	const char *group = remark ? NULL : group_of(s, text);
	const char *why = advice_why_none(&a);
	if (remark)
		snprintf(text, sizeof(text), "%.*s:%u", POLICY_HOST_MAX, a.host, a.port);
	else if (group)
		snprintf(text, sizeof(text), "\"@%s\"", group);
	struct entry *e = find(s, text, remark);
	unsigned long long times = strtoull(f[0], NULL, 10);
	if (!e) {
		s->unlisted += times;
		return;
	}
	e->times += times;
	if (group)
		append(e->hosts, sizeof(e->hosts), a.host);
	if (remark)
		append(e->by, sizeof(e->by),
		        why                  ? why
		        : number && a.remedy ? "a number, not a name"
		                             : f[6]);
	else
		append(e->by, sizeof(e->by), f[5]);
}

static int read_refusals(struct suggestion *s)
{
	char *line = NULL;
	size_t room = 0;
	int bad = 0;
	while (!bad && getline(&line, &room, stdin) > 0) {
		char *f[FIELDS], *rest = line;
		size_t k = 0;
		line[strcspn(line, "\n")] = '\0';
		for (char *it; k < FIELDS && (it = strsep(&rest, "\t"));) {
			plain(it);
			f[k++] = it;
		}
		bad = k != FIELDS || rest || egress_protocol_by_name(f[1]) < 0;
		if (!bad)
			take_refusal(s, f);
	}
	free(line);
	return bad ? report_usage("suggest: a line of the input is not understood") : POLICYC_OK;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->text, ((const struct entry *)b)->text);
}

static void print_entries(const struct suggestion *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct entry *e = &s->entries[i];
		if (e->remark)
			continue;
		printf("    # refused %llu time%s%s%s%s%s\n", e->times, e->times == 1 ? "" : "s",
		        e->hosts[0] ? ": " : "", e->hosts, e->by[0] ? "; during " : "", e->by);
		printf("    - %s\n", e->text);
	}
}

static void print_remarks(const struct suggestion *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct entry *e = &s->entries[i];
		if (e->remark)
			printf("# not allowed: %s, refused %llu time%s: %s\n", e->text, e->times,
			        e->times == 1 ? "" : "s", e->by);
	}
	if (s->unlisted)
		printf("# and %llu refusals of more hosts than are listed\n", s->unlisted);
}

/* A policy extends a built-in one; a file hands on what it extends itself. */
static const char *base_of(const struct lookup *l, const char *policy)
{
	if (builtin_find(policy) >= 0 && (!l || strcmp(l->policy.source, "built-in") == 0))
		return policy;
	const struct yaml_node *n = l ? yaml_get(yaml_root(l->docs[0]), "extends") : NULL;
	return n && n->text ? n->text : "default";
}

static void print(const struct suggestion *s, const char *policy, const char *of)
{
	struct err e;
	auto_lookup struct lookup *l = lookup_policy(policy, &e);
	const char *base = base_of(l, policy);
	size_t entries = 0;
	for (size_t i = 0; i < s->n; i++)
		entries += !s->entries[i].remark;
	printf("# What %s was refused under policy '%s'.  Read each line: it lets an agent out.\n",
	        of, policy);
	if (!l)
		printf("# Policy '%s' cannot be read here: keep the other entries of its lists.\n",
		        policy);
	else if (strcmp(base, policy) != 0)
		printf("# Policy '%s' is a file: put this list into it.\n", policy);
	printf("extends: %s\n", base);
	print_remarks(s);
	if (!entries) {
		printf("# nothing that a policy could allow was refused\n");
		return;
	}
	printf("egress:\n  allow:\n");
	if (l && l->policy.nrules)
		show_rules(&l->policy, stdout);
	print_entries(s);
}

int suggest_main(int argc, char **argv)
{
	struct err e;
	if (argc != 2)
		return report_usage("suggest POLICY OF");
	plain(argv[0]);
	plain(argv[1]);
	struct suggestion s = {.groups = groups_parse(&e)};
	if (!s.groups)
		return report_system(&e);
	s.entries = xcalloc(ENTRIES_MAX, sizeof(*s.entries));
	int code = read_refusals(&s);
	if (code == POLICYC_OK) {
		qsort(s.entries, s.n, sizeof(*s.entries), by_text);
		print(&s, argv[0], argv[1]);
	}
	free(s.entries);
	yaml_doc_free(s.groups);
	return code;
}
