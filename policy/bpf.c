#include "policy/bpf.h"
#include "policy/arch.h"
#include "policy/policy.h"
#include "policy/policy_check.h"
#include "policy/syscalls.h"

#include <linux/seccomp.h>
#include <string.h>

/*
 * The program is written from its end to its start: jumps go forward only, so
 * what a jump leads to is always there already, and a shared return or rule is
 * simply a label that has been seen.  A label is the index of an instruction.
 *
 *	ld arch; not ours: kill;  ld nr; x32: kill;  tree over nr -> leaves
 *
 * A leaf is a return, or the rules of one system call.
 */

/* x32: other calls under the architecture x86-64.  No number of another one is near. */
#define FOREIGN_NR 0x40000000u

enum { LABEL_NONE = -1, LEAVES_MAX = 64, VERDICTS_MAX = 16 };

struct leaf {
	const struct syscall_rule *rules;
	size_t nrules;
	uint32_t otherwise;
	int label; /* where it has been written */
};

struct program {
	struct sock_filter insns[POLICY_INSNS];
	int first; /* lowest index in use */
	bool full;
	const struct arch *arch;
	uint32_t flags;
	struct leaf leaves[LEAVES_MAX];
	int nleaves;
	struct {
		uint32_t verdict;
		int label;
	} returns[VERDICTS_MAX];
	int nreturns;
	/* ranges of numbers with one leaf */
	int start[SYSCALL_NR_MAX + 2], leaf_of[SYSCALL_NR_MAX + 2];
	int nranges;
};

/* ---- instructions ---- */

static int put(struct program *p, struct sock_filter f)
{
	if (p->first == 0) {
		p->full = true;
		return 0;
	}
	p->insns[--p->first] = f;
	return p->first;
}

/* A conditional jump reaches 255 instructions; farther, an unconditional one stands between. */
static int near(struct program *p, int label)
{
	/* 253: the other branch may need a stepping stone too. */
	if (label - p->first <= 253)
		return label;
	return put(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(label - p->first)));
}

static int jump(struct program *p, uint16_t test, uint32_t k, int yes, int no)
{
	yes = near(p, yes);
	no = near(p, no);
	return put(p, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), k,
	                      (uint8_t)(yes - p->first), (uint8_t)(no - p->first)));
}

static int load(struct program *p, size_t offset)
{
	return put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static int returns(struct program *p, uint32_t verdict)
{
	int i = 0;
	while (i < p->nreturns && p->returns[i].verdict != verdict)
		i++;
	if (i == p->nreturns) {
		if (i == VERDICTS_MAX) {
			p->full = true;
			return 0;
		}
		p->nreturns++;
		p->returns[i].verdict = verdict;
		p->returns[i].label = LABEL_NONE;
	}
	/* A new return costs what a stepping stone to the old one would. */
	if (p->returns[i].label == LABEL_NONE || p->returns[i].label - p->first > 250)
		p->returns[i].label =
		        put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
	return p->returns[i].label;
}

/* ---- rules ---- */

static size_t low_half(unsigned arg)
{
	size_t at = offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t);
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? at : at + 4;
}

static size_t high_half(unsigned arg)
{
	return low_half(arg) ^ 4;
}

static int test(struct program *p, const struct syscall_test *t, int yes, int no)
{
	if (t->wide) {
		jump(p, BPF_JEQ, 0, yes, no);
		yes = load(p, high_half(t->arg));
	}
	int miss = no;
	for (int i = t->n - 1; i >= 0; i--)
		miss = jump(p, BPF_JEQ, t->values[i], yes, miss);
	if (t->mask != 0xffffffffu)
		put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask));
	return load(p, low_half(t->arg));
}

static int leaf(struct program *p, struct leaf *l)
{
	if (l->nrules == 0)
		return returns(p, l->otherwise);
	if (l->label != LABEL_NONE)
		return l->label;
	int next = returns(p, l->otherwise);
	for (size_t i = l->nrules; i-- > 0;) {
		const struct syscall_rule *r = &l->rules[i];
		if (r->unless & p->flags)
			continue;
		int yes = returns(p, r->verdict);
		for (int t = r->n - 1; t >= 0; t--)
			yes = test(p, &r->tests[t], yes, next);
		next = yes;
	}
	return l->label = next;
}

/* ---- the tree ---- */

static int leaf_find(struct program *p, const struct syscall_row *row)
{
	struct leaf want = {.label = LABEL_NONE, .otherwise = SYSCALLS_DEFAULT};
	if (row) {
		want.rules = row->rules;
		want.nrules = row->nrules;
		want.otherwise = syscalls_otherwise(row, p->flags);
	}
	for (int i = 0; i < p->nleaves; i++)
		if (p->leaves[i].rules == want.rules && p->leaves[i].otherwise == want.otherwise)
			return i;
	if (p->nleaves == LEAVES_MAX) {
		p->full = true;
		return 0;
	}
	p->leaves[p->nleaves] = want;
	return p->nleaves++;
}

static void ranges(struct program *p)
{
	int of[SYSCALL_NR_MAX + 2];
	int none = leaf_find(p, NULL);
	for (int nr = 0; nr <= SYSCALL_NR_MAX + 1; nr++)
		of[nr] = none;
	for (size_t i = 0; i < syscalls_count(); i++) {
		const struct syscall_row *row = syscalls_row(i);
		int nr = syscalls_number(row, p->arch);
		if (nr >= 0 && nr <= SYSCALL_NR_MAX)
			of[nr] = leaf_find(p, row);
	}
	for (int nr = 0; nr <= SYSCALL_NR_MAX + 1; nr++) {
		if (nr > 0 && of[nr] == of[nr - 1])
			continue;
		p->start[p->nranges] = nr;
		p->leaf_of[p->nranges++] = of[nr];
	}
}

static int tree(struct program *p, int lo, int hi)
{
	if (hi - lo == 1)
		return leaf(p, &p->leaves[p->leaf_of[lo]]);
	int mid = lo + (hi - lo) / 2;
	int right = tree(p, mid, hi);
	int left = tree(p, lo, mid);
	return jump(p, BPF_JGE, (uint32_t)p->start[mid], right, left);
}

int bpf_compile(const struct arch *arch, uint32_t flags, struct sock_filter *insns, struct err *e)
{
	struct program p = {.first = POLICY_INSNS, .arch = arch, .flags = flags};
	ranges(&p);
	int top = tree(&p, 0, p.nranges);
	jump(&p, BPF_JGE, FOREIGN_NR, returns(&p, SECCOMP_RET_KILL_PROCESS), top);
	int number = load(&p, offsetof(struct seccomp_data, nr));
	jump(&p, BPF_JEQ, arch->audit, number, returns(&p, SECCOMP_RET_KILL_PROCESS));
	load(&p, offsetof(struct seccomp_data, arch));
	if (p.full)
		return err_set(e, -E2BIG, "the filter has more than %d instructions", POLICY_INSNS);
	int n = POLICY_INSNS - p.first;
	memcpy(insns, p.insns + p.first, (size_t)n * sizeof(*insns));
	int r = bpf_check(insns, (size_t)n, e);
	return r < 0 ? r : n;
}

/* ---- running it ---- */

static bool holds(const struct sock_filter *f, uint32_t a)
{
	switch (BPF_OP(f->code)) {
	case BPF_JEQ:
		return a == f->k;
	case BPF_JGT:
		return a > f->k;
	case BPF_JGE:
		return a >= f->k;
	default:
		return (a & f->k) != 0; /* BPF_JSET: bpf_check lets nothing else by */
	}
}

int bpf_run(
        const struct sock_filter *insns, size_t n, const struct seccomp_data *data, uint32_t *ret)
{
	uint32_t a = 0;
	for (size_t i = 0; i < n; i++) {
		const struct sock_filter *f = &insns[i];
		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			if (f->k > sizeof(*data) - sizeof(a))
				return -EBADMSG;
			memcpy(&a, (const char *)data + f->k, sizeof(a));
			break;
		case BPF_ALU:
			a &= f->k;
			break;
		case BPF_JMP:
			if (BPF_OP(f->code) == BPF_JA)
				i += f->k;
			else
				i += holds(f, a) ? f->jt : f->jf;
			break;
		case BPF_RET:
			*ret = f->k;
			return 0;
		default:
			return -EBADMSG;
		}
	}
	return -EBADMSG;
}
