#include "supervisor/auth.h"

#include "base/mem.h"

#include <sys/socket.h>

enum {
	/* NGROUPS_MAX is 65536; a login has a few dozen groups.  A peer with more than this is
	 * judged by its primary group. */
	AUTH_GROUPS = 4096,
};

enum auth_role auth_role_of(
        uid_t uid, gid_t gid, const gid_t *groups, size_t ngroups, gid_t socket_gid)
{
	if (uid == 0)
		return AUTH_ROOT;
	if (gid == socket_gid)
		return AUTH_USER;
	for (size_t i = 0; i < ngroups; i++)
		if (groups[i] == socket_gid)
			return AUTH_USER;
	return AUTH_NONE;
}

int auth_peer(int fd, gid_t socket_gid, struct auth_peer *ret, struct err *e)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return err_errno(e, "peer credentials");
	gid_t groups[AUTH_GROUPS];
	socklen_t bytes = sizeof(groups);
	/* 4.13+.  ERANGE: more groups than we have room for. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		bytes = 0;
	ret->role = auth_role_of(
	        cred.uid, cred.gid, groups, (size_t)bytes / sizeof(groups[0]), socket_gid);
	ret->remote = false;
	ret->uid = cred.uid;
	ret->pid = cred.pid;
	return 0;
}
