/* What a line of the log may have of what came from outside. */
#include "base/log.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <unistd.h>

static void logged(const char *text, const char *want)
{
	int ends[2], before = dup(STDERR_FILENO);
	char got[256] = "";
	must(before >= 0 && pipe2(ends, O_CLOEXEC) == 0, "a pipe");
	dup2(ends[1], STDERR_FILENO);
	log_warn("it said '%s'", text);
	dup2(before, STDERR_FILENO);
	fd_close(before);
	fd_close(ends[1]);
	must(fd_read_full(ends[0], got, sizeof(got) - 1) > 0, "a line");
	fd_close(ends[0]);
	is_str(got, want, "the line");
}

int main(void)
{
	unsetenv("JOURNAL_STREAM");
	log_init("program", LOG_LEVEL_INFO);
	logged("x", "program: warning: it said 'x'\n");
	logged("a\nprogram: error: forged",
	        "program: warning: it said 'a program: error: forged'\n");
	logged("\x1b[2J\a\x7f", "program: warning: it said ' [2J  '\n");
	logged("\xc2\x9b"
	       "2J",
	        "program: warning: it said '  2J'\n");
	logged("\xc3\xa9\xc2\xa0", "program: warning: it said '\xc3\xa9\xc2\xa0'\n");
	logged("\xc2", "program: warning: it said '\xc2'\n");
	return done();
}
