/*
 * repo_url.h - what a checkout may come from, as far as its text tells: of a harness and of a
 * client's request.  Whether a policy leads there is supervisor/repo.h's.
 */
#ifndef POLICY_REPO_URL_H
#define POLICY_REPO_URL_H

#include "base/err.h"

#include <stdbool.h>

enum { REPO_URL_MAX = 2048, REPO_REF_MAX = 255 };

/* https:// or http://, a host, a path, and no login in it.  0, or -EINVAL naming `path`. */
MUST_USE int repo_url_check(const char *url, const char *path, struct err *e);
bool repo_ref_ok(const char *text);
/* URL[#REF]. */
MUST_USE int repo_text_check(const char *text, const char *path, struct err *e);

#endif
