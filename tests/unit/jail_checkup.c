#include "tests/t.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/checkup.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

static char root[] = "/tmp/agentbox-checkup.XXXXXX";

static void put(const char *path, const char *text)
{
	auto_free char *whole = xasprintf("%s/%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
	        slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		must(mkdir(whole, 0755) == 0 || errno == EEXIST, "mkdir %s", whole);
		*slash = '/';
	}
	auto_close int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0, "%s", whole);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* One file with one content: the state and what is told. */
static void answers(
        enum check c, const char *path, const char *text, enum check_state want, const char *found)
{
	struct checkup up;
	put(path, text);
	checkup_read(root, false, &up);
	ok(up.state[c] == want, "%s: %.*s is %s (got %s)", check_name(c), (int)strcspn(text, "\n"),
	        text, check_state_name(want), check_state_name(up.state[c]));
	is_str(up.found[c], found, "and is told");
}

static void numbers(void)
{
	static const struct {
		enum check check;
		const char *path, *fine, *advice, *bad;
	} rows[] = {
	        {CHECK_SMT, "sys/devices/system/cpu/smt/active", "0", "1", NULL},
	        {CHECK_KSM, "sys/kernel/mm/ksm/run", "0", "1", NULL},
	        {CHECK_USERNS, "proc/sys/user/max_user_namespaces", "10000", "10", "0"},
	        {CHECK_USERNS_CLONE, "proc/sys/kernel/unprivileged_userns_clone", "0", "1", NULL},
	        {CHECK_IO_URING, "proc/sys/kernel/io_uring_disabled", "1", "0", "2"},
	        {CHECK_BPF, "proc/sys/kernel/unprivileged_bpf_disabled", "2", "0", NULL},
	        {CHECK_PERF, "proc/sys/kernel/perf_event_paranoid", "3", "-1", NULL},
	        {CHECK_USERFAULTFD, "proc/sys/vm/unprivileged_userfaultfd", "0", "1", NULL},
	        {CHECK_KPTR, "proc/sys/kernel/kptr_restrict", "2", "0", NULL},
	        {CHECK_DMESG, "proc/sys/kernel/dmesg_restrict", "1", "0", NULL},
	        {CHECK_ASLR, "proc/sys/kernel/randomize_va_space", "2", "1", NULL},
	        {CHECK_YAMA, "proc/sys/kernel/yama/ptrace_scope", "1", "0", NULL},
	        {CHECK_TIOCSTI, "proc/sys/dev/tty/legacy_tiocsti", "0", "1", NULL},
	        {CHECK_SYMLINKS, "proc/sys/fs/protected_symlinks", "1", "0", NULL},
	        {CHECK_HARDLINKS, "proc/sys/fs/protected_hardlinks", "1", "0", NULL},
	        {CHECK_FIFOS, "proc/sys/fs/protected_fifos", "2", "0", NULL},
	        {CHECK_REGULAR, "proc/sys/fs/protected_regular", "1", "0", NULL},
	        {CHECK_SUID_DUMPABLE, "proc/sys/fs/suid_dumpable", "0", "2", NULL},
	        {CHECK_MEMFD, "proc/sys/vm/memfd_noexec", "1", "-1", "2"},
	        {CHECK_MODULES, "proc/sys/kernel/modules_disabled", "1", "0", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		answers(rows[i].check, rows[i].path, rows[i].fine, CHECK_OK, rows[i].fine);
		answers(rows[i].check, rows[i].path, rows[i].advice, CHECK_ADVICE, rows[i].advice);
		if (rows[i].bad)
			answers(rows[i].check, rows[i].path, rows[i].bad, CHECK_BAD, rows[i].bad);
	}
	answers(CHECK_KPTR, "proc/sys/kernel/kptr_restrict", "much\n", CHECK_ADVICE, "much");
}

static void others(void)
{
	static const char release[] = "proc/sys/kernel/osrelease";
	static const char core[] = "proc/sys/kernel/core_pattern";
	static const char heading[] = "Filename Type Size Used Priority\n";
	answers(CHECK_KERNEL, release, "6.1.0-13-amd64\n", CHECK_OK, "6.1.0-13-amd64");
	answers(CHECK_KERNEL, release, "10.0\n", CHECK_OK, "10.0");
	answers(CHECK_KERNEL, release, "6.0.19\n", CHECK_BAD, "6.0.19");
	answers(CHECK_KERNEL, release, "5.15.0\n", CHECK_BAD, "5.15.0");
	answers(CHECK_CORE_PATTERN, core, "core\n", CHECK_OK, "core");
	answers(CHECK_CORE_PATTERN, core, "|/usr/lib/parse %P\n", CHECK_ADVICE,
	        "|/usr/lib/parse %P");
	answers(CHECK_SWAP, "proc/swaps", heading, CHECK_OK, "none");
	auto_free char *swap = xasprintf("%s/dev/sda2 partition 1 0 -2\n", heading);
	answers(CHECK_SWAP, "proc/swaps", swap, CHECK_ADVICE, "/dev/sda2 partition 1 0 -2");
}

static void processors(void)
{
	static const char one[] = "sys/devices/system/cpu/vulnerabilities/meltdown";
	static const char two[] = "sys/devices/system/cpu/vulnerabilities/mds";
	struct checkup up;
	checkup_read(root, false, &up);
	ok(up.state[CHECK_CPU] == CHECK_ADVICE, "a kernel that does not tell of its processors");
	answers(CHECK_CPU, one, "Not affected\n", CHECK_OK, "none is open");
	answers(CHECK_CPU, one, "Mitigation: PTI\n", CHECK_OK, "none is open");
	answers(CHECK_CPU, two, "Vulnerable: no microcode\n", CHECK_ADVICE, "mds");
}

static void shares(void)
{
	static const char group[] = "proc/sys/kernel/sched_autogroup_enabled";
	struct checkup up;
	checkup_read(root, false, &up);
	is_str(up.found[CHECK_SHARES], "no cpu controller, no autogroup: by process",
	        "a kernel without autogroup");
	answers(CHECK_SHARES, group, "0\n", CHECK_ADVICE,
	        "no cpu controller, no autogroup: by process");
	answers(CHECK_SHARES, group, "1\n", CHECK_ADVICE,
	        "no cpu controller: autogroup's, by session");
	checkup_read(root, true, &up);
	ok(up.state[CHECK_SHARES] == CHECK_OK, "with the controller there is nothing to say");
}

int main(void)
{
	struct checkup up;
	must(mkdtemp(root) != NULL, "a directory");
	checkup_read(root, false, &up);
	ok(up.state[CHECK_YAMA] == CHECK_OK, "what a kernel does not have is fine");
	is_str(up.found[CHECK_YAMA], "not in this kernel", "and said");
	processors();
	numbers();
	others();
	shares();
	for (int i = 0; i < CHECK_COUNT; i++)
		ok(check_name((enum check)i)[0] && check_why((enum check)i)[0] &&
		                check_remedy((enum check)i)[0],
		        "%s: why and remedy", check_name((enum check)i));
	checkup_read("/", false, &up);
	for (int i = 0; i < CHECK_COUNT; i++)
		ok(up.found[i][0] && up.state[i] < CHECK_STATE_COUNT, "%s here: %s, %s",
		        check_name((enum check)i), check_state_name(up.state[i]), up.found[i]);
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return done();
}
