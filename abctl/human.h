/*
 * human.h - numbers as people read them: 1.2 MB, 3.4 s, 12.3k.
 */
#ifndef ABCTL_HUMAN_H
#define ABCTL_HUMAN_H

#include <stddef.h>
#include <stdint.h>

enum { HUMAN_MAX = 32 };
struct human {
	char s[HUMAN_MAX];
};

struct human human_bytes(uint64_t n);    /* 999 B, 1.2 kB, 34 MB */
struct human human_duration(int64_t ms); /* 12 ms, 3.4 s, 2m05s, 1h02m */
struct human human_count(int64_t n);     /* 999, 1.2k, 3.4M */
struct human human_money(double usd);    /* $0.0123, $1.20 */
/* 2026-11-29T20:56:48.769Z -> 11-29 20:56:48 (UTC, as stored); other text as it is, cut. */
struct human human_time(const char *rfc3339);

#endif
