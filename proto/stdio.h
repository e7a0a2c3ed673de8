/*
 * stdio.h - frames on an upgraded connection (abctl jail, exec): both ways
 * {u8 stream, u32 big-endian length, bytes}.  Flow control is the socket's.
 */
#ifndef PROTO_STDIO_H
#define PROTO_STDIO_H

#include <stddef.h>
#include <stdint.h>

#define STDIO_UPGRADE "agentbox-stdio" /* value of the Upgrade header */

enum stdio_stream {
	STDIO_STDIN = 0,
	STDIO_STDOUT = 1,
	STDIO_STDERR = 2,
	STDIO_EXIT = 3,   /* JSON {"code"|"signal","reason","resources"}: the last frame */
	STDIO_SIGNAL = 4, /* u8 number */
	STDIO_RESIZE = 5, /* u16 rows, u16 cols, big-endian */
	STDIO_STDIN_EOF = 6,
	STDIO_NOTICE = 7, /* JSON, for people: {"message"} and {"layers":...,"missing":[...]} */
};

enum { STDIO_HEAD = 5, STDIO_FRAME_MAX = 64 << 10 };

static inline void stdio_pack(uint8_t head[STDIO_HEAD], enum stdio_stream s, size_t n)
{
	head[0] = (uint8_t)s;
	head[1] = (uint8_t)(n >> 24);
	head[2] = (uint8_t)(n >> 16);
	head[3] = (uint8_t)(n >> 8);
	head[4] = (uint8_t)n;
}

static inline size_t stdio_length(const uint8_t head[STDIO_HEAD])
{
	return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

#endif
