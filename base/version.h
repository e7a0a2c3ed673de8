/*
 * version.h - the version all programs of this build tell.
 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define AGENTBOX_VERSION "0.1.0"

#endif
