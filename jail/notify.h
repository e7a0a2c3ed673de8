/*
 * notify.h - telling a service manager how it stands (sd_notify(3) protocol).
 *
 * $NOTIFY_SOCKET and $WATCHDOG_USEC are read once at start, before the environment is wiped.
 * Without one every call does nothing.
 */
#ifndef JAIL_NOTIFY_H
#define JAIL_NOTIFY_H

#include <stdint.h>
#include <sys/un.h>

struct notify {
	struct sockaddr_un to;
	unsigned len; /* of the address; 0: nobody asked */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* as it was given */
	uint64_t watchdog_us; /* how often the manager wants to hear of it; 0: need not */
};

void notify_init(struct notify *n);
void notify_ready(const struct notify *n, const char *status);
void notify_reloading(const struct notify *n); /* notify_ready follows */
void notify_stopping(const struct notify *n);
void notify_alive(const struct notify *n);

#endif
