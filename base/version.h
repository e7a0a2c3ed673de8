/*
 * version.h - the version all programs of this build tell.
 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define AGENTBOX_VERSION "0.1.0"

/* What clients and the daemon say to each other.  Raised where a client of the number before would
 * misunderstand an answer; what is only added leaves it as it is. */
#define AGENTBOX_API "1"

/* Told with each answer of the API: VERSION; api=NUMBER. */
#define AGENTBOX_VERSION_FIELD "Agentbox-Version"
#define AGENTBOX_VERSION_VALUE AGENTBOX_VERSION "; api=" AGENTBOX_API

#endif
