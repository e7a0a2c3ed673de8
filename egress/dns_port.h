/*
 * dns_port.h - port 53 of a jail, by datagrams and by TCP.
 *
 * The sockets are bound to every address, so an answer leaves from the address
 * that was asked: resolver libraries drop answers that come from elsewhere.
 */
#ifndef EGRESS_DNS_PORT_H
#define EGRESS_DNS_PORT_H

struct jail;

void dns_port_datagrams(struct jail *j, int fd, int most); /* fd is borrowed */
void dns_port_accept(struct jail *j, int fd);              /* takes fd */

#endif
