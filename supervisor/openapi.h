/*
 * openapi.h - the OpenAPI 3.1 document, made from the table of routes and a
 * list of schemas, so that it cannot be older than the code.
 */
#ifndef SUPERVISOR_OPENAPI_H
#define SUPERVISOR_OPENAPI_H

#include "base/buf.h"

void openapi_print(struct buf *to);

#endif
