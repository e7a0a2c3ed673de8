/*
 * machine.h - how the host and our own processes fare, as /proc tells: pressure,
 * load, processor time and memory.
 *
 * What a host does not tell (a kernel without pressure information, /proc with
 * hidepid) is absent, never 0.
 */
#ifndef SUPERVISOR_MACHINE_H
#define SUPERVISOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum machine_resource { MACHINE_CPU, MACHINE_MEMORY, MACHINE_IO, MACHINE_RESOURCES };
const char *machine_resource_name(enum machine_resource r);
enum machine_stall { MACHINE_SOME, MACHINE_FULL, MACHINE_STALLS };
const char *machine_stall_name(enum machine_stall s);

struct machine_pressure {
	bool known;
	double avg10;      /* percent of the last ten seconds */
	uint64_t total_us; /* since the host's start */
};

enum machine_process {
	MACHINE_ROOT,
	MACHINE_SUPERVISOR,
	MACHINE_EGRESS,
	MACHINE_LISTENER,
	MACHINE_PROCESSES
};
const char *machine_process_name(enum machine_process p);

struct machine_used {
	bool known;
	uint64_t cpu_ms, resident_bytes;
};

struct machine_look {
	bool loaded;
	double load1;
	struct machine_pressure pressure[MACHINE_RESOURCES][MACHINE_STALLS];
	struct machine_used used[MACHINE_PROCESSES];
};

struct machine;
struct machine *machine_new(void); /* before the filter: it asks whose child this is */
void machine_free(struct machine *m);
void machine_see(struct machine *m, struct machine_look *ret);

/* Pure: the text of /proc/pressure/X, and of /proc/PID/stat. */
void machine_read_pressure(const char *text, struct machine_pressure ret[MACHINE_STALLS]);
bool machine_read_stat(const char *text, uint64_t tick_hz, uint64_t page, struct machine_used *ret);

#endif
