#include "abctl/term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool utf8_locale(void)
{
	static const char *const vars[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < sizeof(vars) / sizeof(vars[0]); i++) {
		const char *v = getenv(vars[i]);
		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return false;
}

int term_size(int fd, unsigned *ret_rows, unsigned *ret_cols)
{
	struct winsize w;
	if (ioctl(fd, TIOCGWINSZ, &w) < 0)
		return -errno;
	/* A serial line does not know its size. */
	*ret_rows = w.ws_row ? w.ws_row : 24;
	*ret_cols = w.ws_col ? w.ws_col : 80;
	return 0;
}

struct term term_of(int fd)
{
	struct term t = {.tty = isatty(fd), .utf8 = utf8_locale()};
	const char *type = getenv("TERM"), *no_color = getenv("NO_COLOR");
	unsigned rows;
	t.smart = t.tty && type && *type && strcmp(type, "dumb") != 0;
	t.colour = t.smart && !(no_color && *no_color);
	if (t.tty && term_size(fd, &rows, &t.width) < 0)
		t.width = 80;
	return t;
}

int term_raw(int fd, struct termios *saved)
{
	if (tcgetattr(fd, saved) < 0)
		return -errno;
	struct termios raw = *saved;
	cfmakeraw(&raw);
	return tcsetattr(fd, TCSADRAIN, &raw) < 0 ? -errno : 0;
}

int term_keys(int fd, struct termios *saved)
{
	if (tcgetattr(fd, saved) < 0)
		return -errno;
	struct termios keys = *saved;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	return tcsetattr(fd, TCSAFLUSH, &keys) < 0 ? -errno : 0;
}

void term_restore(int fd, const struct termios *saved)
{
	tcsetattr(fd, TCSADRAIN, saved);
}
