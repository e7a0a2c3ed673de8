/*
 * harness_json.h - what a harness says of itself, for who may see all of it.
 */
#ifndef SUPERVISOR_HARNESS_JSON_H
#define SUPERVISOR_HARNESS_JSON_H

#include "base/json.h"
#include "policy/harness.h"

/* Members of an object that is open. */
void harness_json(struct jw *w, const struct harness *x);

#endif
