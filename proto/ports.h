/*
 * ports.h - a connection to a port of a jail over the control socket (abctl
 * forward): after 101 the bytes as they are, both ways, each with its end.
 */
#ifndef PROTO_PORTS_H
#define PROTO_PORTS_H

#define PORT_UPGRADE "agentbox-tcp" /* value of the Upgrade header */

#endif
