/*
 * mountinfo.h - a line of /proc/PID/mountinfo, taken apart in place.
 */
#ifndef JAIL_MOUNTINFO_H
#define JAIL_MOUNTINFO_H

/* What a host of ten thousand mounts has is 2 MB. */
enum { MOUNTINFO_MAX = 16 << 20 };

/* The mount point, ended and without escapes, or NULL.  *ret_options, unless NULL: what follows,
 * "ro,nosuid,... [TAG...] - TYPE SOURCE OPTIONS". */
char *mountinfo_point(char *line, char **ret_options);

#endif
