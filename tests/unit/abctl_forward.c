#include "abctl/forward.h"
#include "tests/t.h"

static const struct {
	const char *text, *bind; /* bind NULL: refused */
	unsigned local, port;
} rows[] = {
        {"3000", "127.0.0.1", 3000, 3000},
        {"8080:3000", "127.0.0.1", 8080, 3000},
        {"0:3000", "127.0.0.1", 0, 3000},
        {"0.0.0.0:8080:3000", "0.0.0.0", 8080, 3000},
        {"[::1]:8080:3000", "::1", 8080, 3000},
        {"[::]:0:1", "::", 0, 1},
        {"1:65535", "127.0.0.1", 1, 65535},
        {"", NULL, 0, 0},
        {"0", NULL, 0, 0},
        {"65536", NULL, 0, 0},
        {"99999999999", NULL, 0, 0},
        {"3000:", NULL, 0, 0},
        {":3000", NULL, 0, 0},
        {"a:3000", NULL, 0, 0},
        {"-1:3000", NULL, 0, 0},
        {"8080:0", NULL, 0, 0},
        {"localhost:8080:3000", NULL, 0, 0},
        {"1:2:3", NULL, 0, 0},
        {"::1:8080:3000", NULL, 0, 0},
        {"[127.0.0.1]:8080:3000", NULL, 0, 0},
        {"[::1:8080:3000", NULL, 0, 0},
        {":8080:3000", NULL, 0, 0},
        {"0.0.0.0::3000", NULL, 0, 0},
        {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1:2", NULL, 0, 0},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct forward_spec s = {.port = 7};
		struct err e;
		int r = forward_parse(rows[i].text, &s, &e);
		if (!rows[i].bind)
			ok(r == -EINVAL && s.port == 7, "'%s' is refused", rows[i].text);
		else
			ok(r == 0 && strcmp(s.bind, rows[i].bind) == 0 &&
			                s.local == rows[i].local && s.port == rows[i].port,
			        "'%s'", rows[i].text);
	}
	return done();
}
