/* What a policy shows: the host's /usr or an image, its mounts, a strict /proc. */
#include "tests/t.h"
#include "tests/jail_rig.h"

#include <sys/stat.h>

static struct rig rig;
static char top[] = "/var/tmp/agentbox-test-XXXXXX";

static void shell(const char *fmt)
{
	auto_free char *line = xasprintf("cd %s && %s", top, fmt);
	must(system(line) == 0, "%s", fmt);
}

/* A jail of the rig's policy as it is now. */
static const char *say(const char *line)
{
	static struct rig_out o;
	struct err e = {.code = 0};
	struct template old = rig.root;
	int r = template_make(&rig.policy, &rig.root, &e);
	must(r == 0, "a template (%s)", r < 0 ? e.text : "");
	template_done(&old);
	struct launch_spec spec = rig_spec(&rig, rig_kit(&rig, NULL));
	struct launched j;
	r = launch_jail(&spec, &j, &e);
	must(r == 0, "a jail (%s)", r < 0 ? e.text : "");
	must(rig_run(&j, line, 0, &o, &e) == 0, "that answers");
	launched_free(&j);
	size_t n = strlen(o.text);
	if (n && o.text[n - 1] == '\n')
		o.text[n - 1] = '\0';
	return o.error ? strerror(o.error) : o.text;
}

static const char *refusal(void)
{
	static struct err e;
	struct template t = TEMPLATE_NONE;
	e = (struct err){.code = 0};
	if (template_make(&rig.policy, &t, &e) == 0)
		template_done(&t);
	return e.text;
}

static struct policy_mount *add_mount(const char *source, const char *target)
{
	struct policy_mount *m = &rig.policy.mounts[rig.policy.nmounts++];
	*m = (struct policy_mount){.writable = 0};
	(void)snprintf(m->source, sizeof(m->source), "%s/%s", top, source);
	(void)str_copy(m->target, sizeof(m->target), target);
	return m;
}

static void mounts(void)
{
	shell("mkdir data open && echo secret >data/f && echo one >file && chmod 777 open");
	add_mount("data", "/srv/data");
	add_mount("file", "/opt/tool/file");
	add_mount("open", "/mnt/open")->writable = 1;
	add_mount("absent", "/srv/absent")->optional = 1;
	is_str(say("cat /srv/data/f /opt/tool/file; ls /srv"), "secret\none\ndata",
	        "a directory and a file appear, an optional absence is skipped");
	is_str(say("touch /srv/data/x 2>&1 | grep -c Read-only; touch /mnt/open/x && echo written"),
	        "1\nwritten", "read-only unless the policy says writable");
	add_mount("absent", "/srv/more");
	ok(strstr(refusal(), "absent"), "a required absence is refused by name: %s", refusal());
	rig.policy.nmounts--;
	shell("mkfifo pipe");
	add_mount("pipe", "/srv/pipe");
	ok(strstr(refusal(), "neither a directory nor a file"), "a pipe is refused");
	rig.policy.nmounts = 0;
}

static void strict(void)
{
	rig.policy.flags |= POLICY_STRICT_PROC;
	is_str(say("ls -d /proc/cpuinfo /proc/meminfo /proc/sys 2>/dev/null | wc -l; test -r "
	           "/proc/self/status && echo own"),
	        "0\nown", "a strict /proc has processes and nothing else");
	rig.policy.flags &= ~(uint32_t)POLICY_STRICT_PROC;
}

/* An image whose programs are the host's: enough to see what is taken from where. */
static void image(void)
{
	shell("mkdir -p image/usr image/etc image/opt/app image/opt/agent image/proc "
	      "image/workspace");
	shell("mkdir image/usr/bin && for p in sh cat ls wc grep; do cp -L /bin/$p image/usr/bin/; "
	      "done");
	/* the loader and the libraries, wherever a merged or split /usr keeps them */
	shell("for f in $(for p in sh cat ls wc grep; do ldd /bin/$p; done | grep -o '/[^ ]*' | "
	      "sort -u); "
	      "do d=image/usr/$(dirname ${f#/usr}); mkdir -p $d && cp -L $f $d/; done");
	shell("for l in bin lib lib64; do ln -s usr/$l image/$l; done");
	shell("echo ours >image/usr/mark && echo app >image/opt/app/f && echo bad "
	      ">image/opt/agent/f");
	shell("echo root:secret >image/etc/shadow && echo 10.0.0.1 evil >image/etc/hosts && echo "
	      "UTC >image/etc/timezone");
	shell("ln -s /etc/shadow image/etc/services");
	rig.policy.root = POLICY_ROOT_IMAGE;
	(void)snprintf(rig.policy.image, sizeof(rig.policy.image), "%s/image", top);
	is_str(say("cat /usr/mark /opt/app/f /etc/timezone; ls /opt/agent | wc -l; grep -c evil "
	           "/etc/hosts; ls /etc/shadow 2>/dev/null; echo end"),
	        "ours\napp\nUTC\n0\n0\nend", "an image gives programs, not identity");
	shell("rm image/bin && ln -s ../../../etc image/bin");
	ok(strstr(refusal(), "not below usr/"), "a link that leads elsewhere is refused: %s",
	        refusal());
	shell("rm image/bin && echo x >image/bin");
	ok(strstr(refusal(), "no directory"), "so is a file in a directory's place");
	shell("rm image/bin; chmod 777 image");
	ok(strstr(refusal(), "not root's alone"), "so is an image that others may write to");
	rig.policy.root = POLICY_ROOT_HOST_USR;
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("making jails takes root");
	struct err e = {.code = 0};
	int r = rig_open(&rig, &e);
	must(r == 0, "template, cgroup tree and programs (%s)", r < 0 ? e.text : "");
	must(mkdtemp(top) != NULL && chmod(top, 0755) == 0, "a directory of the test's own");
	mounts();
	strict();
	image();
	auto_free char *rm = xasprintf("rm -rf %s", top);
	ok(system(rm) == 0, "removed");
	rig_close(&rig);
	return done();
}
