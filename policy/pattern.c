/*
 * Theory of operation.  A pattern is parsed into a tree, the tree is written out
 * as a program of steps (Thompson's construction; bounded repetitions are
 * written as often as they say).  Looking is a simulation of all ways through
 * the program at once: a set of steps that wait for the next byte.  Such a set,
 * with what kind of byte came last, is a state; where a byte leads from a state is
 * remembered, so that a byte usually costs one look into a table.
 *
 * Steps that look at what comes next (`$`, \b) are decided when it is there: a
 * state holds the steps before they are followed, and such a match shows with the
 * byte behind it, or with the end.
 */
#include "policy/pattern.h"

#include "base/mem.h"
#include "policy/pattern_tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 20 * PATTERN_SIZE_MAX };

/* ---- the program ---- */

enum op { OP_SET, OP_SPLIT, OP_BOL, OP_EOL, OP_WORD, OP_NOT_WORD, OP_MATCH };

struct step {
	enum op op;
	int to, other; /* SPLIT: both; MATCH: to is the pattern; else: what follows */
	struct byte_set set;
};

/* What the byte before was: NODE_BOL and \b ask. */
enum before { BEFORE_LINE, BEFORE_WORD, BEFORE_OTHER, BEFORES };

enum { STATES = 256, BYTES = 257, END = 256 };
enum { UNKNOWN = -1 }; /* of state.next */

struct state {
	enum before before;
	unsigned n; /* of `waits` */
	int *waits; /* owned: steps, in order */
	int16_t next[BYTES];
};

struct patterns {
	struct step *steps; /* owned */
	int n;
	int *starts; /* owned: of each pattern */
	size_t npatterns;
	struct state *states; /* owned: STATES */
	int nstates, at;
	int result;
	uint64_t cost, bytes;
	/* while a set is made */
	int *list, *stack; /* owned: n each */
	uint32_t *mark, round;
};

struct writer {
	struct patterns *p;
	const struct pattern_tree *x;
	int most;  /* steps there may be */
	int calls; /* repetitions of nothing make no steps */
};

static int add(struct writer *w, enum op op, int to, int other)
{
	if (w->p->n >= w->most)
		return -E2BIG;
	w->p->steps[w->p->n] = (struct step){.op = op, .to = to, .other = other};
	return w->p->n++;
}

/* Written from its end: the step at which it begins when `next` follows it. */
static int write(struct writer *w, int at, int next);

static int write_repeat(struct writer *w, const struct pattern_node *k, int next)
{
	int begin = next;
	if (k->most < 0) {
		int loop = add(w, OP_SPLIT, 0, next);
		int body = loop < 0 ? loop : write(w, k->a, loop);
		if (body < 0)
			return body;
		w->p->steps[loop].to = body;
		begin = loop;
	}
	for (int i = k->least; begin >= 0 && i < k->most; i++) {
		int body = write(w, k->a, begin);
		begin = body < 0 ? body : add(w, OP_SPLIT, body, next);
	}
	for (int i = 0; begin >= 0 && i < k->least; i++)
		begin = write(w, k->a, begin);
	return begin;
}

static int write(struct writer *w, int at, int next)
{
	const struct pattern_node *k = &w->x->nodes[at];
	int r;
	if (++w->calls > CALLS_MAX)
		return -E2BIG;
	switch (k->kind) {
	case NODE_EMPTY:
		return next;
	case NODE_CAT:
		r = write(w, k->b, next);
		return r < 0 ? r : write(w, k->a, r);
	case NODE_ALT: {
		int b = write(w, k->b, next), a = b < 0 ? b : write(w, k->a, next);
		return a < 0 ? a : add(w, OP_SPLIT, a, b);
	}
	case NODE_REPEAT:
		return write_repeat(w, k, next);
	case NODE_SET:
		r = add(w, OP_SET, next, 0);
		if (r >= 0)
			w->p->steps[r].set = k->set;
		return r;
	case NODE_BOL:
		return add(w, OP_BOL, next, 0);
	case NODE_EOL:
		return add(w, OP_EOL, next, 0);
	case NODE_WORD:
		return add(w, OP_WORD, next, 0);
	case NODE_NOT_WORD:
		return add(w, OP_NOT_WORD, next, 0);
	}
	return -EINVAL;
}

static int add_pattern(struct patterns *p, const char *text, int most, struct err *e)
{
	struct pattern_tree *x = xnew(struct pattern_tree);
	struct writer w = {.p = p, .x = x, .most = most};
	int root = pattern_parse(x, text, e);
	int end = root < 0 ? root : add(&w, OP_MATCH, (int)p->npatterns, 0);
	int begin = end < 0 ? end : write(&w, root, end);
	free(x);
	if (root < 0)
		return root;
	if (begin < 0)
		return err_set(e, -E2BIG, "with its repetitions it is too long");
	p->starts[p->npatterns++] = begin;
	return 0;
}

/* ---- looking ---- */

static void visit(struct patterns *p, int step, size_t *depth)
{
	if (p->mark[step] == p->round)
		return;
	p->mark[step] = p->round;
	p->stack[(*depth)++] = step;
}

static bool holds(enum op op, enum before before, int next)
{
	bool ends = next == END || next == '\n';
	bool edge = (before == BEFORE_WORD) != (next != END && byte_is_word((unsigned char)next));
	switch (op) {
	case OP_BOL:
		return before == BEFORE_LINE;
	case OP_EOL:
		return ends;
	case OP_WORD:
		return edge;
	case OP_NOT_WORD:
		return !edge;
	case OP_SET:
	case OP_SPLIT:
	case OP_MATCH:
		break;
	}
	return true;
}

/* Follows all that waits, with `next` behind it: the steps that take it are p->list, in order of
 * nothing; gives the pattern that is found, or PATTERN_NONE. */
static int follow(struct patterns *p, const struct state *s, int next, unsigned *ret_n)
{
	size_t depth = 0;
	int found = PATTERN_NONE;
	unsigned n = 0;
	p->round++;
	for (unsigned i = 0; i < s->n; i++)
		visit(p, s->waits[i], &depth);
	for (size_t i = 0; i < p->npatterns; i++)
		visit(p, p->starts[i], &depth);
	while (depth) {
		const struct step *x = &p->steps[p->stack[--depth]];
		p->cost++;
		if (x->op == OP_MATCH) {
			if (found < 0 || x->to < found)
				found = x->to;
		} else if (x->op == OP_SET) {
			if (next != END && byte_set_has(&x->set, (unsigned char)next))
				p->list[n++] = x->to;
		} else if (holds(x->op, s->before, next)) {
			visit(p, x->to, &depth);
			if (x->op == OP_SPLIT)
				visit(p, x->other, &depth);
		}
	}
	*ret_n = n;
	return found;
}

static enum before kind_of(int c)
{
	return c == '\n'                        ? BEFORE_LINE
	       : byte_is_word((unsigned char)c) ? BEFORE_WORD
	                                        : BEFORE_OTHER;
}

/* Is one there whatever comes next?  Who waited for the next byte would have let this one pass. */
static int found_now(struct patterns *p, unsigned n, enum before before)
{
	size_t depth = 0;
	int found = PATTERN_NONE;
	p->round++;
	for (unsigned i = 0; i < n; i++)
		visit(p, p->list[i], &depth);
	while (depth) {
		const struct step *x = &p->steps[p->stack[--depth]];
		p->cost++;
		if (x->op == OP_MATCH && (found < 0 || x->to < found))
			found = x->to;
		if (x->op == OP_SPLIT || (x->op == OP_BOL && before == BEFORE_LINE))
			visit(p, x->to, &depth);
		if (x->op == OP_SPLIT)
			visit(p, x->other, &depth);
	}
	return found;
}

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

static void forget(struct patterns *p)
{
	for (int i = 0; i < p->nstates; i++)
		free(p->states[i].waits);
	p->nstates = 0;
}

/* The state in which p->list waits; without doubles. */
static int state_of(struct patterns *p, unsigned n, enum before before, bool *ret_forgot)
{
	unsigned k = 0;
	qsort(p->list, n, sizeof(*p->list), by_number);
	for (unsigned i = 0; i < n; i++)
		if (k == 0 || p->list[k - 1] != p->list[i])
			p->list[k++] = p->list[i];
	for (int i = 0; i < p->nstates; i++) {
		const struct state *s = &p->states[i];
		if (s->before == before && s->n == k &&
		        memcmp(s->waits, p->list, k * sizeof(*p->list)) == 0)
			return i;
	}
	*ret_forgot = p->nstates == STATES;
	if (*ret_forgot)
		forget(p);
	struct state *s = &p->states[p->nstates];
	s->before = before;
	s->n = k;
	s->waits = xcalloc(k + 1, sizeof(*s->waits));
	memcpy(s->waits, p->list, k * sizeof(*p->list));
	for (int i = 0; i < BYTES; i++)
		s->next[i] = UNKNOWN;
	return p->nstates++;
}

/* Where `c` leads, for the first time. */
static void learn(struct patterns *p, int c)
{
	unsigned n;
	bool forgot = false;
	int from = p->at;
	p->cost += (uint64_t)p->nstates; /* they are looked through */
	int found = follow(p, &p->states[from], c, &n);
	if (found < 0 && c != END)
		found = found_now(p, n, kind_of(c));
	if (found >= 0)
		p->result = found;
	if (found >= 0 || c == END)
		return;
	int to = state_of(p, n, kind_of(c), &forgot);
	if (!forgot)
		p->states[from].next[c] = (int16_t)to;
	p->at = to;
}

void patterns_begin(struct patterns *p)
{
	bool forgot;
	p->at = state_of(p, 0, BEFORE_LINE, &forgot);
	p->result = PATTERN_NONE;
	p->cost = p->bytes = 0;
}

int patterns_feed(struct patterns *p, const char *bytes, size_t n)
{
	p->bytes += n;
	const uint64_t most = PATTERN_COST + p->bytes * PATTERN_COST_BYTE;
	for (size_t i = 0; i < n && p->result == PATTERN_NONE; i++) {
		unsigned char c = (unsigned char)bytes[i];
		int next = p->states[p->at].next[c];
		if (next >= 0)
			p->at = next;
		else if (p->cost > most)
			p->result = PATTERN_COSTLY;
		else
			learn(p, c);
	}
	return p->result;
}

int patterns_end(struct patterns *p)
{
	if (p->result == PATTERN_NONE)
		learn(p, END);
	return p->result;
}

int patterns_find(struct patterns *p, const char *bytes, size_t n)
{
	patterns_begin(p);
	int r = patterns_feed(p, bytes, n);
	return r == PATTERN_NONE ? patterns_end(p) : r;
}

/* ---- life ---- */

static struct patterns *blank(size_t n, int most)
{
	struct patterns *p = xnew(struct patterns);
	p->steps = xcalloc((size_t)most, sizeof(*p->steps));
	p->starts = xcalloc(n + 1, sizeof(*p->starts));
	return p;
}

static void make_ready(struct patterns *p)
{
	size_t n = (size_t)p->n + 1;
	p->list = xcalloc(n, sizeof(*p->list));
	p->stack = xcalloc(n, sizeof(*p->stack));
	p->mark = xcalloc(n, sizeof(*p->mark));
	p->states = xcalloc(STATES, sizeof(*p->states));
	patterns_begin(p);
}

struct patterns *patterns_new(const char *const *texts, size_t n, struct err *e)
{
	struct patterns *p = blank(n, PATTERN_SET_MAX);
	for (size_t i = 0; i < n; i++)
		if (add_pattern(p, texts[i], PATTERN_SET_MAX, e) < 0) {
			patterns_free(p);
			return NULL;
		}
	make_ready(p);
	return p;
}

int pattern_check(const char *text, struct err *e)
{
	struct patterns *p = blank(1, PATTERN_SIZE_MAX);
	int r = add_pattern(p, text, PATTERN_SIZE_MAX, e);
	if (r == 0) {
		make_ready(p);
		if (patterns_find(p, "", 0) >= 0 && patterns_find(p, "\1", 1) >= 0)
			r = err_set(e, -EINVAL, "it is found in nothing at all, so everywhere");
	}
	patterns_free(p);
	return r;
}

void patterns_free(struct patterns *p)
{
	if (!p)
		return;
	if (p->states)
		forget(p);
	free(p->states);
	free(p->steps);
	free(p->starts);
	free(p->list);
	free(p->stack);
	free(p->mark);
	free(p);
}
