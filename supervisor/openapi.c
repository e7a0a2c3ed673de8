#include "supervisor/openapi.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"
#include "supervisor/routes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/*
 * Schemas in a short hand: "name:type" by spaces.  Types: s string, i integer,
 * n number, b boolean, o object, s=a|b one of these strings, {T} map of T, [T] array of T,
 * otherwise the name of a schema.
 */
struct schema {
	const char *name, *members;
	const char *required; /* a request: nothing else than `members` is taken; else NULL */
};

#define EXEC_MEMBERS "argv:[s] env:{s} cwd:s tty:b rows:i cols:i"

/* A table is read by its columns. */
/* clang-format off */
static const struct schema schemas[] = {
	{ "Problem", "type:s title:s status:i detail:s hint:s", NULL },
	{ "Health",
	  "status:s=ok|degraded|unproven|draining runsUnsaved:i detail:s "
	  "runsRunning:i runsQueued:i", NULL },
	{ "Drain", "draining:b runsRunning:i runsQueued:i jails:i", NULL },
	{ "Version", "version:s agentboxd:Agentboxd", NULL },
	{ "Agentboxd", "version:s since:s renewing:b agents:s stays:s", NULL },
	{ "Reload", "reloaded:b renewing:b", NULL },
	{ "Stats",
	  "version:s uptimeMs:i sessions:i runsRunning:i runsQueued:i draining:i "
	  "stateFreeBytes:i runsUnsaved:i "
	  "agentsWaiting:i warmHits:i warmMisses:i "
	  "jails:i jailsMade:i poolHits:i runRetries:i sessionEvictions:i runsForgotten:i events:i "
	  "egressDenied:i runs:{i} duration:Histogram queued:Histogram start:Histogram "
	  "harnessRuns:[HarnessRuns] jailMake:Histogram storeCommit:Histogram loopTurn:Histogram "
	  "host:HostLook processes:[ProcessLook]", NULL },
	{ "Histogram", "count:i sumMs:n p50Ms:n p90Ms:n p95Ms:n p99Ms:n", NULL },
	{ "HarnessRuns",
	  "harness:s runs:{i} duration:Histogram queued:Histogram start:Histogram", NULL },
	{ "HostLook", "load1:n pressure:o", NULL },
	{ "ProcessLook", "process:s cpuMs:i residentBytes:i", NULL },
	{ "Layer",
	  "layer:s have:s=yes|fallback|no need:s=required|warned|none missing:s detail:s "
	  "remedy:s", NULL },
	{ "SelfTest", "ok:b us:i detail:s", NULL },
	{ "Check", "check:s state:s=ok|advice|bad found:s why:s remedy:s", NULL },
	{ "Isolation", "kernel:s root:s=host|image note:s rootNote:s see:s", NULL },
	{ "Doctor",
	  "ok:b policy:s selfTest:SelfTest layers:[Layer] host:[Check] isolation:Isolation",
	  NULL },
	{ "Jail",
	  "jail:i sessionId:s policy:s ports:[i] since:s waits:Waits cpuMs:i "
	  "memoryPeakBytes:i memoryBytes:i pidsPeak:i ioReadBytes:i ioWriteBytes:i "
	  "egressBytes:i", NULL },
	{ "Waits", "harness:s lastRunId:s ahead:b idleMs:i leftMs:i memoryBytes:i", NULL },
	{ "JailList", "jails:[Jail]", NULL },
	{ "Key",
	  "id:s name:s tenant:s users:[s] harnesses:[s] policies:[s] verbs:[s] rate:i runRate:i "
	  "tokensPerDay:i costUsdPerDay:n createdAt:s expiresAt:s usedAt:s expired:b", NULL },
	{ "AuditEntry",
	  "ts:s remote:b uid:i key:s keyId:s tenant:s method:s path:s status:i refused:b run:s "
	  "session:s lost:i", NULL },
	{ "KeyList", "keys:[Key]", NULL },
	{ "KeyMade", "key:s about:Key warnings:[s]", NULL },
	{ "KeyRequest",
	  "name:s tenant:s users:[s] harnesses:[s] policies:[s] verbs:[s] rate:i runRate:i "
	  "tokensPerDay:i costUsdPerDay:n expiresAt:s", "name" },
	{ "SessionKey", "userId:s goalId:s", "userId goalId" },
	{ "SessionMade", "sessionId:s", NULL },
	{ "PrewarmRequest", "harness:s", "harness" },
	{ "Prewarmed", "sessionId:s harness:s state:s=preparing|ready agent:b why:s", NULL },
	{ "Session",
	  "sessionId:s tenant:s userId:s goalId:s createdAt:s usedAt:s runs:i active:b pinned:b "
	  "evictedAt:s disk:SessionDisk jail:i "
	  "ports:[i] repo:Checkout",
	  NULL },
	{ "SessionDisk",
	  "policy:s limitBytes:i limitInodes:i peakBytes:i peakInodes:i runId:s", NULL },
	{ "FileEntry", "name:s type:s=file|directory|link|other bytes:i mode:s changedAt:s", NULL },
	{ "FileList", "path:s entries:[FileEntry] cursor:s unnamed:i truncated:b", NULL },
	{ "Conversation", "backend:s id:s runId:s", NULL },
	{ "Conversations", "conversations:[Conversation]", NULL },
	{ "ConversationKey", "backend:s id:s", "backend id" },
	{ "ConversationKeys", "conversations:[ConversationKey]", "conversations" },
	{ "SessionList", "sessions:[Session] cursor:s", NULL },
	{ "RunRequest",
	  "session:SessionKey harness:s prompt:s params:{s} idempotencyKey:s priority:i "
	  "repo:RepoAsked",
	  "session harness prompt" },
	{ "RunAccepted", "runId:s sessionId:s status:s", NULL },
	{ "Run",
	  "runId:s sessionId:s tenant:s userId:s goalId:s harness:s status:s state:s createdAt:s "
	  "startedAt:s endedAt:s traceId:s priority:i position:i fromSeq:i params:{s} "
	  "pending:[Asked] result:Result pipelineRunId:s step:i steps:[Step]",
	  NULL },
	{ "Asked",
	  "permissionId:s callId:s name:s title:s input:o inputBytes:i questionId:s text:s "
	  "options:[s] askedAt:s expiresAt:s", NULL },
	{ "Answer", "answer:s=once|always|deny", "answer" },
	{ "Message", "text:s", "text" },
	{ "Said", "runId:s permissionId:s questionId:s answer:s", NULL },
	{ "RunList", "runs:[Run] cursor:s", NULL },
	{ "Result",
	  "runId:s sessionId:s harness:s "
	  "status:s=succeeded|failed|cancelled|timeout|oom|quota|blocked|interrupted "
	  "finalText:s artifacts:[Artifact] usage:o durationMs:i queuedMs:i startMs:i collectMs:i "
	  "toolCalls:i attempts:i exit:o resources:Resources "
	  "egress:EgressTotals layers:[s] verification:Verification steps:[Step] "
	  "repo:Changes guardrail:Guardrail error:s", NULL },
	{ "RepoAsked", "url:s bundle:s ref:s", NULL },
	{ "Checkout", "source:s base:s ref:s", NULL },
	{ "Changes",
	  "source:s base:s head:s commit:s changed:b patchBytes:i bundleBytes:i "
	  "nestedLeftOut:i incomplete:b headLost:b error:s", NULL },
	{ "Guardrail", "stage:s=input|output rule:s", NULL },
	{ "Verification",
	  "passed:b required:b exitCode:i signal:i output:s durationMs:i "
	  "timedOut:b timeoutMs:i outOfMemory:b error:s", NULL },
	{ "Resources",
	  "cpuMs:i memoryPeakBytes:i pidsPeak:i ioReadBytes:i ioWriteBytes:i "
	  "egressBytes:i diskPeakBytes:i inodesPeak:i", NULL },
	{ "Event", "seq:i ts:s session:s run:s type:s", NULL },
	{ "Raw", "stream:s=stdout|stderr|gap text:s base64:s bytes:i reason:s", NULL },
	{ "EgressEvent",
	  "ts:s jail:i session:s run:s type:s=egress.denied|egress.allowed|egress.lost "
	  "host:s port:i protocol:s=dns|tls|http|raw|tcp|udp reason:s policy:s rule:s times:i "
	  "bytesIn:i "
	  "bytesOut:i add:s hint:s count:i", NULL },
	{ "Webhook",
	  "name:s host:s command:s events:[s] harnesses:[s] users:[s] namedOnly:b pending:i "
	  "delivered:i retried:i failed:i failures:i lastAt:s last:s", NULL },
	{ "WebhookList", "webhooks:[Webhook]", NULL },
	{ "WebhookAnswer", "delivered:b status:i said:s error:s tookMs:i", NULL },
	{ "Snapshot",
	  "name:s createdAt:s sessionId:s bytes:i files:i usedBy:i sessions:[s]", NULL },
	{ "SnapshotList", "snapshots:[Snapshot]", NULL },
	{ "SnapshotRequest", "name:s sessionId:s replace:b", "name sessionId" },
	{ "EgressHost", "host:s port:i requests:i denied:i bytesIn:i bytesOut:i", NULL },
	{ "EgressTotals", "denied:i allowed:i bytesIn:i bytesOut:i hosts:[EgressHost]", NULL },
	{ "Artifact", "path:s bytes:i sha256:s upload:Upload", NULL },
	{ "Upload", "status:s=pending|done|failed|deleted url:s local:b error:s", NULL },
	{ "ArtifactList", "artifacts:[Artifact]", NULL },
	{ "Param", "name:s required:b default:s enum:[s] pattern:s description:s", NULL },
	{ "PipelineStep", "harness:s prompt:s approve:b timeoutMs:i", NULL },
	{ "Step", "step:i harness:s runId:s status:s durationMs:i artifacts:i error:s", NULL },
	{ "Harness",
	  "name:s description:s backend:s model:s policy:s timeoutMs:i file:s bundled:b pack:s "
	  "usable:b error:s params:[Param] pipeline:[PipelineStep]", NULL },
	{ "HarnessList", "harnesses:[Harness]", NULL },
	{ "Agent",
	  "name:s description:s driver:s version:s installed:s installable:b unavailable:s "
	  "untried:s program:s probe:[s] inject:[s] abilities:{s} error:s", NULL },
	{ "Ability", "name:s what:s asked:s enforced:s", NULL },
	{ "AgentList", "agents:[Agent] abilities:[Ability]", NULL },
	{ "Policy", "name:s description:s source:s root:s=host|image limits:o", NULL },
	{ "PolicyList", "policies:[Policy]", NULL },
	{ "ExecRequest", EXEC_MEMBERS " policy:s snapshot:s", "argv" },
	{ "JailRequest", EXEC_MEMBERS " policy:s agent:s user:s binds:[s] limits:{s}", "argv" },
};
/* clang-format on */

static void reference(struct jw *w, const char *name, size_t n)
{
	char ref[96];
	snprintf(ref, sizeof(ref), "#/components/schemas/%.*s", (int)n, name);
	jw_str(w, "$ref", ref);
}

/* Words of `text` between `separator`s as an array of strings. */
static void words(struct jw *w, const char *key, const char *text, size_t n, char separator)
{
	jw_open(w, key, '[');
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, separator, (size_t)(end - p));
		stop = stop ? stop : end;
		jw_bytes(w, NULL, p, (size_t)(stop - p));
		p = stop + 1;
	}
	jw_close(w, ']');
}

static void type(struct jw *w, const char *key, const char *t, size_t n)
{
	bool compound = t[0] == '[' || t[0] == '{', one_of = n > 2 && t[0] == 's' && t[1] == '=';
	const char *plain = t[0] == '['             ? "array"
	                    : t[0] == '{'           ? "object"
	                    : one_of                ? "string"
	                    : n == 1 && t[0] == 's' ? "string"
	                    : n == 1 && t[0] == 'n' ? "number"
	                    : n == 1 && t[0] == 'i' ? "integer"
	                    : n == 1 && t[0] == 'b' ? "boolean"
	                    : n == 1 && t[0] == 'o' ? "object"
	                                            : NULL;
	jw_open(w, key, '{');
	if (plain)
		jw_str(w, "type", plain);
	else
		reference(w, t, n);
	if (compound)
		type(w, t[0] == '[' ? "items" : "additionalProperties", t + 1, n - 2);
	if (one_of)
		words(w, "enum", t + 2, n - 2, '|');
	jw_close(w, '}');
}

static void schema(struct jw *w, const struct schema *s)
{
	jw_open(w, s->name, '{');
	jw_str(w, "type", "object");
	jw_open(w, "properties", '{');
	for (const char *p = s->members; *p;) {
		char name[32];
		size_t nname = strcspn(p, ":"), n = strcspn(p + nname + 1, " ");
		snprintf(name, sizeof(name), "%.*s", (int)nname, p);
		type(w, name, p + nname + 1, n);
		p += nname + 1 + n;
		p += strspn(p, " ");
	}
	jw_close(w, '}');
	if (s->required) {
		words(w, "required", s->required, strlen(s->required), ' ');
		jw_bool(w, "additionalProperties", false);
	}
	jw_close(w, '}');
}

static void content(struct jw *w, const char *media, const char *name)
{
	jw_open(w, "content", '{');
	jw_open(w, media, '{');
	jw_open(w, "schema", '{');
	reference(w, name, strlen(name));
	jw_close(w, '}');
	jw_close(w, '}');
	jw_close(w, '}');
}

static void parameter(struct jw *w, const char *name, size_t n, const char *in)
{
	jw_open(w, NULL, '{');
	jw_bytes(w, "name", name, n);
	jw_str(w, "in", in);
	jw_bool(w, "required", strcmp(in, "path") == 0);
	jw_open(w, "schema", '{');
	jw_str(w, "type", "string");
	jw_close(w, '}');
	jw_close(w, '}');
}

static void parameters(struct jw *w, const struct route *r)
{
	jw_open(w, "parameters", '[');
	for (const char *p = r->pattern; (p = strchr(p, '{')); p++)
		parameter(w, p + 1, strcspn(p + 1, ".*}"), "path");
	const char *query = r->query && strcmp(r->query, ROUTE_ANY) != 0 ? r->query : "";
	for (const char *q = query; *q;) {
		size_t n = strcspn(q, " ");
		parameter(w, q, n, "query");
		q += n + strspn(q + n, " ");
	}
	jw_close(w, ']');
}

static void operation(struct jw *w, const struct route *r, const char *name)
{
	char method[8] = "";
	for (size_t i = 0; i + 1 < sizeof(method) && name[i]; i++)
		method[i] = (char)tolower((unsigned char)name[i]);
	jw_open(w, method, '{');
	jw_str(w, "summary", r->summary);
	jw_str(w, "x-agentbox-scope", scope_name(r->scope));
	if (r->scope != SCOPE_OPEN && r->scope != SCOPE_OPERATOR)
		jw_str(w, "x-agentbox-verb", apikey_verb_name(r->verb));
	parameters(w, r);
	if (r->request) {
		jw_open(w, "requestBody", '{');
		jw_bool(w, "required", true);
		content(w, "application/json", r->request);
		jw_close(w, '}');
	}
	jw_open(w, "responses", '{');
	jw_open(w, "2XX", '{');
	jw_str(w, "description", "Done or accepted");
	if (r->response)
		content(w, "application/json", r->response);
	jw_close(w, '}');
	jw_open(w, "default", '{');
	jw_str(w, "description", "Refused");
	content(w, "application/problem+json", "Problem");
	jw_close(w, '}');
	jw_close(w, '}');
	jw_close(w, '}');
}

static void operations(struct jw *w, const struct route *r)
{
	static const char *const all[] = {
	        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
	if (strcmp(r->method, ROUTE_ANY) != 0)
		operation(w, r, r->method);
	for (size_t i = 0; strcmp(r->method, ROUTE_ANY) == 0 && i < ARRAY_LEN(all); i++)
		operation(w, r, all[i]);
}

/* Routes of one path stand together in the table. */
static void paths(struct jw *w)
{
	size_t n;
	const struct route *table = routes_table(&n);
	jw_open(w, "paths", '{');
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || strcmp(table[i].pattern, table[i - 1].pattern) != 0;
		bool last = i + 1 == n || strcmp(table[i].pattern, table[i + 1].pattern) != 0;
		char path[128];
		(void)str_copy(path, sizeof(path), table[i].pattern);
		char *rest = strpbrk(path, ".*"); /* OpenAPI has no word for it */
		if (rest && path[strlen(path) - 1] == '}')
			memcpy(rest, "}", 2);
		if (first)
			jw_open(w, path, '{');
		operations(w, &table[i]);
		if (last)
			jw_close(w, '}');
	}
	jw_close(w, '}');
}

void openapi_print(struct buf *to)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "openapi", "3.1.0");
	jw_open(&w, "info", '{');
	jw_str(&w, "title", "agentbox");
	jw_str(&w, "version", AGENTBOX_VERSION);
	jw_str(&w, "description",
	        "Coding agents as the execution engine of a server. Over a Unix "
	        "socket: /run/agentbox/agentbox.sock.");
	jw_close(&w, '}');
	paths(&w);
	jw_open(&w, "components", '{');
	jw_open(&w, "schemas", '{');
	for (size_t i = 0; i < ARRAY_LEN(schemas); i++)
		schema(&w, &schemas[i]);
	jw_close(&w, '}');
	jw_close(&w, '}');
	jw_close(&w, '}');
}
