/*
 * forms.h - what a text must look like to be a path, a host, a header, a URL.
 *
 * Used where texts come in (the YAML tables) and again where compiled policies
 * are believed (policy_set_check), so that both mean the same.  Each form
 * bounds its length.  No third party, no allocation.
 */
#ifndef POLICY_FORMS_H
#define POLICY_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	POLICY_PATH_MAX = 256,
	POLICY_TEXT_MAX = 160,
	POLICY_HOST_MAX = 128,
	FORM_COMMAND_ARGS = 16,
};

typedef bool form_fn(const char *text);

/* /a/b: absolute, no empty, "." or ".." part, no slash at the end (but "/"), no control
 * characters, fits POLICY_PATH_MAX. */
bool form_path(const char *text);
/* a/b: as above, relative, not empty; at most 1023 characters. */
bool form_relative(const char *text);
/* A glob of relative paths: as form_relative. */
bool form_glob(const char *text);
/* a.b: lower-case letters, digits and hyphens in at least two labels, the last not all digits. */
bool form_host(const char *text);
/* What a program may ask to connect to: a name, of one label too and in any letter case, or an
 * address. */
bool form_asked_host(const char *text);
/* A path, or one with stars in it (rules.h); begins with a slash or a star. */
bool form_path_glob(const char *text);
/* http:// or https://, a host, an IPv4 address or [IPv6], a port if need be, a path prefix
 * without a slash at the end; no user, query or fragment. */
bool form_url(const char *text);
/* An HTTP field name in lower case. */
bool form_header(const char *text);
/* Printable ASCII, spaces included. */
bool form_printable(const char *text);
/* The same, 1 to 255 characters: names of models, URLs that only the agent reads. */
bool form_reference(const char *text);
/* [A-Za-z_][A-Za-z0-9_]*, fits NAME_MAX_LEN. */
bool form_variable(const char *text);
/* No control characters but tab; any length, empty included. */
bool form_line(const char *text);
/* As name_valid of base/id.h. */
bool form_name(const char *text);
/* A program's path and its arguments, each with its NUL, in a field of that size. */
bool form_command(const char *field, size_t size, uint32_t nargs);

/* Is `path` the directory `dir` or below it?  Both are form_path. */
bool path_within(const char *path, const char *dir);

#endif
