/*
 * embed.h - a file of the tree as a text of the program that is built: it is read, linted and
 * changed as what it is.
 *
 * .incbin finds the file by the include path, which is the root of the tree.  The Makefile has to
 * know that the object depends on it.
 */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

/* `name` is the text, NUL-terminated, and name##_end where its NUL is; of this file alone. */
#define EMBED(name, file)                                                                          \
	__asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n" #name "_end: .byte 0\n"      \
	        ".previous\n");                                                                    \
	extern const char name[] __attribute__((visibility("hidden")));                            \
	extern const char name##_end[] __attribute__((visibility("hidden")));

#endif
