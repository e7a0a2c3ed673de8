/*
 * list.h - an intrusive doubly linked list.
 *
 * The link is a member of the element; a comment at the member names its list.
 * An element taken off is re-initialised, so removing twice is harmless.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/mem.h"

#include <stdbool.h>

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name)                                                                            \
	{                                                                                          \
		&(name), &(name)                                                                   \
	}

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_append(struct list *head, struct list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}

static inline void list_prepend(struct list *head, struct list *item)
{
	list_append(head->next, item);
}

static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member)                                                             \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))

/* `it` may be removed inside the loop. */
#define list_for_each(it, head, type, member)                                                      \
	for (type *it = list_entry((head)->next, type, member),                                    \
	          *it##_next = list_entry(it->member.next, type, member);                          \
	        &it->member != (head);                                                             \
	        it = it##_next, it##_next = list_entry(it->member.next, type, member))

#endif
