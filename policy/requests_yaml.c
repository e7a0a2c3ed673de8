#include "policy/requests_yaml.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static const char *const methods[] = {
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", NULL};

/* Ranges of entries that were replaced leave holes. */
void requests_compact(struct policy *p)
{
	struct policy_request kept[POLICY_REQUESTS] = {0};
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->nrules + p->ninject; i++) {
		struct request_range *r =
		        i < p->nrules ? &p->rules[i].requests : &p->inject[i - p->nrules].requests;
		memcpy(kept + n, p->requests + r->first, r->n * sizeof(kept[0]));
		r->first = n;
		n += r->n;
	}
	memcpy(p->requests, kept, sizeof(kept));
	p->nrequests = n;
}

static int one_request(
        const struct keys_ctx *k, const struct yaml_node *n, struct policy_request *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	const char *path = n->text;
	size_t word = strcspn(n->text, " ");
	memset(ret, 0, sizeof(*ret));
	if (n->text[word]) {
		path = n->text + word + strspn(n->text + word, " ");
		(void)snprintf(ret->method, sizeof(ret->method), "%.*s", (int)word, n->text);
		size_t i = 0;
		while (methods[i] && strcmp(methods[i], ret->method) != 0)
			i++;
		if (!methods[i] || word >= sizeof(ret->method))
			return keys_unknown(k, n->line, "method", ret->method, methods);
	}
	if (!form_path_glob(path))
		return keys_error(k, n->line,
		        "request '%.60s' is not METHOD /PATH or /PATH, with * within a segment and "
		        "** across them (and no empty segment, . or ..)",
		        n->text);
	(void)str_copy(ret->path, sizeof(ret->path), path);
	return 0;
}

int requests_add(const struct keys_ctx *k, const struct yaml_node *list, struct policy *p,
        struct request_range *ret)
{
	*ret = (struct request_range){.first = p->nrequests};
	if (!list)
		return 0;
	int r = keys_kind(k, list, YAML_SEQ);
	if (r == 0 && list->count == 0)
		r = keys_error(k, list->line,
		        "'requests' is empty: leave it out for all requests, the entry for none");
	yaml_each (n, list) {
		if (r < 0)
			return r;
		if (p->nrequests == POLICY_REQUESTS)
			return keys_error(k, n->line,
			        "a policy's rules and upstreams have room for %d requests together",
			        POLICY_REQUESTS);
		r = one_request(k, n, &p->requests[p->nrequests]);
		p->nrequests += r == 0;
		ret->n += r == 0;
	}
	return r;
}

int requests_set(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	return keys_kind(k, n, YAML_SEQ);
}
