/*
 * routes.h - which path means what: one table of method, pattern, role, body
 * limit and handler, from which requests are dispatched and the OpenAPI
 * document is made.
 *
 * Patterns are literal segments and {name}: one segment, {name...}: the rest,
 * slashes included, or {name*}: the rest as it was sent, which may be empty and is
 * no parameter.  Parameters are decoded after the split, so that an encoded slash
 * stays inside its segment.
 */
#ifndef SUPERVISOR_ROUTES_H
#define SUPERVISOR_ROUTES_H

#include "supervisor/auth.h"
#include "supervisor/http.h"
#include "supervisor/scope.h"

#include <stddef.h>
#include <stdint.h>

struct daemon;

#define ROUTE_ANY "*" /* every method; every query */

struct route {
	const char *method, *pattern;
	enum auth_role role; /* at least */
	int64_t body_limit;  /* 0: no body */
	void (*handler)(struct daemon *d, struct http_request *r);
	const char *summary;            /* for the OpenAPI document */
	const char *query;              /* names of query parameters, by spaces; NULL: none */
	const char *request, *response; /* schema names; NULL: none, a problem or bytes */
	enum scope scope;               /* how keys see it */
	enum apikey_verb verb;          /* that a key needs */
};

/* The table, in the order of docs/API.md. */
const struct route *routes_table(size_t *ret_count);

enum { ROUTE_PARAMS = 4 };
struct route_match {
	const struct route *route; /* NULL: none for this method */
	char allow[64];            /* methods of the pattern, "" where no pattern fits */
	struct {
		const char *p; /* into the path, still encoded */
		size_t n;
	} params[ROUTE_PARAMS];
	unsigned nparams;
};
/* HEAD is answered as GET. */
void routes_match(const struct route *table, size_t n, const char *method, const char *path,
        struct route_match *ret);

/* Serves the API on listen_fd and remote_fd (http_new) from now on; sets d->http.  Call when d's
 * parts are there and the policies (which carry the socket's group) are loaded. */
MUST_USE int routes_serve(
        struct daemon *d, int listen_fd, int remote_fd, gid_t socket_gid, struct err *e);

#endif
