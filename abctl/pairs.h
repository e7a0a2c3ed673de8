/*
 * pairs.h - options that are given as K=V, once for each K, as an object of a request.
 */
#ifndef ABCTL_PAIRS_H
#define ABCTL_PAIRS_H

#include "abctl/opts.h"
#include "base/json.h"

/* Faultless words of `--option`: each K=V, UTF-8, no K twice.  0, or an exit code after having said
 * why. */
MUST_USE int pairs_check(const char *option, const struct opt_list *list);
/* Their members, without braces. */
void pairs_write(struct jw *w, const struct opt_list *list);
/* Is there one of this name? */
bool pairs_have(const struct opt_list *list, const char *name);
/* Check and write, as the object `key`; nothing where the list is empty.  As pairs_check. */
MUST_USE int pairs_object(
        struct jw *w, const char *key, const char *option, const struct opt_list *list);

#endif
