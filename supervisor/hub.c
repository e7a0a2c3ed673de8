#include "supervisor/hub.h"

#include "base/mem.h"
#include "supervisor/hash.h"
#include "supervisor/loop.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sessions followed at once are at most as many as there are connections. */
enum { BUCKETS = 1024 };

/* A session that somebody follows: an event wakes thousands of followers with one mark. */
struct hub_topic {
	struct list link; /* in a bucket */
	struct list subs; /* of hub_sub.link; never empty */
	bool due;
	struct list due_link; /* in hub.news */
	char session[ID_MAX];
};

struct hub {
	struct loop *loop;            /* borrowed; NULL in tests */
	struct list buckets[BUCKETS]; /* hub_topic.link, by hash of the session */
	struct list news;             /* hub_topic.due_link */
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
	list_init(&h->news);
	list_init(&h->due);
	h->hook.run = run_hook;
	h->loop = l;
	if (l)
		loop_hook(l, &h->hook);
	return h;
}

void hub_free(struct hub *h)
{
	for (size_t i = 0; h && i < BUCKETS; i++)
		list_for_each (t, &h->buckets[i], struct hub_topic, link)
			free(t);
	free(h);
}

static struct list *bucket(struct hub *h, const char *session)
{
	return &h->buckets[hash_text(session) % BUCKETS];
}

static struct hub_topic *topic_of(struct hub *h, const char *session)
{
	list_for_each (t, bucket(h, session), struct hub_topic, link)
		if (strcmp(t->session, session) == 0)
			return t;
	return NULL;
}

void hub_subscribe(struct hub *h, const char *session, struct hub_sub *s)
{
	struct hub_topic *t = topic_of(h, session);
	if (!t) {
		t = xnew(struct hub_topic);
		(void)str_copy(t->session, sizeof(t->session), session); /* an id: fits */
		list_init(&t->subs);
		list_init(&t->due_link);
		list_append(bucket(h, session), &t->link);
	}
	s->topic = t;
	s->due = false;
	list_init(&s->due_link);
	list_append(&t->subs, &s->link);
}

void hub_unsubscribe(struct hub *h, struct hub_sub *s)
{
	struct hub_topic *t = take(s->topic);
	(void)h;
	if (!t)
		return; /* not subscribed */
	list_remove(&s->link);
	list_remove(&s->due_link);
	s->due = false;
	if (!list_empty(&t->subs))
		return;
	list_remove(&t->link);
	list_remove(&t->due_link);
	free(t);
}

/* From within a hook that runs after ours: the next turn must come though nothing else does. */
static void expect(struct hub *h)
{
	if (h->loop && list_empty(&h->due) && list_empty(&h->news))
		loop_again(h->loop);
}

static void wake_later(struct hub *h, struct hub_sub *s)
{
	if (s->due)
		return;
	s->due = true;
	list_append(&h->due, &s->due_link);
}

void hub_kick(struct hub *h, struct hub_sub *s)
{
	expect(h);
	wake_later(h, s);
}

void hub_notify(struct hub *h, const char *session)
{
	struct hub_topic *t = topic_of(h, session);
	if (!t || t->due)
		return;
	expect(h);
	t->due = true;
	list_append(&h->news, &t->due_link);
}

static void spread(struct hub *h)
{
	struct hub_topic *t;
	while ((t = list_first(&h->news, struct hub_topic, due_link))) {
		list_remove(&t->due_link);
		t->due = false;
		list_for_each (s, &t->subs, struct hub_sub, link)
			wake_later(h, s);
	}
}

/* Takes the head each time: a wake may remove any subscriber.  Those kicked meanwhile wait for the
 * next turn, so that one busy session cannot hold the turn. */
void hub_flush(struct hub *h)
{
	struct list now;
	list_init(&now);
	spread(h);
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
