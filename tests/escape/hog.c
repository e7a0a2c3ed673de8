/*
 * What the kernel counts for a user or for the whole host: a jail's share of it has an end.
 *
 * `hog hold` takes all it can get of each, says so, and keeps it until its stdin ends; `hog probe`
 * takes one of each, beside such a one.
 */
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST = 6000, CONNECTIONS = 2000 };

static int take_terminal(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int take_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

/* A timer's signal is queued when it is made. */
static int take_signal(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;
	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

/* One that never finishes its request; any address is the way out's. */
static int take_connection(void)
{
	static const char part[] = "GET / HTTP/1.1\r\nHost: slow";
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
	to.sin_addr.s_addr = htonl(0xc6120009);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -1;
	(void)send(fd, part, sizeof(part) - 1, MSG_NOSIGNAL);
	return fd;
}

static const struct {
	const char *name;
	int (*take)(void);
} goods[] = {
        {"terminal", take_terminal},
        {"inotify instance", take_inotify},
        {"queued signal", take_signal},
};

static int take_all(int (*take)(void), int most)
{
	int n = 0;
	while (n < most && take() >= 0)
		n++;
	return n;
}

static int hold(void)
{
	char byte;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++)
		printf("# %s: %d\n", goods[i].name, take_all(goods[i].take, MOST));
	printf("# connections: %d\n", take_all(take_connection, CONNECTIONS));
	printf("held\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

static int probe(void)
{
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++)
		ok(goods[i].take() >= 0, "a %s", goods[i].name);
	return done();
}

int main(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "hold") == 0 ? hold() : probe();
}
