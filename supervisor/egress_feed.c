#include "supervisor/egress_feed.h"

#include "base/mem.h"

#include <stdlib.h>

struct egress_feed {
	char *lines[EGRESS_FEED_LINES]; /* owned; line number i is at i % LINES */
	uint64_t next;
	struct list followers;
};

struct egress_feed *egress_feed_new(void)
{
	struct egress_feed *f = xnew(struct egress_feed);
	list_init(&f->followers);
	return f;
}

static uint64_t oldest(const struct egress_feed *f)
{
	return f->next > EGRESS_FEED_LINES ? f->next - EGRESS_FEED_LINES : 0;
}

void egress_feed_put(struct egress_feed *f, const char *line, size_t n)
{
	char **slot = &f->lines[f->next++ % EGRESS_FEED_LINES];
	free(*slot);
	*slot = xstrndup(line, n);
	list_for_each (w, &f->followers, struct egress_follower, link)
		w->wake(w);
}

void egress_feed_follow(struct egress_feed *f, struct egress_follower *w)
{
	w->next = oldest(f);
	list_append(&f->followers, &w->link);
}

void egress_feed_leave(struct egress_follower *w)
{
	list_remove(&w->link);
}

const char *egress_feed_line(
        const struct egress_feed *f, struct egress_follower *w, uint64_t *ret_lost)
{
	*ret_lost = w->next < oldest(f) ? oldest(f) - w->next : 0;
	w->next += *ret_lost;
	return w->next < f->next ? f->lines[w->next++ % EGRESS_FEED_LINES] : NULL;
}
