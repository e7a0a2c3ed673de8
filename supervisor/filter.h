/*
 * filter.h - the system calls the supervisor makes once it serves.  Entered
 * after privileges are gone and every thread is started.
 */
#ifndef SUPERVISOR_FILTER_H
#define SUPERVISOR_FILTER_H

#include "base/err.h"

MUST_USE int filter_enter(struct err *e);

#endif
