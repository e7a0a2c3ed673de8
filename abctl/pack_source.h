/*
 * pack_source.h - where a pack comes from: "npm:NAME[@VERSION]", a repository of git by https
 * (URL[#REF]), an archive (.tgz, .tar.gz: a file or by https), or a directory.
 */
#ifndef ABCTL_PACK_SOURCE_H
#define ABCTL_PACK_SOURCE_H

enum pack_kind { PACK_DIR, PACK_FILE, PACK_URL, PACK_NPM, PACK_GIT };

struct pack_source {
	enum pack_kind kind;
	char *text; /* owned: as recorded; paths are absolute */
	char *from; /* owned: path, URL or name of the package */
	char *ref;  /* owned: of git, or "" */
	char *name; /* owned: of the pack, where neither operator nor manifest give one */
};

/* 0, or an exit code after having said why. */
int pack_source_parse(const char *text, struct pack_source *ret);
void pack_source_done(struct pack_source *s);

#endif
