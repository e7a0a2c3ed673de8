/*
 * run.c - a run of the harness hello: its events as they come, an artifact, and
 * its result.
 *
 *	cc run.c $(pkg-config --cflags --libs libagentbox) -o run && ./run ann/site "hi there"
 */
#include <agentbox.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed(const char *what, const struct agentbox_error *e)
{
	fprintf(stderr, "%s: %s\n", what, e->text);
	return 1;
}

/* To the end; 0, or what main returns. */
static int follow(const struct agentbox *ab, const char *run)
{
	struct agentbox_error e;
	struct agentbox_events *events = agentbox_events_open(ab, run, 0, &e);
	const char *text;
	size_t n;
	int more;
	if (!events)
		return failed("events", &e);
	while ((more = agentbox_events_next(events, -1, &text, &n, &e)) > 0)
		printf("%.*s\n", (int)n, text);
	agentbox_events_close(events);
	return more < 0 ? failed("events", &e) : 0;
}

int main(int argc, char **argv)
{
	struct agentbox_error e;
	char *goal = argc == 3 ? strchr(argv[1], '/') : NULL;
	if (!goal) {
		fprintf(stderr, "usage: run USER/GOAL PROMPT\n");
		return 2;
	}
	*goal++ = '\0';
	struct agentbox *ab = agentbox_new(NULL, NULL, NULL, &e);
	if (!ab)
		return failed("agentbox", &e);
	const struct agentbox_run want = {.size = sizeof(want),
	        .user = argv[1],
	        .goal = goal,
	        .harness = "hello",
	        .prompt = argv[2]};
	char *run = agentbox_start(ab, &want, &e);
	int code = run ? follow(ab, run) : failed("start", &e);
	if (code == 0 && agentbox_artifact(ab, run, "out/hello.txt", STDOUT_FILENO, &e) < 0)
		code = failed("artifact", &e);
	char *result = code == 0 ? agentbox_wait(ab, run, 10000, &e) : NULL;
	if (code == 0 && !result)
		code = failed("result", &e);
	if (result)
		printf("%s\n", result);
	free(result);
	free(run);
	agentbox_free(ab);
	return code;
}
