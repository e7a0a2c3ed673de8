/*
 * What this host has, and what of it holds: probes first, then the canary, then the log.  The
 * policies that lose by it are named once here; requests.c refuses them one by one.
 */
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/selftest.h"

static void tell_layers(const struct host *h)
{
	for (int l = 0; l < LAYER_COUNT; l++) {
		if (h->layers & LAYER_BIT(l))
			continue;
		log_at(h->disproved & LAYER_BIT(l) ? LOG_LEVEL_ERR : LOG_LEVEL_WARN,
		        "layer %s is missing: %s; remedy: %s", layer_name((enum layer)l),
		        h->detail[l], h->remedy[l]);
	}
}

static void tell_policies(const struct host *h, const struct policy_set *set)
{
	struct err why;
	for (uint32_t i = 0; i < set->count; i++)
		if (host_require(h, &set->policies[i], &why) < 0)
			log_warn("%s", why.text);
}

static void try_disks(const struct daemon *d, struct proof *ret)
{
	static const char *const have[JAIL_DISK_COUNT] = {
	        [JAIL_DISK_QUOTA] = "quota: the state's file system counts projects",
	        [JAIL_DISK_IMAGE] = "image: sessions with a limit have their own file system",
	};
	struct disks *k = &ret->disks;
	disks_open(k, &d->state);
	host_found(&ret->host, LAYER_LIMIT_DISK, k->method == JAIL_DISK_NONE ? -EOPNOTSUPP : 0,
	        have[k->method], k->why.text,
	        "state on ext4 or xfs with prjquota; or e2fsprogs and loop devices");
}

/* Off its own lease: neither the probes nor the canary share ids with a living jail. */
void prove_look(
        const struct daemon *d, const struct policy_set *set, uint32_t base, struct proof *ret)
{
	int index = policy_find(set, set->config.default_policy);
	reload_at(d, RELOAD_LAYERS);
	host_probe(&d->tree, d->state.sessions, base, &ret->host);
	reload_at(d, RELOAD_DISKS);
	try_disks(d, ret);
	reload_at(d, RELOAD_CANARY);
	const struct selftest_spec spec = {.policy = &set->policies[index],
	        .tree = &d->tree,
	        .closer = &d->closer,
	        .base = base,
	        .dir = d->state.dir,
	        .init = d->init,
	        .canary = d->programs.canary};
	selftest_run(&spec, &ret->host);
}

int prove_use(struct daemon *d, const struct proof *p, struct err *e)
{
	d->host = p->host;
	d->disks = p->disks;
	d->disks.state = &d->state; /* a child had a copy */
	d->disks.templates = d->templates;
	tell_layers(&d->host);
	if (d->host.unproven[0]) {
		log_err("no policy is served: the self-test failed: %s", d->host.unproven);
		return err_set(e, -ENOPKG, "the self-test failed: %s", d->host.unproven);
	}
	tell_policies(&d->host, d->policies->set);
	log_info("self-test: %d layers proven in %lld ms", __builtin_popcount(d->host.layers),
	        (long long)(d->host.selftest_us + 999) / 1000);
	return 0;
}

int daemon_prove(struct daemon *d, struct err *e)
{
	struct proof p = {.disks = {.state = &d->state}};
	uint32_t base;
	int r = lease_take(&d->leases, &base, e);
	if (r < 0) {
		(void)str_copy(p.host.unproven, sizeof(p.host.unproven), e->text);
		d->host = p.host;
		return err_wrap(e, "self-test");
	}
	prove_look(d, d->policies->set, base, &p);
	(void)lease_drop(&d->leases, base); /* if not, it is one of thousands */
	return prove_use(d, &p, e);
}
