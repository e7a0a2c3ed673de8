/*
 * Replays every recorded run of seven agents that speak the Agent Client
 * Protocol (tests/fixtures/AGENT/acp-*) through the driver and compares with
 * <case>.events; GOLDEN_WRITE=1 writes those files instead (then review them
 * against the recording).  What happens message by message is in
 * drivers_acp_lines.c.
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* What the agent.yaml of each says, and what the recording host did. */
static void prepare(struct replay *p)
{
	static const char *const cancelled[] = {
	        "\"status\":\"failed\"", "\"status\":\"completed\"", "\"stopReason\"", NULL};
	static const char *const banner[] = {"pi v", "Retrying (", "Retry finished", NULL};
	p->spec.permissions = PERMISSIONS_ASK;
	if (starts(p->name, "acp-cancel"))
		p->interrupt_before = cancelled;
	if (strstr(p->dir, "copilot")) {
		static const char *const words[] = {"Error: ", NULL};
		p->spec.failure_text = words;
		p->spec.usage_sums = true;
	}
	if (strstr(p->dir, "pi-acp"))
		p->spec.failure_text = banner;
}

int main(void)
{
	static const struct {
		const char *dir;
		size_t cases;
	} agents[] = {
	        {"tests/fixtures/claude-agent-acp", 14},
	        {"tests/fixtures/codex-acp", 14},
	        {"tests/fixtures/copilot", 14},
	        {"tests/fixtures/gemini", 14},
	        {"tests/fixtures/opencode", 13},
	        {"tests/fixtures/pi-acp", 14},
	        {"tests/fixtures/qwen", 14},
	};
	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		replay_all(&driver_acp, agents[i].dir, "acp-", agents[i].cases, prepare);
		replay_mutated(&driver_acp, agents[i].dir, "acp-", prepare, "\"end_turn\"");
	}
	return done();
}
