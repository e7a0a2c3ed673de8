/*
 * agentbox-canary: the program of the self-test's jail (proto/canary.h).
 *
 * It is started as an agent would be, by PID 1, as the agent, under the filter of a policy.  It
 * believes nothing that agentboxd says it did and looks for itself.
 */
#include "jail/canary.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static struct canary_record record = {.magic = CANARY_MAGIC, .size = sizeof(record)};

void looked(enum layer l)
{
	record.looked |= LAYER_BIT(l);
}

void lacks(enum layer l, const char *fmt, ...)
{
	looked(l);
	if (record.broken & LAYER_BIT(l))
		return;
	record.broken |= LAYER_BIT(l);
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(record.text[l], CANARY_TEXT_MAX, fmt, ap);
	va_end(ap);
}

long text_of(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	size_t have = 0;
	ssize_t n = 0;
	while (have < size - 1 && (n = read(fd, buf + have, size - 1 - have)) > 0)
		have += (size_t)n;
	close(fd);
	buf[have] = '\0';
	return n < 0 ? -1 : (long)have;
}

/* agentboxd sees whether the cgroup counts it. */
static void touch_memory(void)
{
	void *p = mmap(NULL, CANARY_TOUCHED, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		lacks(LAYER_LIMIT_MEMORY, "%d MiB cannot be had", CANARY_TOUCHED >> 20);
}

int main(void)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	look_at_ids(&record);
	look_at_spaces(&record);
	look_at_privilege();
	look_at_filter();
	look_at_rlimits();
	look_at_network();
	look_at_mounts();
	look_at_proc();
	look_at_dev();
	look_at_descriptors();
	look_at_workspace();
	look_at_disk();
	look_at_landlock();
	touch_memory();
	look_at_processes(&record); /* last: there is no fork left after it */
	if (write(STDOUT_FILENO, &record, sizeof(record)) != (ssize_t)sizeof(record))
		return 1;
	char wait;
	return read(STDIN_FILENO, &wait, 1) < 0; /* until agentboxd has seen enough */
}
