/*
 * policy.h - root's word, compiled: plain structs without pointers.
 *
 * agentbox-policyc reads the YAML and writes one `struct policy_set` into a
 * sealed memfd; agentboxd maps it and checks every count and text with
 * policy_set_check before it believes a field; the supervisor and egress get
 * the same memfd read-only.  A request names a policy by index and generation
 * and may only narrow `limits`.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "policy/layers.h"
#include "policy/prices.h"
#include "policy/rules.h"
#include "policy/listen.h"
#include "policy/bucket.h"
#include "policy/otlp.h"
#include "policy/webhooks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

enum {
	POLICY_MOUNTS = 16,
	POLICY_BINDABLE = 16,
	POLICY_INJECTS = 8,
	POLICY_INSNS = 1024, /* 238 is the size of the default filter as one tree */
	POLICY_SECRETS = 32,
	POLICY_EXPOSED = 32,
	POLICY_INBOUND = 16,
	POLICY_GIVEN = 4,
};

/* Zero means: no limit of ours.  Narrowing takes the smaller non-zero value. */
struct limits {
	uint64_t memory_bytes;              /* memory.max */
	uint64_t pids;                      /* pids.max, RLIMIT_NPROC where it lacks */
	uint64_t cpu_milli;                 /* thousandths of a cpu: 2000 = two */
	uint64_t io_read_bps, io_write_bps; /* io.max on the state's device */
	uint64_t disk_bytes;                /* workspace and home together */
	uint64_t inodes;
	uint64_t nofile;       /* RLIMIT_NOFILE */
	uint64_t file_bytes;   /* RLIMIT_FSIZE */
	uint64_t tmp_bytes;    /* size of /tmp */
	uint64_t shm_bytes;    /* size of /dev/shm */
	uint64_t wall_ms;      /* longest run */
	uint64_t output_bytes; /* stdout and stderr together */
};

enum policy_flag {
	POLICY_INNER_ROOT_PACKAGES = 1 << 0, /* inner_root: packages */
	POLICY_STRICT_PROC = 1 << 1,         /* subset=pid */
	POLICY_DEBUG = 1 << 2,               /* ptrace group allowed */
	POLICY_NO_UNIX_SOCKETS = 1 << 3,
	POLICY_PRIVATE_FILES = 1 << 4, /* filesystem.private */
	POLICY_VOLATILE = 1 << 5,      /* filesystem.volatile */
	POLICY_PROXY = 1 << 6,         /* egress.proxy */
};

enum policy_root { POLICY_ROOT_HOST_USR, POLICY_ROOT_IMAGE };

/* A directory or file of the host shown to every jail of the policy. */
struct policy_mount {
	char source[POLICY_PATH_MAX]; /* absolute, on the host */
	char target[POLICY_PATH_MAX]; /* absolute, in the jail, not below another target's file */
	uint32_t writable;
	uint32_t optional; /* absent source: skipped, not refused */
};

/* What `--bind` may name. */
struct policy_bindable {
	char source[POLICY_PATH_MAX]; /* this directory and what is below it */
	uint32_t writable;
	uint32_t pad;
};

/* Plain HTTP inside, `upstream` outside with the secret added (egress). */
struct policy_inject {
	char host[POLICY_HOST_MAX];     /* name inside the jail: anthropic.agentbox */
	char upstream[POLICY_PATH_MAX]; /* http:// or https:// URL, no path but a prefix */
	char header[64];                /* x-api-key, authorization; empty: nothing is added */
	char prefix[32];                /* "Bearer " */
	char secret[NAME_MAX_LEN];      /* name in `secrets`; empty: nothing is added */
	uint32_t loopback;              /* upstream may be a loopback or private address */
	uint32_t pad;
	struct request_range requests;
};

/* A secret that harnesses may have as a variable in the jail. */
struct policy_given {
	char secret[NAME_MAX_LEN]; /* name in `secrets` of agentboxd.yaml */
	char variable[NAME_MAX_LEN];
};

/* What may be used up, metered by egress.  Zero: no bound. */
struct budget {
	uint64_t requests, bytes, tokens;
	uint64_t cost_micro; /* millionths of a US dollar, by the price table */
};

enum budget_scope { BUDGET_RUN, BUDGET_SESSION, BUDGET_USER, BUDGET_SECRET, BUDGET_SCOPES };

struct policy {
	char name[NAME_MAX_LEN];
	char description[POLICY_TEXT_MAX];
	char source[POLICY_PATH_MAX]; /* file it came from, or "built-in" */
	uint32_t required;            /* bits of enum layer: refuse where missing */
	uint32_t warned;              /* bits: say so where missing */
	uint32_t flags;               /* enum policy_flag */
	uint32_t root;                /* enum policy_root */
	char image[POLICY_PATH_MAX];  /* POLICY_ROOT_IMAGE: directory, root-owned */
	struct limits limits;
	uint32_t nmounts, nbindable, ninject, ninsns;
	struct policy_mount mounts[POLICY_MOUNTS];
	struct policy_bindable bindable[POLICY_BINDABLE];
	struct policy_inject inject[POLICY_INJECTS];
	uint32_t nrules, nrequests, nports, ninbound, ngiven, pad;
	struct policy_given given[POLICY_GIVEN];
	struct policy_rule rules[POLICY_RULES];
	struct policy_request requests[POLICY_REQUESTS];
	uint16_t ports[POLICY_PORTS];     /* of rules, without 53, 80 and 443; ascending */
	uint16_t inbound[POLICY_INBOUND]; /* listeners of the jail's own that clients may reach;
	                                     ascending, and none that egress serves */
	struct budget budgets[BUDGET_SCOPES];
	struct sock_filter bpf[POLICY_INSNS]; /* loaded as it is by PID 1's maker */
};

enum secret_source { SECRET_FILE, SECRET_ENV, SECRET_CREDENTIAL, SECRET_COMMAND };
struct secret_def {
	char name[NAME_MAX_LEN];     /* upper case allowed: ANTHROPIC_API_KEY */
	uint32_t source;             /* enum secret_source */
	uint32_t nargs;              /* of a command, else 0 */
	char where[POLICY_PATH_MAX]; /* path, variable, credential name; arguments, each with NUL */
};

/* What one tenant or user may have of the runs; 0: as the others. */
enum { RUN_SHARES = 64, RUN_SHARE_USER = 257 };
struct run_share {
	char tenant[NAME_MAX_LEN]; /* "": of none */
	char user[RUN_SHARE_USER]; /* "": the tenant as a whole */
	char pad[3];
	uint32_t weight, max, queue;
};
#define RUN_SHARES_HOST UINT64_MAX /* runs.memory, runs.cpus: as much as the host has */

#define STATE_RESERVE_MOST       ((uint64_t)1 << 40)
#define RETENTION_JOURNALS_LEAST ((uint64_t)1 << 20)
#define RETENTION_JOURNALS_MOST  ((uint64_t)1 << 40)

/* What is kept of runs that have ended; 0: for ever, or all. */
struct retention {
	uint64_t runs_ms, events_ms, artifacts_ms; /* after the end */
	uint64_t runs_max;
	uint64_t journals_bytes; /* of all raw logs; never 0 */
};

/* Of sessions that are ready: those beyond are put aside, or deleted. */
struct session_bounds {
	uint64_t max;     /* 0: any number */
	uint64_t idle_ms; /* 0: for ever */
	uint32_t evict;   /* enum session_evict */
	uint32_t pad;
};
enum session_evict { SESSION_EVICT_KEEP, SESSION_EVICT_DELETE, SESSION_EVICT_COUNT };

/* agentboxd.yaml, compiled. */
struct daemon_config {
	uint32_t supervisor_uid, supervisor_gid;
	uint32_t egress_uid, egress_gid;
	uint32_t listener_uid, listener_gid;
	uint32_t socket_gid; /* group of the control socket */
	uint32_t max_runs;   /* running at once */
	uint32_t max_queued;
	uint32_t pool;     /* jails prepared ahead, per pooled policy */
	uint32_t max_warm; /* agents that wait for another run */
	uint32_t nsecrets, nexposed, nprices, nwebhooks, nshares, nlistens;
	uint32_t log_format;             /* enum log_format */
	uint32_t log_level, pad;         /* enum log_level; 0: as the command line says */
	uint32_t user_runs, user_queued; /* of one user; 0: as of all */
	uint64_t queue_ms;               /* longest wait for a slot; 0: any */
	uint64_t patience_ms;            /* with a supervisor or egress that says nothing; 0: any */
	uint64_t runs_memory, runs_cpu;  /* that runs may be promised: bytes, thousandths; 0: any */
	struct run_share shares[RUN_SHARES];
	uint64_t state_reserve; /* bytes of the disk of the state */
	struct retention keep;
	struct session_bounds sessions;
	struct secret_def secrets[POLICY_SECRETS];
	char exposed[POLICY_EXPOSED][NAME_MAX_LEN]; /* daemon variables harnesses may ask for */
	char default_policy[NAME_MAX_LEN];          /* of harnesses and jails that name none */
	char harness_dirs[4][POLICY_PATH_MAX];      /* besides the bundled ones; empty: unused */
	struct price prices[POLICY_PRICES];         /* root's before the built-in ones */
	struct webhook webhooks[POLICY_WEBHOOKS];
	struct otlp otlp;
	struct bucket bucket; /* where artifacts go, besides */
	struct listen_at listens[LISTENS];
};

#define POLICY_SET_MAGIC 0x504f4c31u
struct policy_set {
	uint32_t magic;
	uint32_t count;
	uint64_t size;       /* of the whole, in bytes */
	uint64_t generation; /* set by agentboxd when it takes the set into use */
	struct daemon_config config;
	struct policy policies[];
};

/* Variables of every program where TLS is terminated ("NAME=value", NULL-terminated), for those
 * that bring what they trust with them; none elsewhere. */
const char *const *policy_trust_env(const struct policy *p);

/* Everything a reader relies on: magic, sizes, counts, texts terminated, paths absolute, no
 * duplicate name, BPF jumps in range and every path returning. */
MUST_USE int policy_set_check(const void *p, size_t size, struct err *e);

/* Index, or -ENOENT. */
int policy_find(const struct policy_set *s, const char *name);

/* 0, or -ENOPKG where the self-test could not show that anything holds; `unproven` says why, or is
 * "". */
MUST_USE int policy_proven(const struct policy *p, const char *unproven, struct err *e);

/* 0, or -ENOPKG where a required layer is not among the bits `have`: "policy 'x' requires <layer>
 * (<lack>): <detail>; remedy: <remedy>". */
MUST_USE int policy_met(const struct policy *p, uint32_t have,
        const char detail[LAYER_COUNT][LAYER_TEXT_MAX],
        const char remedy[LAYER_COUNT][LAYER_TEXT_MAX], struct err *e);

/* Bits of enum layer whose absence is worth saying: what is required, and what is warned about, but
 * no limit that the policy does not set. */
uint32_t policy_wanted(const struct policy *p);

/* May clients of the control socket reach the jail's own listener on this port? */
bool policy_inbound(const struct policy *p, unsigned port);
/* The variable that a harness gets this secret in, or NULL. */
const char *policy_gives(const struct policy *p, const char *secret);
/* Is it egress that answers on this port inside, whoever connects? */
bool policy_serves(const struct policy *p, unsigned port);

/* What was asked must not be more than what root gives: fails naming the limit otherwise.
 * `asked` zero fields mean "as the policy says".  *ret is the smaller of both. */
MUST_USE int limits_narrow(
        const struct limits *root, const struct limits *asked, struct limits *ret, struct err *e);

#endif
