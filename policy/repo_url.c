#include "policy/repo_url.h"

#include "base/mem.h"

#include <string.h>

/* As git has them, without what could be taken for an option, a revision's operator or a path. */
bool repo_ref_ok(const char *text)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                           "._/+@-";
	size_t n = strspn(text, fine);
	return n > 0 && n <= REPO_REF_MAX && text[n] == '\0' && !strchr("-/.", text[0]) &&
	       !strchr("/.", text[n - 1]) && !strstr(text, "..") && !strstr(text, "//") &&
	       !strstr(text, "@{");
}

static bool is_bare(const char *url)
{
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("\"\\`'<>#", *p))
			return false;
	return true;
}

int repo_url_check(const char *url, const char *path, struct err *e)
{
	size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
	                : strncmp(url, "http://", 7) == 0 ? 7
	                                                  : 0;
	if (!scheme)
		return err_set(e, -EINVAL,
		        "%s: '%.100s' is neither https:// nor http://; for a directory, abctl "
		        "run --repo DIR brings it as a bundle",
		        path, url);
	if (strlen(url) > REPO_URL_MAX || !is_bare(url))
		return err_set(
		        e, -EINVAL, "%s: no URL, or longer than %d bytes", path, REPO_URL_MAX);
	const char *host = url + scheme;
	size_t n = strcspn(host, "/");
	if (memchr(host, '@', n))
		return err_set(e, -EINVAL,
		        "%s: a login does not belong into the URL, where whoever reads it has it; "
		        "remedy: egress.inject of the policy with the secret",
		        path);
	if (n == 0 || !host[n] || !host[n + 1])
		return err_set(e, -EINVAL, "%s: '%.100s' names no repository", path, url);
	return 0;
}

int repo_text_check(const char *text, const char *path, struct err *e)
{
	size_t n = strcspn(text, "#");
	auto_free char *url = xstrndup(text, n);
	int r = repo_url_check(url, path, e);
	if (r == 0 && text[n] && !repo_ref_ok(text + n + 1))
		r = err_set(
		        e, -EINVAL, "%s: '%.100s' is no branch, tag or commit", path, text + n + 1);
	return r;
}
