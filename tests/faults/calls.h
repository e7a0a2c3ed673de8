/*
 * calls.h - how each system call can fail, as data.
 *
 * One row a call that agentboxd and its children make on the way of a jail: its
 * name and the errors the kernel can give for it (the likeliest first; the quick
 * run tries that one alone).  A row without errors is a call that cannot fail, or not in a way that
 * its caller could see.  A call without a row fails the test: the table has to grow with the code.
 */
#ifndef FAULTS_CALLS_H
#define FAULTS_CALLS_H

enum { CALLS_ERRORS = 6 };

struct call {
	int nr;
	const char *name;
	int path;                 /* argument that is a string, from 1; 0: none */
	int after;                /* the kernel does it and fails nevertheless (close) */
	int errors[CALLS_ERRORS]; /* ends with 0 */
};

const struct call *call_of(int nr); /* NULL: no row */
const char *error_name(int error);  /* "ENOMEM" */

#endif
