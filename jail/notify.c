#include "jail/notify.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* sd_watchdog_enabled(3). */
static uint64_t watchdog(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	if (!us || (pid && strtol(pid, NULL, 10) != getpid()))
		return 0;
	char *end;
	unsigned long long n = strtoull(us, &end, 10);
	return *end || n > UINT64_C(86400000000) ? 0 : n;
}

void notify_init(struct notify *n)
{
	memset(n, 0, sizeof(*n));
	const char *path = getenv("NOTIFY_SOCKET");
	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	size_t len = strlen(path);
	if (len < 2 || len >= sizeof(n->to.sun_path))
		return;
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, path, len);
	memcpy(n->path, path, len); /* len is below its size */
	if (path[0] == '@')
		n->to.sun_path[0] = '\0'; /* abstract */
	n->watchdog_us = watchdog();
	n->len = (unsigned)(offsetof(struct sockaddr_un, sun_path) + len);
}

/* Nobody waits for an answer, and a manager that does not listen is no reason to fail. */
static void tell(const struct notify *n, const char *text)
{
	if (n->len == 0)
		return;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&n->to,
		        n->len);
}

void notify_ready(const struct notify *n, const char *status)
{
	char text[256];
	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\n", status);
	tell(n, text);
}

void notify_reloading(const struct notify *n)
{
	char text[128];
	/* Type=notify-reload (systemd 253) wants the time with it. */
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld\n",
	        (long long)clock_mono_us());
	tell(n, text);
}

void notify_stopping(const struct notify *n)
{
	tell(n, "STOPPING=1\n");
}

void notify_alive(const struct notify *n)
{
	tell(n, "WATCHDOG=1\n");
}
