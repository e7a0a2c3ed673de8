/*
 * media.h - what a file is, by its name.  Pure.
 */
#ifndef SUPERVISOR_MEDIA_H
#define SUPERVISOR_MEDIA_H

/* The media type that the name's ending says (static). */
const char *media_type(const char *path);

#endif
