/*
 * repo.h - a checkout that a run asks for: what may be asked, whether the policy lets it be
 * fetched, and the command lines of the two programs in a jail (repo_*.sh): one that brings it
 * into the workspace, one that says what has become of it.  Pure.
 *
 * All of git that runs is in these programs, in jails.  Here and in the supervisor at large nothing
 * of a repository is read but two object names and bytes that are handed on.
 */
#ifndef SUPERVISOR_REPO_H
#define SUPERVISOR_REPO_H

#include "base/err.h"
#include "base/json.h"
#include "policy/outlets.h"
#include "policy/policy.h"
#include "policy/repo_url.h"

#include <stdbool.h>

enum {
	REPO_OBJECT_MAX = 65, /* an object's name, SHA-1 or SHA-256, with NUL */
};

#define REPO_BUNDLE "bundle" /* as the source of one that came from a client */

/* Either url or bundle. */
struct repo_ask {
	char *url;    /* owned */
	char *bundle; /* owned: path of a git bundle in the workspace */
	char *ref;    /* owned: branch, tag or commit; NULL: what the source has as its HEAD */
};

/* {"url"|"bundle","ref"?}: -EINVAL naming the member.  `path` is the object's own; that it has no
 * others is the caller's affair. */
MUST_USE int repo_read(
        const struct json *object, const char *path, struct repo_ask *ret, struct err *e);
/* URL[#REF]. */
MUST_USE int repo_parse(const char *text, struct repo_ask *ret, struct err *e);
void repo_ask_done(struct repo_ask *a); /* zeroed is fine */
#define auto_repo_ask __attribute__((cleanup(repo_ask_done)))
/* JSON as repo_read takes it (owned). */
char *repo_write(const struct repo_ask *a);
const char *repo_source(const struct repo_ask *a); /* its URL, or REPO_BUNDLE */

/* What git is to fetch from in a jail of this policy (owned): the URL, or the policy's injected
 * name that leads to it, as far as `reach` leaves them.  NULL: -ENOEXEC, nothing does, and what
 * would. */
char *repo_from(const struct repo_ask *a, const struct policy *p, const struct outlets *reach,
        struct err *e);

/* ---- the programs ---- */

struct repo_command {
	const char *argv[12]; /* borrowed: what it was made of */
	const char *env[24];  /* borrowed */
	char *texts[6];       /* owned */
};
void repo_command_done(struct repo_command *c);

/* `from` as of repo_from, NULL for a bundle; `trust` is the policy's variables or NULL. */
void repo_clone_command(const struct repo_ask *a, const char *from, const char *run,
        const char *const *trust, struct repo_command *ret);
/* Who makes the commit of what was not committed: "" for the default. */
struct repo_who {
	const char *name, *email;
};
#define REPO_NAME  "agentbox"
#define REPO_EMAIL "agentbox@localhost"
void repo_changes_command(
        const char *base, const char *run, const struct repo_who *who, struct repo_command *ret);

/* What the first program prints when all went well: "base OBJECT\nref NAME\n". */
struct repo_base {
	char base[REPO_OBJECT_MAX];
	char ref[REPO_REF_MAX + 1]; /* a branch, or "" */
};
bool repo_base_read(const char *text, struct repo_base *ret);
bool repo_object_ok(const char *text);

#endif
