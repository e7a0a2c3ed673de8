#include "supervisor/machine.h"

#include "base/fd.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, CHILDREN_MAX = 256 << 10, PATH_LEN = 64 };

struct machine {
	pid_t pid[MACHINE_PROCESSES]; /* 0: not known */
	uint64_t tick_hz, page;
};

const char *machine_resource_name(enum machine_resource r)
{
	static const char *const names[MACHINE_RESOURCES] = {"cpu", "memory", "io"};
	return names[r];
}

const char *machine_stall_name(enum machine_stall s)
{
	return s == MACHINE_SOME ? "some" : "full";
}

const char *machine_process_name(enum machine_process p)
{
	static const char *const names[MACHINE_PROCESSES] = {
	        "agentboxd", "agentbox-supervisor", "agentbox-egress", "agentbox-listener"};
	return names[p];
}

/* ---- reading ---- */

/* Lines of "some avg10=0.12 avg60=0.05 avg300=0.01 total=12345". */
void machine_read_pressure(const char *text, struct machine_pressure ret[MACHINE_STALLS])
{
	for (int i = 0; i < MACHINE_STALLS; i++) {
		struct machine_pressure *p = &ret[i];
		*p = (struct machine_pressure){0};
		const char *line = strstr(text, machine_stall_name((enum machine_stall)i));
		const char *avg = line ? strstr(line, "avg10=") : NULL;
		const char *total = avg ? strstr(avg, "total=") : NULL;
		if (!total)
			continue;
		p->known = true;
		p->avg10 = strtod(avg + strlen("avg10="), NULL);
		p->total_us = strtoull(total + strlen("total="), NULL, 10);
	}
}

/* The fields behind the name, which may have spaces and parentheses of its own. */
bool machine_read_stat(const char *text, uint64_t tick_hz, uint64_t page, struct machine_used *ret)
{
	enum { STATE = 3, UTIME = 14, STIME = 15, RSS = 24 };
	const char *at = strrchr(text, ')');
	uint64_t ticks = 0;
	*ret = (struct machine_used){0};
	if (!at || !tick_hz)
		return false;
	at++;
	for (int field = STATE; field <= RSS; field++) {
		at += strspn(at, " ");
		if (!*at)
			return false;
		if (field == UTIME || field == STIME)
			ticks += strtoull(at, NULL, 10);
		if (field == RSS)
			ret->resident_bytes = strtoull(at, NULL, 10) * page;
		at += strcspn(at, " ");
	}
	ret->cpu_ms = ticks * 1000 / tick_hz;
	ret->known = true;
	return true;
}

/* ---- whose ---- */

static bool slurp(const char *path, size_t max, char **ret)
{
	size_t n;
	return file_slurp(path, max, ret, &n) >= 0;
}

static bool is_named(pid_t pid, const char *name)
{
	char path[PATH_LEN];
	auto_free char *comm = NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (!slurp(path, TEXT_MAX, &comm))
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return comm[0] && strncmp(comm, name, strlen(comm)) == 0; /* the kernel cuts it */
}

static void take_child(struct machine *m, pid_t pid)
{
	for (int i = MACHINE_EGRESS; i < MACHINE_PROCESSES; i++)
		if (!m->pid[i] && is_named(pid, machine_process_name((enum machine_process)i)))
			m->pid[i] = pid;
}

/* Our siblings that are not known, or have been replaced: as new ones stand behind old ones here,
 * jails and all are gone through only then. */
static void find_siblings(struct machine *m)
{
	char path[PATH_LEN];
	auto_free char *children = NULL;
	bool missing = false;
	for (int i = MACHINE_EGRESS; i < MACHINE_PROCESSES; i++) {
		if (m->pid[i] &&
		        !is_named(m->pid[i], machine_process_name((enum machine_process)i)))
			m->pid[i] = 0;
		missing = missing || !m->pid[i];
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)m->pid[MACHINE_ROOT],
	        (int)m->pid[MACHINE_ROOT]);
	if (!missing || !slurp(path, CHILDREN_MAX, &children))
		return;
	for (char *at = children, *end; *at; at = end) {
		long pid = strtol(at, &end, 10);
		if (end == at)
			break;
		take_child(m, (pid_t)pid);
	}
}

/* ---- looking ---- */

void machine_see(struct machine *m, struct machine_look *ret)
{
	char path[PATH_LEN];
	*ret = (struct machine_look){0};
	find_siblings(m);
	for (int i = 0; i < MACHINE_RESOURCES; i++) {
		auto_free char *text = NULL;
		(void)snprintf(path, sizeof(path), "/proc/pressure/%s",
		        machine_resource_name((enum machine_resource)i));
		if (slurp(path, TEXT_MAX, &text))
			machine_read_pressure(text, ret->pressure[i]);
	}
	for (int i = 0; i < MACHINE_PROCESSES; i++) {
		auto_free char *text = NULL;
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)m->pid[i]);
		if (m->pid[i] && slurp(path, TEXT_MAX, &text))
			(void)machine_read_stat(text, m->tick_hz, m->page, &ret->used[i]);
	}
	auto_free char *load = NULL;
	ret->loaded = slurp("/proc/loadavg", TEXT_MAX, &load);
	ret->load1 = ret->loaded ? strtod(load, NULL) : 0;
}

struct machine *machine_new(void)
{
	struct machine *m = xnew(struct machine);
	m->pid[MACHINE_ROOT] = getppid();
	m->pid[MACHINE_SUPERVISOR] = getpid();
	m->tick_hz = (uint64_t)sysconf(_SC_CLK_TCK);
	m->page = (uint64_t)sysconf(_SC_PAGESIZE);
	return m;
}

void machine_free(struct machine *m)
{
	free(m);
}
