/*
 * skew.h - is the daemon that answers of the same release as this abctl?
 *
 * Another version is told once; another number of the API client/ refuses.  A daemon that tells
 * neither is taken as it is.
 */
#ifndef ABCTL_SKEW_H
#define ABCTL_SKEW_H

/* `told` is the value of AGENTBOX_VERSION_FIELD. */
void skew_note(const char *told);

#endif
