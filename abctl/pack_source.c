#include "abctl/pack_source.h"
#include "abctl/fail.h"
#include "abctl/verb.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), w = strlen(with);
	return n > w && strcmp(text + n - w, with) == 0;
}

static bool is_archive(const char *text)
{
	return ends(text, ".tgz") || ends(text, ".tar.gz");
}

/* The last part of a path, without what kinds of files end in, in small letters. */
static char *name_of(const char *text)
{
	static const char *const tails[] = {".git", ".tgz", ".tar.gz"};
	auto_free char *path = xstrdup(text);
	size_t n = strlen(path);
	while (n && path[n - 1] == '/')
		path[--n] = '\0';
	const char *slash = strrchr(path, '/');
	char *name = xstrdup(slash ? slash + 1 : path);
	for (size_t i = 0; i < ARRAY_LEN(tails); i++)
		if (ends(name, tails[i]))
			name[strlen(name) - strlen(tails[i])] = '\0';
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	return name;
}

static bool is_forge(const char *url)
{
	static const char *const hosts[] = {
	        "https://github.com/", "https://gitlab.com/", "https://bitbucket.org/"};
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (begins(url, hosts[i]))
			return true;
	return false;
}

static int by_https(const char *text, struct pack_source *s)
{
	const char *hash = strchr(text, '#');
	s->from = xstrndup(text, hash ? (size_t)(hash - text) : strlen(text));
	s->ref = xstrdup(hash ? hash + 1 : "");
	s->name = name_of(s->from);
	if (strpbrk(s->from, "@\\ \"'") || s->ref[0] == '-')
		return fail_usage(
		        "'%s': no password, blank or quote belongs in a pack's URL", text);
	if (is_archive(s->from) && !hash) {
		s->kind = PACK_URL;
		return 0;
	}
	s->kind = PACK_GIT;
	if (ends(s->from, ".git") || is_forge(s->from))
		return 0;
	return fail_usage("'%s' ends neither in .git nor in .tgz or .tar.gz: what is it?", text);
}

static int by_npm(const char *text, struct pack_source *s)
{
	s->kind = PACK_NPM;
	s->from = xstrdup(text + strlen("npm:"));
	s->ref = xstrdup("");
	const char *at = *s->from ? strchr(s->from + 1, '@') : NULL;
	auto_free char *plain = xstrndup(s->from, at ? (size_t)(at - s->from) : strlen(s->from));
	s->name = name_of(plain);
	/* npm would take others for paths, URLs and repositories. */
	const char *slash = strchr(plain, '/');
	bool scoped = plain[0] == '@' && slash && slash > plain + 1 && slash[1];
	if (!*plain || plain[0] == '-' || plain[0] == '.' || (slash && !scoped) ||
	        (scoped && strchr(slash + 1, '/')) || strpbrk(s->from, ":\\ #") ||
	        (at && strchr(at, '/')))
		return fail_usage("'%s' is not npm:NAME[@VERSION]", text);
	return 0;
}

static int by_path(const char *text, struct pack_source *s)
{
	struct stat st;
	char *path = realpath(text, NULL);
	if (!path || stat(path, &st) < 0) {
		int r = fail_usage("%s: %s", text, strerror(errno));
		free(path);
		return r;
	}
	free(s->text);
	s->text = path;
	s->from = xstrdup(path);
	s->ref = xstrdup("");
	s->name = name_of(path);
	s->kind = S_ISDIR(st.st_mode) ? PACK_DIR : PACK_FILE;
	if (s->kind == PACK_FILE && (!S_ISREG(st.st_mode) || !is_archive(path)))
		return fail_usage("%s is neither a directory nor a .tgz or .tar.gz", text);
	return 0;
}

int pack_source_parse(const char *text, struct pack_source *s)
{
	*s = (struct pack_source){.text = xstrdup(text)};
	if (begins(text, "npm:"))
		return by_npm(text, s);
	if (begins(text, "https://"))
		return by_https(text, s);
	if (begins(text, "git@") || begins(text, "ssh://"))
		return fail_usage("'%s': a jail has no key for ssh; remedy: its https URL, with "
		                  "`inject` in the policy of --policy where it wants a password",
		        text);
	if (strstr(text, "://"))
		return fail_usage("'%s': packs are fetched by https alone", text);
	return by_path(text, s);
}

void pack_source_done(struct pack_source *s)
{
	free(s->text);
	free(s->from);
	free(s->ref);
	free(s->name);
}
