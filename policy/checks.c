#include "policy/checks.h"

static const struct {
	const char *name, *why, *remedy;
} checks[CHECK_COUNT] = {
#define CHECK_ROW(sym, name, why, remedy) [CHECK_##sym] = {name, why, remedy},
        CHECKS(CHECK_ROW)
#undef CHECK_ROW
};

static const char *const states[CHECK_STATE_COUNT] = {
#define CHECK_STATE_ROW(sym, name) [CHECK_##sym] = (name),
        CHECK_STATES(CHECK_STATE_ROW)
#undef CHECK_STATE_ROW
};

const char *check_name(enum check c)
{
	return checks[c].name;
}

const char *check_why(enum check c)
{
	return checks[c].why;
}

const char *check_remedy(enum check c)
{
	return checks[c].remedy;
}

const char *check_state_name(unsigned state)
{
	return state < CHECK_STATE_COUNT ? states[state] : "?";
}
