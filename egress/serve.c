#include "egress/serve.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/confine.h"
#include "egress/control.h"
#include "egress/hooks.h"
#include "egress/objects.h"
#include "egress/jails.h"
#include "egress/resolve.h"
#include "egress/secrets.h"
#include "egress/tls.h"
#include "egress/upstream.h"

#include <signal.h>

struct serve {
	struct services s;
	struct control *control;
};

static void serve_done(struct serve *v)
{
	struct jail *j;
	while ((j = list_first(&v->s.jails, struct jail, link)))
		jails_end(j);
	if (v->s.reactor) {
		reactor_disarm(&v->s.tick);
		/* Jails and connections are buried before what they use is taken away. */
		reactor_bury_all(v->s.reactor);
	}
	control_free(v->control);
	hooks_free(v->s.hooks);
	objects_free(v->s.objects);
	upstream_free(v->s.upstream);
	tls_service_free(v->s.tls);
	resolver_free(v->s.resolver);
	pipes_done(&v->s.pipes);
	ledger_done(&v->s.ledger);
	secrets_free(v->s.secrets);
	reactor_free(v->s.reactor);
	fd_close(v->s.control);
}

static int serve_init(struct serve *v, const struct serve_options *o, struct err *e)
{
	v->s.control = o->control;
	v->s.tick.fire = jails_tick;
	list_init(&v->s.jails);
	ledger_init(&v->s.ledger);
	list_init(&v->s.tick.link);
	v->s.secrets = secrets_new();
	v->s.reactor = reactor_new(e);
	if (!v->s.reactor)
		return e->code;
	v->s.resolver = resolver_new(v->s.reactor, e);
	if (!v->s.resolver)
		return e->code;
	v->s.upstream = upstream_new(v->s.reactor, o->ca_file, e);
	if (!v->s.upstream)
		return e->code;
	v->s.hooks = hooks_new(&v->s);
	v->s.objects = objects_new(&v->s);
	v->s.tls = tls_service_new(e);
	if (!v->s.tls)
		return e->code;
	v->control = control_new(&v->s, e);
	return v->control ? 0 : e->code;
}

int serve_run(const struct serve_options *o, struct err *e)
{
	struct serve v = {0};
	signal(SIGPIPE, SIG_IGN); /* libcurl writes without MSG_NOSIGNAL in places */
	int r = serve_init(&v, o, e);
	if (r == 0)
		r = confine_enter(o->uid, o->gid, e);
	if (r == 0)
		r = reactor_run(v.s.reactor, e);
	if (r < 0)
		log_err("%s", e->text); /* first: whose socket is closed is killed by agentboxd */
	serve_done(&v);
	return r;
}
