/*
 * checkout.h - `abctl run --repo`: a URL is the daemon's to clone; of a directory the caller's git
 * makes a bundle, which is put into the session's workspace.
 *
 * The directory is read as the caller, and nothing of it is run: no hook, no filter, no program
 * that its configuration names.
 */
#ifndef ABCTL_CHECKOUT_H
#define ABCTL_CHECKOUT_H

#include "abctl/verb.h"
#include "base/err.h"

#include <stdbool.h>

struct checkout {
	char *url, *bundle, *ref; /* owned: `repo` of the request; all NULL: none */
};
void checkout_done(struct checkout *c);
#define auto_checkout __attribute__((cleanup(checkout_done)))

struct checkout_ask {
	const char *session, *harness; /* USER/GOAL; whose run it is for */
	const char *what;              /* URL[#REF] or DIR[#REF] */
	bool dirty;                    /* with what is not committed */
};
/* 0, or an exit code after having said why. */
MUST_USE int checkout_bring(
        const struct cli *cli, const struct checkout_ask *a, struct checkout *ret);

#endif
