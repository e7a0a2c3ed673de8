/*
 * What the example does not show of libagentbox, against a daemon: refusals, cancelling, a command
 * with its input, threads.  Prints TAP.
 */
#include <agentbox.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count, failed;

static void ok(int passed, const char *what, const char *why)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++count, what);
	if (!passed)
		printf("# %s\n", why);
	failed |= !passed;
}

static char *start(
        const struct agentbox *ab, const char *harness, const char *goal, struct agentbox_error *e)
{
	const struct agentbox_run want = {.size = sizeof(want),
	        .user = "lib",
	        .goal = goal,
	        .harness = harness,
	        .prompt = "x"};
	return agentbox_start(ab, &want, e);
}

static void refusals(const struct agentbox *ab)
{
	struct agentbox_error e = {0};
	ok(!start(ab, "nosuch", "a", &e) && e.code == -ENOENT && e.status == 404 &&
	                strstr(e.text, "nosuch"),
	        "an unknown harness is refused by name", e.text);
	ok(agentbox_cancel(ab, "run_00000000000000000000000000", NULL) == -ENOENT,
	        "without a place for the error the code is told", "");
	ok(!agentbox_events_open(ab, "../x", 0, &e) && e.code == -EINVAL, "no id of a run", e.text);
	struct agentbox *nobody = agentbox_new("/nonexistent/sock", NULL, NULL, &e);
	ok(nobody && !agentbox_request(nobody, "GET", "/v1/version", NULL, &e) &&
	                e.code == -ENOENT && e.status == 0,
	        "nobody there", e.text);
	agentbox_free(nobody);
}

static void cancelling(const struct agentbox *ab)
{
	struct agentbox_error e = {0};
	char *run = start(ab, "sleeper", "c", &e);
	ok(run != NULL, "a long run", e.text);
	if (!run)
		return;
	ok(!agentbox_wait(ab, run, 50, &e) && e.code == -ETIMEDOUT, "is not over soon", e.text);
	ok(agentbox_cancel(ab, run, &e) == 0, "is cancelled", e.text);
	char *result = agentbox_wait(ab, run, -1, &e);
	ok(result && strstr(result, "\"status\":\"cancelled\""), "and waited for",
	        result ? result : e.text);
	free(result);
	free(run);
}

static void command(const struct agentbox *ab)
{
	enum { BYTES = 200000 };
	static char sent[BYTES];
	struct agentbox_error e = {0};
	struct agentbox_stdio *s =
	        agentbox_stdio_open(ab, "/v1/jails", "{\"argv\":[\"wc\",\"-c\"]}", &e);
	ok(s != NULL, "a command in a jail", e.text);
	if (!s)
		return;
	memset(sent, 'x', sizeof(sent));
	ok(agentbox_stdio_write(s, AGENTBOX_STDIN, sent, sizeof(sent), &e) == 0 &&
	                agentbox_stdio_write(s, AGENTBOX_STDIN_EOF, NULL, 0, &e) == 0,
	        "takes more than a frame", e.text);
	char out[64] = "", end[512] = "";
	const void *p;
	size_t n;
	int stream, r;
	while ((r = agentbox_stdio_read(s, 120000, &stream, &p, &n, &e)) > 0) {
		char *to = stream == AGENTBOX_STDOUT ? out : stream == AGENTBOX_EXIT ? end : NULL;
		if (to)
			snprintf(to, stream == AGENTBOX_STDOUT ? sizeof(out) : sizeof(end), "%.*s",
			        (int)n, (const char *)p);
	}
	ok(r == 0 && strcmp(out, "200000\n") == 0, "and answers", r < 0 ? e.text : out);
	ok(strstr(end, "\"code\":0") != NULL, "its end is told", end);
	agentbox_stdio_close(s);
	ok(!agentbox_stdio_open(ab, "/v1/jails", "{}", &e) && e.status == 400,
	        "what is no command is refused", e.text);
}

struct job {
	const struct agentbox *ab;
	int number, good;
};

static void *work(void *arg)
{
	struct job *j = arg;
	char goal[16];
	snprintf(goal, sizeof(goal), "t%d", j->number);
	char *run = start(j->ab, "hello", goal, NULL);
	char *result = run ? agentbox_wait(j->ab, run, -1, NULL) : NULL;
	j->good = result && strstr(result, "\"status\":\"succeeded\"");
	free(result);
	free(run);
	return NULL;
}

static void threads(const struct agentbox *ab)
{
	enum { THREADS = 4 };
	struct job jobs[THREADS];
	pthread_t ids[THREADS];
	int good = 0;
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){ab, i, 0};
		if (pthread_create(&ids[i], NULL, work, &jobs[i]) != 0)
			abort();
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		good += jobs[i].good;
	}
	ok(good == THREADS, "four threads, one struct agentbox", "");
}

int main(void)
{
	struct agentbox_error e = {0};
	struct agentbox *ab = agentbox_new(NULL, NULL, NULL, &e);
	if (!ab)
		return 1;
	refusals(ab);
	cancelling(ab);
	command(ab);
	threads(ab);
	agentbox_free(ab);
	return failed;
}
