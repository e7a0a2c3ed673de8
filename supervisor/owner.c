#include "supervisor/owner.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Neither names of tenants nor those of users have control characters. */
enum { SEPARATOR = 0x1f };

int owner_make(const char *tenant, const char *user, char ret[OWNER_MAX], struct err *e)
{
	if (*tenant && !name_valid(tenant))
		return err_set(e, -EINVAL, "tenant: '%.64s' is not a name", tenant);
	if (strlen(user) > SESSION_PART_MAX)
		return err_set(e, -EINVAL, "userId is longer than %d bytes", SESSION_PART_MAX);
	if (*tenant)
		(void)snprintf(ret, OWNER_MAX, "%s%c%s", tenant, SEPARATOR, user);
	else
		(void)str_copy(ret, OWNER_MAX, user);
	return 0;
}

const char *owner_user(const char *owner)
{
	const char *at = strchr(owner, SEPARATOR);
	return at ? at + 1 : owner;
}

void owner_tenant(const char *owner, char ret[NAME_MAX_LEN])
{
	const char *at = strchr(owner, SEPARATOR);
	size_t n = at ? (size_t)(at - owner) : 0;
	ret[0] = '\0';
	if (n >= NAME_MAX_LEN)
		return;
	memcpy(ret, owner, n);
	ret[n] = '\0';
}

void owner_range(const char *tenant, char from[NAME_MAX_LEN + 1], char to[NAME_MAX_LEN + 1])
{
	(void)snprintf(from, NAME_MAX_LEN + 1, "%.63s%c", tenant, SEPARATOR);
	(void)snprintf(to, NAME_MAX_LEN + 1, "%.63s%c", tenant, SEPARATOR + 1);
}

void owner_json(struct jw *w, const char *owner)
{
	char tenant[NAME_MAX_LEN];
	owner_tenant(owner, tenant);
	if (*tenant)
		jw_str(w, "tenant", tenant);
	jw_str(w, "userId", owner_user(owner));
}
