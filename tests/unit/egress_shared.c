/* Whose connections are used for whom: an upstream where the connection is logged in. */
#include "tests/egress_bed.h"

enum { UPSTREAM = 8091 };

static void more(struct policy *p)
{
	p->ninject = 1; /* those of the bed would leave no room */
	bed_inject(p, "logged.agentbox", "http://127.0.0.1:8091", NULL, true);
	bed_inject(p, "keyed.agentbox", "http://127.0.0.1:8091", "ANTHROPIC_API_KEY", true);
}

/* ---- the upstream: who has logged in on a connection is who asks on it ---- */

static void answer(int s, int number)
{
	char p[8192], user[32] = "nobody", text[64], head[128];
	ssize_t n;
	while ((n = read(s, p, sizeof(p) - 1)) > 0) { /* a request is one write of libcurl's */
		p[n] = '\0';
		const char *at = strcasestr(p, "\r\nauthorization: NTLM ");
		if (at)
			(void)sscanf(at + strlen("\r\nauthorization: NTLM "), "%31s", user);
		snprintf(text, sizeof(text), "connection %d of %s", number, user);
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
		        strlen(text));
		bed_put(s, head);
		bed_put(s, text);
	}
	_exit(0);
}

static void upstream(void)
{
	struct sockaddr_in a = bed_address("127.0.0.1", UPSTREAM);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 64) == 0,
	        "an upstream");
	if (bed_child() == 0) {
		signal(SIGCHLD, SIG_IGN);
		for (int number = 1;; number++) {
			int one = accept(t, NULL, NULL);
			if (one >= 0 && fork() == 0)
				answer(one, number);
			close(one);
		}
	}
	close(t);
}

/* ---- the jail ---- */

static char *ask(const char *host, const char *field)
{
	auto_free char *request =
	        xasprintf("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", host, field);
	uint32_t a;
	char ip[32];
	must(bed_lookup(EGRESS_RESOLVER, host, 1, &a) == 0 && a, "%s has an address", host);
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	auto_close int s = bed_connect(ip, 80);
	must(s >= 0 && fd_write_all(s, request, strlen(request)) == 0, "asked");
	auto_free char *all = bed_read_all(s);
	const char *body = strstr(all, "\r\n\r\n");
	return xstrdup(body ? body + 4 : all);
}

static void gets(const char *host, const char *field, const char *want, const char *what)
{
	auto_free char *got = ask(host, field);
	if (!ok(strcmp(got, want) == 0, "%s", what))
		printf("# %s\n", got);
}

int main(void)
{
	bed_namespaces();
	bed_fakes();
	upstream();
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_more = more;
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	gets("logged.agentbox", "Authorization: NTLM ann\r\n", "connection 1 of ann", "a login");
	gets("logged.agentbox", "", "connection 1 of ann", "kept for whoever logged in");
	gets("keyed.agentbox", "Authorization: NTLM ann\r\n", "connection 2 of nobody",
	        "not with an upstream that gets a secret of ours: it sees no login");
	gets("keyed.agentbox", "", "connection 2 of nobody", "kept, too");
	bed_jail_end(1);
	bed_jail(2, 0);
	gets("logged.agentbox", "", "connection 3 of nobody",
	        "another jail does not ride on the login of the first");
	gets("keyed.agentbox", "", "connection 2 of nobody",
	        "and shares what is ours, which saves it the handshake");
	kill(bed.egress, SIGTERM);
	return done();
}
