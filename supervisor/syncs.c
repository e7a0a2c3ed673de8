#include "supervisor/syncs.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

/* As many as there are runs at once by default; each waits for the disk and has a small stack. */
enum { HELPERS = 7, STACK = 64 << 10 };

struct syncs {
	pthread_t threads[HELPERS];
	unsigned nthreads;
	pthread_mutex_t lock; /* all below */
	pthread_cond_t work, over;
	struct sync_item *items; /* borrowed while syncs_run waits */
	size_t n, next, left;    /* next: not yet taken; left: not yet synced */
	bool closing;
};

/* Takes one after another; the lock is held but for the syncing. */
static void help(struct syncs *s)
{
	while (s->next < s->n) {
		struct sync_item *x = &s->items[s->next++];
		pthread_mutex_unlock(&s->lock);
		x->rc = fdatasync(x->fd) < 0 ? -errno : 0;
		pthread_mutex_lock(&s->lock);
		if (--s->left == 0)
			pthread_cond_signal(&s->over);
	}
}

static void *helper(void *arg)
{
	struct syncs *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		help(s);
		if (s->closing)
			break;
		pthread_cond_wait(&s->work, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct syncs *syncs_new(void)
{
	struct syncs *s = xnew(struct syncs);
	pthread_attr_t a;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->over, NULL);
	pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, STACK); /* else it is larger */
	while (s->nthreads < HELPERS &&
	        pthread_create(&s->threads[s->nthreads], &a, helper, s) == 0)
		s->nthreads++;
	pthread_attr_destroy(&a);
	return s;
}

void syncs_run(struct syncs *s, struct sync_item *items, size_t n)
{
	pthread_mutex_lock(&s->lock);
	s->items = items;
	s->next = 0;
	s->n = s->left = n;
	for (size_t i = 1; i < n && i <= s->nthreads; i++)
		pthread_cond_signal(&s->work);
	help(s);
	while (s->left)
		pthread_cond_wait(&s->over, &s->lock);
	s->items = NULL;
	s->n = s->next = 0;
	pthread_mutex_unlock(&s->lock);
}

void syncs_free(struct syncs *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < s->nthreads; i++)
		pthread_join(s->threads[i], NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->over);
	free(s);
}
