/*
 * jail.h - supervisor <-> agentboxd: what the unprivileged brain may ask of root.
 *
 * Every request is one fixed-size struct on a SOCK_SEQPACKET; agentboxd looks
 * its type up in a permission table (phase, size, number of fds, once or not)
 * before it looks at a field.  No request carries a filter, a host path, a host
 * id or a capability: policies, binds and agents are named by index or by a
 * checked name, numbers may only narrow.  Each request gets exactly one
 * struct jail_reply with the same `req`; what happens later comes as events
 * (req 0).
 */
#ifndef PROTO_JAIL_H
#define PROTO_JAIL_H

#include "base/id.h"
#include "base/veil.h"
#include "policy/advice.h"
#include "policy/checks.h"
#include "policy/layers.h"
#include "policy/ledger.h"
#include "policy/policy.h"
#include "policy/outlets.h"
#include "proto/msg.h"

#include <string.h>

enum jail_msg {
	/* requests, supervisor -> agentboxd */
	JAIL_HELLO = 1, /* struct jail_simple; once: the supervisor is ready to serve */
	JAIL_MAKE,      /* struct jail_make; fds: exec memfd if JAIL_MAKE_EXEC */
	JAIL_EXEC,      /* struct jail_exec; fds: exec memfd */
	JAIL_SIGNAL,    /* struct jail_signal */
	JAIL_KILL,      /* struct jail_simple: cgroup.kill; JAIL_GONE follows */
	JAIL_WORKER,  /* struct jail_simple; reply fd: the file worker's socket (proto/worker.h) */
	JAIL_RELEASE, /* struct jail_simple: forget a gone jail, free its uid block */
	JAIL_SESSION_DELETE, /* struct jail_session: remove workspace and home of a session */
	JAIL_DOCTOR,         /* struct jail_simple; reply carries the layer table */
	JAIL_STATS,          /* struct jail_simple (jail = which); reply: resources so far */
	JAIL_RELOAD,         /* struct jail_simple: read root's policies and the programs again */
	JAIL_ADOPT,     /* struct jail_simple; once: a JAIL_FOUND for each jail of a run that an
	                   earlier supervisor left, events that were kept, then the reply */
	JAIL_STDIN_END, /* struct jail_simple: its program's stdin is to be at its end */
	JAIL_SOCKET,    /* struct jail_socket; reply fd: a connection that was begun to a port of
	                   the jail that its policy lets clients reach */
	JAIL_REST,      /* struct jail_simple: its run is over and its program waits for another:
	                   nothing goes in or out meanwhile; reply, once all that went out is
	                   told: resources, memory_bytes.  Also before its program is started */
	JAIL_CLAIM,     /* struct jail_claim: a jail that rests is another run's of its session */
	JAIL_SNAPSHOT,  /* struct jail_snapshot_ask; reply fd of LIST: memfd of struct
	                   jail_snapshot */
	JAIL_HOOK,      /* struct jail_hook; fd: sealed memfd with the body: to be sent to that
	                   webhook of root's.  A reply says only that egress was told; then comes a
	                   JAIL_HOOKED, for one or for all */
	JAIL_ALIVE,     /* struct jail_simple: after JAIL_PING */
	JAIL_OBJECT,    /* struct jail_object; fd: of PUT, the artifact: what is to become of it in
	                   root's bucket.  A reply says only that egress was told; then comes a
	                   JAIL_OBJECTED, for one or for all */

	/* agentboxd -> supervisor */
	JAIL_REPLY = 100, /* struct jail_reply */
	JAIL_EXITED,      /* struct jail_exited: one exec ended */
	JAIL_GONE,        /* struct jail_gone: no process of the jail is left */
	JAIL_POLICIES,    /* struct jail_simple; fd: policy_set memfd (at start and after reload) */
	JAIL_EGRESS,      /* struct jail_egress: something was refused or sent out */
	JAIL_STOP,        /* struct jail_simple: end runs as interrupted, flush, exit */
	JAIL_LIMIT,       /* struct jail_limit: a limit of a living jail was met */
	JAIL_HANDOVER,    /* struct jail_simple: leave the runs as they are, flush, exit: another
	                     takes them up */
	JAIL_LOST,        /* struct jail_lost: events that could not be kept for a supervisor */
	JAIL_FOUND,       /* struct jail_found; fds: stdin if FOUND_STDIN, then stdout and stderr */
	JAIL_USED,        /* struct jail_used: what a jail and those who pay for it used */
	JAIL_BUDGET,      /* struct jail_budget: a request was refused, a budget is used up */
	JAIL_HOOKED,      /* struct jail_hooked: what a webhook's receiver has answered */
	JAIL_OBJECTED,    /* struct jail_objected: what has become of an artifact there */
	JAIL_PING,        /* struct jail_simple: JAIL_ALIVE, or whatever else, is to be said soon */
};

struct jail_simple {
	struct msg_head head;
	uint64_t jail; /* 0 where none is meant */
};

enum { JAIL_BINDS = 8, JAIL_TARGET_MAX = 256 };

enum jail_make_flag {
	JAIL_MAKE_EXEC = 1 << 0,      /* an exec request comes along (the fast path) */
	JAIL_MAKE_SESSION = 1 << 1,   /* workspace and home of `session`, else empty tmpfs */
	JAIL_MAKE_TTY = 1 << 2,       /* the exec gets a pty: reply fds are {master} */
	JAIL_MAKE_ROOT = 1 << 3,      /* the exec runs as inner uid 0 */
	JAIL_MAKE_NO_EGRESS = 1 << 4, /* narrowing: nothing goes out, inject hosts included */
	JAIL_MAKE_PROGRAM = 1 << 5,   /* EXEC only: this is what the jail was made to run; with MAKE
	                                 whatever comes along is */
	JAIL_MAKE_ACP = 1 << 6,       /* the exec is below agentbox-acp (jail/acp.h) */
	JAIL_MAKE_SECRETS = 1 << 7,   /* the exec has as variables what the policy gives of the
	                                 secrets in `outlets`; of EXEC: with PROGRAM alone */
};

struct jail_bind {
	uint32_t index;               /* in policy.bindable */
	uint32_t writable;            /* only where the policy's entry is */
	char below[POLICY_PATH_MAX];  /* path below the source, "" for itself; no "..", no links */
	char target[JAIL_TARGET_MAX]; /* absolute in the jail, normalised, below /mnt or /workspace
	                               */
};

/* What a jail may use up, and what was used before it. */
struct jail_purse {
	char user[ACCOUNT_ID]; /* "" or whose account it is */
	int64_t day;           /* to which what the user and the secrets have spent belongs */
	struct budget run;     /* narrower than the policy's; zero: as that says */
	struct spending session, user_day;
	struct spending secrets[POLICY_INJECTS]; /* in the order of policy.inject */
};

/* Parts of the workspace that the agent cannot write: relative, normalised. */
enum { JAIL_KEEPS = 8 };
struct jail_keeps {
	uint32_t n, pad;
	char paths[JAIL_KEEPS][JAIL_TARGET_MAX];
};

struct jail_make {
	struct msg_head head;
	uint64_t policy_generation;
	uint32_t policy; /* index */
	uint32_t flags;  /* enum jail_make_flag */
	struct limits narrow;
	char session[ID_MAX];     /* "ses_..." when JAIL_MAKE_SESSION; agentboxd builds the path */
	char run[ID_MAX];         /* "" or the run it is made for: then agentboxd keeps the ends of
	                             its program's stdio, and the jail outlives a supervisor */
	char agent[NAME_MAX_LEN]; /* "" or an agent whose files appear read-only at /opt/agent */
	char template[NAME_MAX_LEN]; /* "" or root's directory that is copied into it then */
	char snapshot[NAME_MAX_LEN]; /* "" or what the workspace of a session without files stands
	                                on */
	uint32_t nbinds;
	uint32_t pad;
	struct jail_bind binds[JAIL_BINDS];
	struct jail_purse purse;
	struct outlets outlets;  /* narrows what goes out */
	struct jail_keeps keeps; /* of the program: with EXEC, or of a later EXEC with PROGRAM */
};

struct jail_exec {
	struct msg_head head;
	uint64_t jail;
	uint32_t flags; /* JAIL_MAKE_TTY, _ROOT, _PROGRAM, _ACP, _SECRETS */
	uint32_t pad;
};

enum { JAIL_SIGNAL_RESIZE = -1 };
struct jail_signal {
	struct msg_head head;
	uint64_t jail, exec;
	int32_t sig; /* 1..64 */
	uint32_t pad;
};

struct jail_socket {
	struct msg_head head;
	uint64_t jail;
	uint16_t port;
	uint16_t v6; /* to ::1, else to 127.0.0.1 */
	uint32_t pad;
};

struct jail_session {
	struct msg_head head;
	char session[ID_MAX];
};

/* ---- snapshots ---- */

enum jail_snapshot_op {
	JAIL_SNAPSHOT_LIST,   /* of that name, or with "" all */
	JAIL_SNAPSHOT_CREATE, /* of the session's workspace, which nothing may use meanwhile */
	JAIL_SNAPSHOT_REMOVE, /* refused while a session stands on it */
	JAIL_SNAPSHOT_OPS
};
enum { JAIL_SNAPSHOT_REPLACE = 1 << 0 /* CREATE: one that has the name loses it */ };

struct jail_snapshot_ask {
	struct msg_head head;
	uint32_t op, flags;
	char name[NAME_MAX_LEN];
	char session[ID_MAX]; /* CREATE */
};

/* As it is stored, too: its layout has a version. */
enum { JAIL_SNAPSHOT_VERSION = 1, JAIL_SNAPSHOT_USERS = 16 };
struct jail_snapshot {
	uint32_t version;
	uint32_t users;     /* sessions that stand on it; `user` has the first of them */
	int64_t created_ms; /* wall clock */
	uint64_t bytes, files;
	char name[NAME_MAX_LEN];
	char session[ID_MAX]; /* of which it was made */
	char user[JAIL_SNAPSHOT_USERS][ID_MAX];
};

/* What is counted by the run begins anew. */
struct jail_claim {
	struct msg_head head;
	uint64_t jail;
	char session[ID_MAX]; /* whose it is already */
	char run[ID_MAX];
	struct jail_purse purse;
};

struct jail_resources {
	uint64_t cpu_us, memory_peak_bytes, pids_peak, io_read_bytes, io_write_bytes, egress_bytes;
	uint64_t disk_peak_bytes, inodes_peak; /* of workspace and home, looked at now and then */
};

/* What holds workspace and home to their limit. */
#define JAIL_DISKS(X)                                                                              \
	X(NONE, "none")                                                                            \
	X(QUOTA, "quota") /* project quota of the state's file system */                           \
	X(IMAGE, "image") /* a file system of their own in a file */                               \
	X(TMPFS, "tmpfs") /* memory, and gone with the jail */
enum jail_disk {
#define JAIL_DISK_ENUM(sym, name) JAIL_DISK_##sym,
	JAIL_DISKS(JAIL_DISK_ENUM)
#undef JAIL_DISK_ENUM
	        JAIL_DISK_COUNT
};

enum jail_limit_kind { JAIL_LIMIT_DISK = 1 << 0, JAIL_LIMIT_INODES = 1 << 1 };

enum jail_layer_state { LAYER_ABSENT, LAYER_IN_FORCE, LAYER_FALLBACK };

enum { JAIL_AGENTS_MAX = 256 };

/* Reply fds of MAKE with EXEC and of EXEC: {stdin write end, stdout read end, stderr read end},
 * all O_NONBLOCK on our side; {master} with a tty.  Of WORKER and SOCKET: {socket}. */
struct jail_reply {
	struct msg_head head;
	uint64_t jail, exec;
	uint32_t layers;   /* bits in force (MAKE), or that this host has (DOCTOR) */
	uint32_t fallback; /* bits where a weaker means stands in (pids by RLIMIT_NPROC) */
	uint32_t base_uid; /* first host uid of the jail */
	uint32_t disk;     /* enum jail_disk (MAKE) */
	uint32_t former;   /* ADOPT: enum jail_former */
	uint32_t renews;   /* RELOAD: this supervisor will be told to make room for another */
	uint32_t pooled;   /* MAKE: its kit was ready */
	int64_t make_us;   /* how long the making took */
	struct err err;    /* code 0: success */
	struct jail_resources resources; /* STATS, REST */
	uint64_t memory_bytes;           /* STATS, REST: held now, 0: not known */
	struct veil veil;                /* MAKE, EXEC: of the secrets that are in the jail */
	char version[24];                /* HELLO: agentboxd's, and since when it is this one */
	int64_t since_ms;                /* wall clock */
	char agents[JAIL_AGENTS_MAX];    /* HELLO: where agents are installed, absolute, or "" */
	char stays[ERR_TEXT_MAX]; /* HELLO: why the latest new agentboxd has not taken over, "" */
	/* DOCTOR: one line a layer, and what to do where it is missing */
	char detail[LAYER_COUNT][LAYER_TEXT_MAX];
	char remedy[LAYER_COUNT][LAYER_TEXT_MAX];
	char unproven[ERR_TEXT_MAX]; /* why the self-test could not look, "" where it did */
	int64_t selftest_us;
	uint8_t check_state[CHECK_COUNT]; /* enum check_state */
	char check_found[CHECK_COUNT][CHECK_FOUND_MAX];
};

struct jail_exited {
	struct msg_head head;
	uint64_t jail, exec;
	int32_t error, stage; /* as init_exited */
	int32_t code, sig;
};

enum jail_end { JAIL_END_KILLED, JAIL_END_OOM, JAIL_END_INIT_DIED };

struct jail_gone {
	struct msg_head head;
	uint64_t jail;
	uint32_t end; /* enum jail_end */
	uint32_t oom_kills;
	uint64_t forks_refused; /* by pids.max */
	uint64_t cpu_held_us;   /* time that runnable processes waited because of cpu.max */
	struct jail_resources resources;
};

struct jail_limit {
	struct msg_head head;
	uint64_t jail;
	uint32_t kind; /* enum jail_limit_kind, one */
	uint32_t pad;
	uint64_t value; /* the limit */
	uint64_t left;  /* DISK: bytes that were free then: a write that failed may leave some */
};

struct jail_lost {
	struct msg_head head;
	uint64_t jail;
	uint64_t events; /* JAIL_EGRESS */
};

/* What was there before the supervisor that asks. */
enum jail_former {
	FORMER_NONE,       /* nothing: agentboxd has just started */
	FORMER_SUPERVISOR, /* a supervisor, whose runs' jails are told of */
	FORMER_ABANDONED,  /* none for too long: the jails of its runs were ended */
};

enum jail_found_flag {
	FOUND_EXEC = 1 << 0,    /* its program was started; stdout and stderr come along */
	FOUND_STDIN = 1 << 1,   /* stdin comes along: it was not ended yet */
	FOUND_EXITED = 1 << 2,  /* `exited` is told */
	FOUND_GONE = 1 << 3,    /* `gone` is told: nothing lives in it */
	FOUND_CLAIMED = 1 << 4, /* the program had other runs before this one */
};

/* A jail that a supervisor made for a run and did not release. */
struct jail_found {
	struct msg_head head;
	uint64_t jail, exec;
	uint32_t flags; /* enum jail_found_flag */
	uint32_t layers, fallback;
	uint32_t disk;       /* enum jail_disk */
	uint32_t limits_met; /* bits of enum jail_limit_kind */
	uint32_t pad;
	uint64_t disk_bytes, disk_inodes; /* those limits */
	uint64_t disk_left;               /* bytes, at the latest look */
	int64_t age_ms;                   /* since it was made */
	char run[ID_MAX], session[ID_MAX];
	char policy[NAME_MAX_LEN];
	struct jail_exited exited;
	struct jail_gone gone;
	struct veil veil; /* of the secrets that are in it */
};

/* One answer, or several that were not told yet; from egress, to agentboxd alone. */
struct jail_usage {
	struct msg_head head;
	uint64_t jail;
	char session[ID_MAX], user[ACCOUNT_ID], secret[NAME_MAX_LEN]; /* "" where there is none */
	struct tokens tokens;
	struct spending spent;
};

struct jail_account {
	uint32_t scope, pad; /* enum budget_scope */
	int64_t day;         /* 0: not by the day */
	char id[ACCOUNT_ID];
	struct spending spent;
};

/* Sums, so that nothing is lost with a message or counted twice with it. */
struct jail_used {
	struct msg_head head;
	uint64_t jail;
	struct tokens tokens; /* of the jail so far */
	struct spending spent;
	struct tokens new_tokens; /* since the message before: for what counts all jails */
	struct spending new_spent;
	uint32_t naccounts, pad;
	struct jail_account accounts[BUDGET_SCOPES];
};

struct jail_budget {
	struct msg_head head;
	uint64_t jail;
	uint32_t scope, kind; /* enum budget_scope, enum budget_kind */
	uint64_t bound;
	char reason[128];
};

enum egress_verdict { EGRESS_DENIED, EGRESS_ALLOWED };
struct jail_egress {
	struct msg_head head;
	uint64_t jail;
	uint32_t verdict; /* enum egress_verdict */
	uint32_t port;
	uint64_t bytes_in, bytes_out; /* ALLOWED: of that exchange */
	uint32_t protocol;            /* enum egress_protocol */
	uint32_t remedy;              /* enum egress_remedy; DENIED: what would let it through */
	uint32_t times;               /* how many it stands for */
	uint32_t pad;
	char host[POLICY_HOST_MAX]; /* name where one is known, else the address */
	char policy[NAME_MAX_LEN];  /* whose rules decided */
	char rule[RULE_TEXT_MAX];   /* the one that did; "": none */
	char reason[128];
};

/* ---- webhooks ---- */

enum {
	JAIL_HOOK_BODY = 1 << 20, /* most bytes of a body */
	JAIL_HOOKS = 24,          /* attempts that a supervisor has under way at once */
	JAIL_HOOK_ID = 72,        /* a session's id, a hyphen, a number */
};
#define JAIL_HOOK_TRACES UINT32_MAX /* of runs: goes to config.otlp */

/* EGRESS_HOOK is the same. */
struct jail_hook {
	struct msg_head head;
	uint64_t delivery; /* the asker's number of this attempt */
	uint64_t policy_generation;
	uint32_t hook; /* index in config.webhooks, or JAIL_HOOK_TRACES */
	uint32_t pad;
	char id[JAIL_HOOK_ID]; /* letters, digits, `_` and `-`: stays the same from try to try */
};

/* EGRESS_HOOKED is the same. */
struct jail_hooked {
	struct msg_head head;
	uint64_t delivery; /* 0: every one, since egress has ended */
	uint32_t status;   /* of HTTP; 0: there was no answer, and `reason` says why */
	uint32_t took_ms;
	int64_t retry_after_ms; /* as the receiver asks, or 0 */
	uint64_t rejected;      /* of traces: spans that it did not take though it says 200 */
	char reason[128];
};

static inline bool jail_hook_id_ok(const char id[JAIL_HOOK_ID])
{
	const char *p = id;
	for (; p < id + JAIL_HOOK_ID && *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		            (*p >= '0' && *p <= '9') || *p == '_' || *p == '-'))
			return false;
	return p > id && p < id + JAIL_HOOK_ID;
}

/* ---- artifacts in root's bucket ---- */

enum jail_object_op {
	JAIL_OBJECT_PUT,    /* the descriptor's first `bytes` bytes */
	JAIL_OBJECT_DELETE, /* one that is not there is as good */
	JAIL_OBJECT_LINK,   /* nothing is asked: a link that whoever has it can get it by */
	JAIL_OBJECT_OPS
};
enum {
	JAIL_OBJECTS = 16,      /* that a supervisor has under way at once */
	JAIL_OBJECT_KEY = 1025, /* S3's bound, and NUL */
	JAIL_OBJECT_TYPE = 96,
	JAIL_OBJECT_LINK_MAX = 8192, /* a key as %XX, and a token */
};

/* EGRESS_OBJECT is the same. */
struct jail_object {
	struct msg_head head;
	uint64_t number; /* the asker's, of this attempt; never 0 */
	uint64_t policy_generation;
	uint64_t bytes;
	uint32_t op; /* enum jail_object_op */
	uint32_t pad;
	char sha256[72];             /* of those bytes, as hexadecimal digits */
	char type[JAIL_OBJECT_TYPE]; /* of media */
	char key[JAIL_OBJECT_KEY];   /* ses_.../run_.../path: below root's prefix */
};

enum jail_object_outcome {
	JAIL_OBJECT_DONE,
	JAIL_OBJECT_AGAIN,   /* another attempt may end otherwise */
	JAIL_OBJECT_REFUSED, /* none will */
	JAIL_OBJECT_STALE,   /* not asked at all: egress has another configuration in use */
	JAIL_OBJECT_OUTCOMES
};

/* EGRESS_OBJECTED is the same. */
struct jail_objected {
	struct msg_head head;
	uint64_t number;  /* 0: every one, since egress has ended */
	uint32_t outcome; /* enum jail_object_outcome */
	uint32_t again;   /* requests that were repeated on the way */
	int64_t retry_after_ms;
	int64_t until_ms; /* LINK: it holds so long, wall clock */
	char reason[192];
	char link[JAIL_OBJECT_LINK_MAX];
};

/* Ids in front, and neither an empty part nor a dot segment. */
static inline bool jail_object_key_ok(const char key[JAIL_OBJECT_KEY])
{
	unsigned parts = 0;
	if (!msg_text_ok(key, JAIL_OBJECT_KEY) || strncmp(key, "ses_", 4) != 0)
		return false;
	for (const char *part = key;; part = strchr(part, '/') + 1) {
		size_t n = strcspn(part, "/");
		if (n == 0 || (n == 1 && part[0] == '.') ||
		        (n == 2 && part[0] == '.' && part[1] == '.') ||
		        (parts++ == 1 && strncmp(part, "run_", 4) != 0))
			return false;
		if (!part[n])
			return parts > 2;
	}
}

#endif
