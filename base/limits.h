/*
 * limits.h - everything that grows has its limit here, with the reason.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

enum {
	/* The longest line kept whole.  563 KB is the longest seen from a real agent (qwen); what
	 * is longer is passed on in pieces as agent.raw events, never lost. */
	LIMIT_LINE = 16 << 20,
	/* One read from a pipe: a quarter of its default capacity.  What was read is digested in
	 * one go, so with larger ones every reply waits longer behind eight agents that print
	 * (64 KiB: 30 ms), and none is faster. */
	LIMIT_PUMP_READ = 16 << 10,
	/* Bytes of one event in the log, envelope included (a raw piece is cut to fit). */
	LIMIT_EVENT = 24 << 20,
	/* A raw piece of an over-long line. */
	LIMIT_RAW_PIECE = 256 << 10,
	/* HTTP request bodies: a prompt of a few MB and its JSON escapes. */
	LIMIT_HTTP_BODY = 16 << 20,
	LIMIT_PROMPT = 12 << 20,
	/* YAML files of root and harness files: ten times the largest sensible one. */
	LIMIT_YAML_FILE = 1 << 20,
	/* argv + environment of one exec request (execve itself takes 128 KiB a string). */
	LIMIT_EXEC_BLOB = 1 << 20,
	LIMIT_EXEC_ARGS = 1024,
	LIMIT_EXEC_ENVS = 512,
	/* Jails at once: each has a 64Ki block of host uids (base/ids.h). */
	LIMIT_JAILS = 4096,
	LIMIT_POLICIES = 128,
	LIMIT_HARNESSES = 1024,
	/* Artifacts of one run. */
	LIMIT_ARTIFACTS = 4096,
	/* finalText in a result; the whole text is in the events. */
	LIMIT_FINAL_TEXT = 1 << 20,
	/* Queue of runs not yet started, over all sessions. */
	LIMIT_QUEUED_RUNS = 10000,
	/* Connections to the ports of one jail at once: a browser opens six a name, a load test
	 * some hundred. */
	LIMIT_INBOUND = 256,
	/* Control connections at once: two thousand that follow runs, and those that ask beside
	 * them.  Idle ones make room. */
	LIMIT_CONNECTIONS = 4096,
};

#endif
