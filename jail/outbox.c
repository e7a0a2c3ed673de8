#include "jail/outbox.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/msg.h"

#include <string.h>

struct parcel {
	struct list link; /* in outbox.list */
	size_t size;
	int fds[MSG_FDS]; /* owned */
	int nfds;
	_Alignas(8) char bytes[];
};

static void close_all(const int *fds, int nfds)
{
	for (int i = 0; i < nfds; i++)
		fd_close(fds[i]);
}

static void parcel_free(struct outbox *o, struct parcel *p)
{
	list_remove(&p->link);
	o->waiting--;
	close_all(p->fds, p->nfds);
	free(p);
}

void outbox_init(struct outbox *o, int sock)
{
	o->sock = sock;
	o->waiting = 0;
	list_init(&o->list);
}

void outbox_move(struct outbox *from, struct outbox *to)
{
	outbox_init(to, from->sock);
	list_for_each (p, &from->list, struct parcel, link) {
		list_remove(&p->link);
		list_append(&to->list, &p->link);
	}
	to->waiting = from->waiting;
	from->waiting = 0;
}

void outbox_done(struct outbox *o)
{
	if (!o->list.next)
		return; /* never initialised */
	list_for_each (p, &o->list, struct parcel, link)
		parcel_free(o, p);
}

static int queue(struct outbox *o, const void *m, size_t size, const int *fds, int nfds)
{
	if (o->waiting >= OUTBOX_MAX) {
		close_all(fds, nfds);
		return -ENOBUFS;
	}
	struct parcel *p = xcalloc(1, sizeof(*p) + size);
	p->size = size;
	p->nfds = nfds;
	memcpy(p->bytes, m, size);
	if (nfds > 0)
		memcpy(p->fds, fds, (size_t)nfds * sizeof(int));
	list_append(&o->list, &p->link);
	o->waiting++;
	return 0;
}

int outbox_send(struct outbox *o, void *m, size_t size, const int *fds, int nfds)
{
	int r = outbox_waits(o) ? -EAGAIN : msg_send(o->sock, m, size, fds, nfds);
	if (msg_later(r))
		return queue(o, m, size, fds, nfds);
	close_all(fds, nfds);
	return r;
}

int outbox_flush(struct outbox *o)
{
	list_for_each (p, &o->list, struct parcel, link) {
		int r = msg_send(o->sock, p->bytes, p->size, p->fds, p->nfds);
		if (msg_later(r))
			return 0;
		if (r < 0)
			return r;
		parcel_free(o, p);
	}
	return 0;
}
