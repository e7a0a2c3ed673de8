/* Request bodies: what is accepted, and that errors name the bad member. */
#include "supervisor/body.h"
#include "supervisor/jailspec.h"
#include "supervisor/problem.h"

#include "proto/exec.h"
#include "base/fd.h"
#include "tests/t.h"

#include <sys/mman.h>

static const struct body_key keys[] = {
        {"name", BODY_STRING, true},
        {"count", BODY_INTEGER, false},
        {"flag", BODY_BOOL, false},
        {"object", BODY_OBJECT, false},
        {"list", BODY_ARRAY, false},
};

static int check(const char *text, const char *want)
{
	struct err e = {.code = 0};
	auto_json struct json *j = body_parse(text, strlen(text), &e);
	int rc = j ? body_check(j, "", keys, ARRAY_LEN(keys), &e) : e.code;
	if (!want)
		return rc == 0;
	if (rc < 0 && strstr(e.text, want))
		return 1;
	printf("# got %d '%s'\n", rc, e.text);
	return 0;
}

static void test_body(void)
{
	ok(check("{\"name\":\"x\"}", NULL), "the least");
	ok(check("{\"name\":\"x\",\"count\":3,\"flag\":true,\"object\":{},\"list\":[]}", NULL),
	        "all");
	ok(check("{\"name\":\"x\",\"count\":null}", NULL), "null is absent");
	ok(check("", "empty"), "nothing");
	ok(check("[]", "object"), "not an object");
	ok(check("{", "JSON"), "cut");
	ok(check("{} {}", "after"), "two");
	ok(check("{}", "name: missing"), "a missing member");
	ok(check("{\"name\":null}", "name: must be a string"), "null where it is required");
	ok(check("{\"name\":1}", "name: must be a string"), "a wrong type");
	ok(check("{\"name\":\"x\",\"count\":1.5}", "count: must be an integer"), "not whole");
	ok(check("{\"name\":\"x\",\"count\":1e300}", "count: must be an integer"),
	        "not a number of ours");
	ok(check("{\"name\":\"x\",\"flag\":1}", "flag: must be true or false"), "not a flag");
	ok(check("{\"name\":\"x\",\"nmae\":1}", "nmae: unknown field (known: name, count"),
	        "unknown");
	ok(check("{\"name\":\"x\",\"name\":\"y\"}", "name: given twice"), "twice");
	ok(check("{\"name\":\"a\\u0000b\"}", "NUL"), "an escaped NUL");
	ok(check("{\"name\":\"a\\\\u0000b\"}", NULL), "a backslash before u0000");
	ok(check("{\"name\":\"a\\\\\\u0000b\"}", "NUL"), "and one more");
	struct err e;
	ok(!body_parse("{\"a\":\"\0\"}", 9, &e) && strstr(e.text, "NUL"), "a raw NUL");
	enum { DEEP = 100000 };
	char *deep = malloc(DEEP + 1);
	memset(deep, '[', DEEP);
	deep[DEEP] = '\0';
	ok(!body_parse(deep, DEEP, &e), "a hundred thousand brackets");
	free(deep);
}

/* ---- jails ---- */

static struct policy policy(void)
{
	struct policy p = {.nbindable = 2};
	strcpy(p.name, "test");
	strcpy(p.bindable[0].source, "/srv/ro");
	strcpy(p.bindable[1].source, "/srv/rw");
	p.bindable[1].writable = 1;
	p.limits.memory_bytes = 1 << 30;
	return p;
}

static int jail(const char *text, struct jail_make *m, const char *want)
{
	struct err e = {.code = 0};
	struct policy p = policy();
	struct limits l = {0};
	auto_jailspec struct jailspec j = {.policy = NULL};
	auto_json struct json *body = body_parse(text, strlen(text), &e);
	memset(m, 0, sizeof(*m));
	int rc = body ? jailspec_read(body, true, &j, &e) : e.code;
	if (rc == 0)
		rc = jailspec_narrow(&j, &p, m, &l, &e);
	if (!want && rc == 0)
		return 1;
	if (want && rc < 0 && strstr(e.text, want))
		return 1;
	printf("# got %d '%s'\n", rc, e.text);
	return 0;
}

#define ARGV "{\"argv\":[\"true\"],"

static void test_jail(void)
{
	struct jail_make m;
	ok(jail("{\"argv\":[\"true\"]}", &m, NULL), "the least");
	ok(jail("{\"argv\":[]}", &m, "argv: must name"), "no program");
	ok(jail("{\"argv\":[1]}", &m, "argv[0]: must be a string"), "not a string");
	ok(jail(ARGV "\"cwd\":\"x\"}", &m, "cwd: must be an absolute"), "relative directory");
	ok(jail(ARGV "\"env\":{\"A=B\":\"x\"}}", &m, "env.A=B"), "a variable that would be two");
	ok(jail(ARGV "\"env\":{\"A\":1}}", &m, "env.A: must be a string"), "not a text");
	ok(jail(ARGV "\"user\":\"bin\"}", &m, "neither agent nor root"), "another user");
	ok(jail(ARGV "\"rows\":70000}", &m, "rows: must be"), "a window too high");
	ok(jail(ARGV "\"limits\":{\"memory\":\"512M\"}}", &m, NULL) &&
	                m.narrow.memory_bytes == 512 << 20,
	        "a narrower limit");
	ok(jail(ARGV "\"limits\":{\"memory\":\"2G\"}}", &m, "limit memory"), "a wider one");
	ok(jail(ARGV "\"limits\":{\"memory\":\"lots\"}}", &m,
	           "limits.memory: 'lots' is not a size"),
	        "no number");
	ok(jail(ARGV "\"limits\":{\"memory\":512}}", &m, "limits.memory: must be a text"),
	        "no text");
	ok(jail(ARGV "\"limits\":{\"pids\":\"9M\"}}", &m, "limits.pids: 9M is too large"),
	        "more than a policy may give");
	ok(jail(ARGV "\"limits\":{\"pids\":\"9\",\"pids\":\"8\"}}", &m, "limits.pids: given twice"),
	        "one twice");
	ok(jail(ARGV "\"limits\":{\"memory\":\"0\"}}", &m, "limits.memory: 0 is too small"),
	        "zero");
	ok(jail(ARGV "\"limits\":{\"nofile\":\"63\"}}", &m,
	           "limits.nofile: 63 is too small, the least "
	           "is 64"),
	        "fewer descriptors than a policy may give");
	ok(jail(ARGV "\"limits\":{\"nofile\":\"64\"}}", &m, NULL) && m.narrow.nofile == 64,
	        "as few as it may");
	ok(jail(ARGV "\"limits\":{\"ioRead\":\"1\"}}", &m,
	           "limits.ioRead: 1 is too small, the least "
	           "is 4K"),
	        "a limit in a map of its own");
	ok(jail(ARGV "\"limits\":{\"mem\":\"1\"}}", &m, "limits.mem: unknown"), "an unknown one");
	ok(jail(ARGV "\"binds\":[\"/srv/ro/a/b:/mnt/x\"]}", &m, NULL) && m.nbinds == 1 &&
	                m.binds[0].index == 0 && !m.binds[0].writable &&
	                strcmp(m.binds[0].below, "a/b") == 0 &&
	                strcmp(m.binds[0].target, "/mnt/x") == 0,
	        "a bind below a source");
	ok(jail(ARGV "\"binds\":[\"/srv/rw:/mnt/x:rw\"]}", &m, NULL) && m.binds[0].index == 1 &&
	                m.binds[0].writable && m.binds[0].below[0] == '\0',
	        "a source itself, writable");
	ok(jail(ARGV "\"binds\":[\"/srv/ro:/mnt/x:rw\"]}", &m, "read-only"),
	        "writable where it is not");
	static const char *const bad[] = {"/etc:/mnt/x", "/srv/rox:/mnt/x", "/srv:/mnt/x", "/:/mnt",
	        "/srv/ro/../../etc:/mnt/x", "/srv/ro/./a:/mnt/x", "/srv/ro//a:/mnt/x",
	        "srv/ro:/mnt/x", "/srv/ro:mnt", "/srv/ro:/mnt/../etc", "/srv/ro",
	        "/srv/ro:/mnt/x:rwx", "/srv/ro:/mnt/x:rw:y", "", ":"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[256];
		snprintf(text, sizeof(text), ARGV "\"binds\":[\"%s\"]}", bad[i]);
		ok(jail(text, &m, "binds[0]"), "refused: '%s'", bad[i]);
	}
}

static void test_pack(void)
{
	static const char text[] =
	        "{\"argv\":[\"sh\",\"-c\",\"x\"],\"env\":{\"A\":\"1\",\"HOME\":\"/h\"}}";
	struct err e;
	auto_jailspec struct jailspec j = {.policy = NULL};
	auto_json struct json *body = body_parse(text, sizeof(text) - 1, &e);
	must(body && jailspec_read(body, true, &j, &e) == 0, "read");
	auto_free struct policy *policy = xnew(struct policy);
	policy->nrules = 1;
	policy->rules[0].terminate = 1;
	auto_close int fd = jailspec_pack(&j, policy, &e);
	must(fd >= 0, "packed");
	auto_free char *p = NULL;
	size_t n;
	must(fd_slurp(fd, 1 << 20, &p, &n) == 0 || lseek(fd, 0, SEEK_SET) == 0, "slurped");
	static char *argv[2000], *env[1000];
	char *cwd;
	must(exec_unpack(p, n, argv, env, &cwd) == 0, "unpacked");
	int home = 0, a = 0, path = 0, trust = 0;
	for (char **v = env; *v; v++) {
		home += strncmp(*v, "HOME=", 5) == 0;
		a += strcmp(*v, "A=1") == 0 || strcmp(*v, "HOME=/h") == 0;
		path += strncmp(*v, "PATH=", 5) == 0;
		trust += strcmp(*v, "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/agentbox-egress.pem") == 0;
	}
	ok(home == 1 && a == 2 && path == 1, "what was given goes before ours");
	ok(trust == 1, "where to find the jail's authority, for who looks elsewhere");
	ok(strcmp(argv[2], "x") == 0 && !argv[3] && strcmp(cwd, "/workspace") == 0, "the rest");
}

static void test_problem(void)
{
	auto_buf struct buf b = BUF_INIT(4096);
	problem_text(&b, PROBLEM_NOT_FOUND, "no \"x\"", NULL);
	is_str(b.p,
	        "{\"type\":\"urn:agentbox:error:not_found\",\"title\":\"Not Found\",\"status\":404,"
	        "\"detail\":\"no \\\"x\\\"\"}\n",
	        "a problem");
	ok(problem_of(-EAGAIN, PROBLEM_INTERNAL) == PROBLEM_QUEUE_FULL, "queue_full");
	ok(problem_of(-EDQUOT, PROBLEM_INTERNAL) == PROBLEM_QUOTA, "quota");
	ok(problem_of(-ENOEXEC, PROBLEM_POLICY_UNMET) == PROBLEM_POLICY_UNMET, "policy_unmet");
	ok(problem_of(-ENOPKG, PROBLEM_HARNESS_INVALID) == PROBLEM_POLICY_UNMET,
	        "a missing layer is no fault of the harness");
	ok(problem_of(-ESHUTDOWN, PROBLEM_INTERNAL) == PROBLEM_DRAINING, "draining");
	ok(problem_of(-EIO, PROBLEM_HARNESS_INVALID) == PROBLEM_INTERNAL, "anything else");
	ok(problem_of(-EINVAL, PROBLEM_INTERNAL) == PROBLEM_BAD_REQUEST, "bad_request");
	ok(problem_of(-EBUSY, PROBLEM_INTERNAL) == PROBLEM_CONFLICT, "conflict");
}

int main(void)
{
	test_body();
	test_jail();
	test_pack();
	test_problem();
	return done();
}
