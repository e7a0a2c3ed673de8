#include "supervisor/hub.h"

#include "base/mem.h"
#include "supervisor/hash.h"
#include "supervisor/loop.h"

#include <stdint.h>
#include <string.h>

/* 1024 sessions followed at once is far beyond LIMIT_CONNECTIONS / 1 in practice. */
enum { BUCKETS = 1024 };

struct hub {
	struct loop *loop;            /* borrowed; NULL in tests */
	struct list buckets[BUCKETS]; /* hub_sub.link, by hash of the session */
	struct list due;              /* hub_sub.due_link */
	struct loop_hook hook;
};

static void run_hook(struct loop_hook *h)
{
	hub_flush(container_of(h, struct hub, hook));
}

struct hub *hub_new(struct loop *l)
{
	struct hub *h = xnew(struct hub);
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&h->buckets[i]);
	list_init(&h->due);
	h->hook.run = run_hook;
	h->loop = l;
	if (l)
		loop_hook(l, &h->hook);
	return h;
}

void hub_free(struct hub *h)
{
	free(h);
}

static struct list *bucket(struct hub *h, const char *session)
{
	return &h->buckets[hash_text(session) % BUCKETS];
}

void hub_subscribe(struct hub *h, const char *session, struct hub_sub *s)
{
	(void)str_copy(s->session, sizeof(s->session), session); /* an id: fits */
	s->due = false;
	list_init(&s->due_link);
	list_append(bucket(h, session), &s->link);
}

void hub_unsubscribe(struct hub *h, struct hub_sub *s)
{
	(void)h;
	if (!s->link.next)
		return; /* never subscribed */
	list_remove(&s->link);
	list_remove(&s->due_link);
	s->due = false;
}

void hub_kick(struct hub *h, struct hub_sub *s)
{
	if (s->due)
		return;
	/* From within a hook that runs after ours: the next turn must come though nothing else
	 * does. */
	if (h->loop && list_empty(&h->due))
		loop_again(h->loop);
	s->due = true;
	list_append(&h->due, &s->due_link);
}

void hub_notify(struct hub *h, const char *session)
{
	list_for_each (s, bucket(h, session), struct hub_sub, link)
		if (strcmp(s->session, session) == 0)
			hub_kick(h, s);
}

/* Takes the head each time: a wake may remove any subscriber.  Those kicked meanwhile wait for the
 * next turn, so that one busy session cannot hold the turn. */
void hub_flush(struct hub *h)
{
	struct list now;
	list_init(&now);
	while (!list_empty(&h->due)) {
		struct list *l = h->due.next;
		list_remove(l);
		list_append(&now, l);
	}
	while (!list_empty(&now)) {
		struct hub_sub *s = list_entry(now.next, struct hub_sub, due_link);
		list_remove(&s->due_link);
		s->due = false;
		s->wake(s);
	}
}
