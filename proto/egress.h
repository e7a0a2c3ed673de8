/*
 * egress.h - agentboxd <-> agentbox-egress.
 *
 * egress gets the compiled policies and the secrets' values (a sealed memfd
 * each), then for each jail the listeners that were made inside its network
 * namespace.  It tells what it refused and what it let out.
 */
#ifndef PROTO_EGRESS_H
#define PROTO_EGRESS_H

#include "base/id.h"
#include "policy/policy.h"
#include "proto/jail.h"
#include "proto/msg.h"

enum egress_msg {
	EGRESS_POLICIES = 1, /* -> struct egress_simple; fds: policy_set memfd, secrets memfd */
	EGRESS_JAIL,        /* -> struct egress_jail; fds: EGRESS_LISTENERS, in the order below, and
	                       struct authority's memfd where its policy terminates TLS */
	EGRESS_PORTS,       /* -> struct egress_ports; fds: a listener each, MSG_FDS at most; after
	                       EGRESS_JAIL, as often as it takes */
	EGRESS_JAIL_END,    /* -> struct egress_simple: close everything of that jail */
	EGRESS_STOP,        /* -> struct egress_simple */
	EGRESS_DRAIN,       /* -> struct egress_simple: another has the listeners now; end when what
	                       is open has ended.  A STOP then tells what it cuts */
	EGRESS_HOOK,        /* -> struct jail_hook; fd: the body: POST it, once */
	EGRESS_OBJECT,      /* -> struct jail_object; fd: of PUT: put, delete or link an artifact */
	EGRESS_PING,        /* -> struct egress_simple: EGRESS_ALIVE is to be said soon */
	EGRESS_READY = 100, /* <- struct egress_simple: policies taken into use */
	EGRESS_EVENT,       /* <- struct jail_egress, as the supervisor gets it */
	EGRESS_USAGE,       /* <- struct jail_usage */
	EGRESS_BUDGET,      /* <- struct jail_budget, as the supervisor gets it */
	EGRESS_HOOKED,      /* <- struct jail_hooked, as the supervisor gets it */
	EGRESS_OBJECTED,    /* <- struct jail_objected, as the supervisor gets it */
	EGRESS_JAIL_ENDED,  /* <- struct egress_simple: all of that jail is closed and told */
	EGRESS_ALIVE,       /* <- struct egress_simple */
};

struct egress_simple {
	struct msg_head head;
	uint64_t jail;
};

/* Bound to [::] inside the namespace, dual-stack, O_NONBLOCK, listening. */
enum egress_listener {
	EGRESS_DNS_UDP, /* port 53, IP_PKTINFO and IPV6_RECVPKTINFO set */
	EGRESS_DNS_TCP, /* port 53 */
	EGRESS_HTTP,    /* port 80 */
	EGRESS_TLS,     /* port 443 */
	EGRESS_WATCH,   /* AF_PACKET on lo, filtered to attempts that no listener takes: SYNs and
	                   datagrams to addresses outside 127/8 and ::1; only to tell of them */
	EGRESS_LISTENERS
};

struct egress_jail {
	struct msg_head head;
	uint64_t jail;
	uint64_t policy_generation;
	uint32_t policy; /* index */
	uint32_t flags;  /* JAIL_MAKE_NO_EGRESS */
	char session[ID_MAX];
	struct outlets outlets;
	struct jail_purse purse; /* as agentboxd knows the accounts now */
	struct spending spent;   /* by this jail, before an egress that was started anew */
};

struct egress_ports {
	struct msg_head head;
	uint64_t jail;
	uint32_t n;
	uint16_t ports[POLICY_PORTS];
};

enum {
	EGRESS_BUCKET_SECRETS = 3,
	EGRESS_SECRETS = POLICY_SECRETS + LIMIT_POLICIES * (POLICY_INJECTS + POLICY_GIVEN) +
	                 POLICY_WEBHOOKS + OTLP_HEADERS + EGRESS_BUCKET_SECRETS,
};
/* The secrets memfd: an array of these, by name; value is raw bytes without a final newline. */
struct egress_secret {
	char name[NAME_MAX_LEN];
	uint32_t len;
	char value[4096 - NAME_MAX_LEN - 4];
};

/* Addresses inside the jail. */
#define EGRESS_RESOLVER  "198.18.0.1" /* in /etc/resolv.conf; AnyIP brings any resolver here too */
#define EGRESS_SYNTHETIC 0xc6120100u  /* 198.18.1.0: injected host i of the policy is this + i */
#define EGRESS_NAMES     0xc6128000u  /* 198.18.128.0/17: names of rules */
#define EGRESS_PROXY     0xc6120002u  /* 198.18.0.2 */

#endif
