#include "policy/state_yaml.h"

#include "base/mem.h"

#define MIB      ((uint64_t)1 << 20)
#define RESERVE  (64 * MIB)
#define JOURNALS (512 * MIB)

static const struct key state_rows[] = {
        {.name = "reserve",
                .type = KEY_BYTES,
                .offset = offsetof(struct daemon_config, state_reserve),
                .max = STATE_RESERVE_MOST,
                .none = true,
                .dflt = "64M",
                .doc = "What stays free on the disk of the state directory for what runs, at most "
                       "a sixteenth of the disk: with less left no run is taken or begun."},
};
const struct key_table state_keys = KEY_TABLE(state_rows);

static const struct key retention_rows[] = {
        {.name = "runs",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, keep.runs_ms),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "How long a run is kept after its end, with all of it. Of a pinned session "
                       "nothing goes by retention but raw logs. none: for ever."},
        {.name = "runs_max",
                .type = KEY_COUNT,
                .offset = offsetof(struct daemon_config, keep.runs_max),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "How many ended runs are kept: the oldest go."},
        {.name = "events",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, keep.events_ms),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "How long the events of a run are kept after its end; its result stays."},
        {.name = "artifacts",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, keep.artifacts_ms),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "How long its artifacts are kept."},
        {.name = "journals",
                .type = KEY_BYTES,
                .offset = offsetof(struct daemon_config, keep.journals_bytes),
                .min = RETENTION_JOURNALS_LEAST,
                .max = RETENTION_JOURNALS_MOST,
                .dflt = "512M",
                .doc = "What the raw logs of all ended runs may take: the oldest go."},
};
const struct key_table retention_keys = KEY_TABLE(retention_rows);

static const char *const evictions[] = {
        [SESSION_EVICT_KEEP] = "keep", [SESSION_EVICT_DELETE] = "delete", NULL};

static const struct key sessions_rows[] = {
        {.name = "max",
                .type = KEY_COUNT,
                .offset = offsetof(struct daemon_config, sessions.max),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "Sessions that are ready at once. One more takes the place of the one that "
                       "was used longest ago and is idle: no run of it waits or runs, no command "
                       "is in it, it is not pinned. Where there is none it is refused with 429."},
        {.name = "idle",
                .type = KEY_TIME,
                .offset = offsetof(struct daemon_config, sessions.idle_ms),
                .min = 1,
                .none = true,
                .dflt = "none",
                .doc = "How long a session may be idle before it is evicted."},
        {.name = "evict",
                .type = KEY_ENUM,
                .offset = offsetof(struct daemon_config, sessions.evict),
                .names = evictions,
                .dflt = "keep",
                .doc = "What becomes of an evicted session. keep: it is put aside with its files, "
                       "its agent that waits is ended, and its next run takes it up again. "
                       "delete: it goes with all that is of it."},
};
const struct key_table sessions_keys = KEY_TABLE(sessions_rows);

void state_defaults(struct daemon_config *c)
{
	c->state_reserve = RESERVE;
	c->keep = (struct retention){.journals_bytes = JOURNALS};
}
