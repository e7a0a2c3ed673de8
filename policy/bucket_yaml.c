#include "policy/bucket_yaml.h"
#include "base/mem.h"
#include "policy/allow_yaml.h"

#define AT(field) offsetof(struct bucket, field)

static int set_addresses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct bucket *b = obj;
	return cidrs_set(k, n, b->cidrs, &b->ncidrs);
}

static const struct key retry_rows[] = {
        {.name = "first",
                .type = KEY_TIME,
                .offset = AT(first_ms),
                .min = 10,
                .max = 3600000,
                .dflt = "1s",
                .doc = "Pause after the first attempt that failed; then it doubles.  Each pause is "
                       "shortened by up to half, at random."},
        {.name = "most",
                .type = KEY_TIME,
                .offset = AT(most_ms),
                .min = 10,
                .max = 3600000,
                .dflt = "5m",
                .doc = "The longest pause."},
        {.name = "give_up",
                .type = KEY_TIME,
                .offset = AT(keep_ms),
                .min = 100,
                .max = (uint64_t)30 * 24 * 3600 * 1000,
                .dflt = "24h",
                .doc = "After that time an upload has failed, and what is to be deleted stays."},
};
static const struct key_table retry_keys = KEY_TABLE(retry_rows);

#define NAMED_SECRET(key, field, must, text)                                                       \
	{                                                                                          \
		.name = (key), .type = KEY_FIXED, .offset = AT(field), .size = NAME_MAX_LEN,       \
		.required = (must), .form = form_variable, .want = "a name such as S3_KEY",        \
		.doc = (text)                                                                      \
	}

static const struct key s3_rows[] = {
        {.name = "endpoint",
                .type = KEY_FIXED,
                .offset = AT(endpoint),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_url,
                .want = "an http:// or https:// URL without user, path and query",
                .doc = "Where the S3 API is.  Plain http only with `addresses`."},
        {.name = "region",
                .type = KEY_FIXED,
                .offset = AT(region),
                .size = NAME_MAX_LEN,
                .required = true,
                .form = form_region,
                .want = "a region such as eu-central-1",
                .doc = "What requests are signed for; many servers other than Amazon's want "
                       "us-east-1."},
        {.name = "bucket",
                .type = KEY_FIXED,
                .offset = AT(name),
                .size = NAME_MAX_LEN,
                .required = true,
                .form = form_bucket,
                .want = "a bucket's name (3 to 63 of a-z, 0-9, - and .)",
                .doc = "It has to be there."},
        {.name = "prefix",
                .type = KEY_FIXED,
                .offset = AT(prefix),
                .size = BUCKET_PREFIX_MAX,
                .form = form_bucket_prefix,
                .want = "a/b, of letters, digits and - . _",
                .dflt = "none",
                .doc = "In front of every key: PREFIX/SESSION/RUN/PATH."},
        NAMED_SECRET("access_key", access_key, true, "Name of the secret that is the access key."),
        NAMED_SECRET("secret_key", secret_key, true,
                "Name of the secret that is the secret access key."),
        NAMED_SECRET("session_token", session_token, false,
                "Name of the secret that goes with temporary keys; read again at each reload."),
        {.name = "path_style",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = AT(path_style),
                .dflt = "false",
                .doc = "The bucket is named in the path and not in front of the host."},
        {.name = "sse",
                .type = KEY_ENUM,
                .offset = AT(sse),
                .names = bucket_sse_names,
                .dflt = "none",
                .doc = "What encryption is asked for.  none: the bucket's own."},
        {.name = "presign_ttl",
                .type = KEY_TIME,
                .offset = AT(link_ms),
                .min = 1000,
                .max = BUCKET_LINK_MOST_MS,
                .dflt = "1h",
                .doc = "How long a link holds that is handed out."},
        {.name = "keep_local",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = AT(keep_local),
                .dflt = "true",
                .doc = "false: what is uploaded is not kept here, too, and a download is "
                       "redirected."},
        {.name = "part_size",
                .type = KEY_BYTES,
                .offset = AT(part_bytes),
                .min = BUCKET_PART_LEAST,
                .max = BUCKET_PART_MOST,
                .dflt = "16M",
                .doc = "What has more bytes is sent in parts of so many."},
        {.name = "addresses",
                .type = KEY_OTHER,
                .set = set_addresses,
                .want = "list of addresses or networks",
                .dflt = "public ones alone",
                .doc = "Addresses that are not public (private, loopback) and that the endpoint "
                       "may be at."},
        {.name = "timeout",
                .type = KEY_TIME,
                .offset = AT(timeout_ms),
                .min = 100,
                .max = 3600000,
                .dflt = "60s",
                .doc = "How long a request may stand still."},
        {.name = "retry", .type = KEY_MAP, .sub = &retry_keys},
};
static const struct key_table s3_keys = KEY_TABLE(s3_rows);

static const char *const stores[] = {"local", "s3", NULL};

static const struct key artifacts_rows[] = {
        {.name = "store",
                .type = KEY_ENUM,
                .offset = AT(on),
                .names = stores,
                .dflt = "local",
                .doc = "Where artifacts go: here alone, or to an S3 bucket, too."},
        {.name = "s3", .type = KEY_MAP, .sub = &s3_keys},
};
const struct key_table artifacts_keys = KEY_TABLE(artifacts_rows);

int bucket_fits(const struct keys_ctx *k, const struct yaml_node *map, const struct bucket *b)
{
	if (!map)
		return 0;
	const struct yaml_node *s3 = yaml_get(map, "s3");
	if (b->on && !s3)
		return keys_error(k, map->line, "'artifacts': `store: s3` needs the map `s3`");
	const char *why = s3 ? bucket_refusal(b) : NULL;
	if (why)
		return keys_error(
		        k, yaml_get(s3, "endpoint")->line, "endpoint %s %s", b->endpoint, why);
	if (b->first_ms > b->most_ms)
		return keys_error(k, yaml_get(s3, "retry")->line,
		        "'retry': `first` is longer than `most`, the longest pause");
	return 0;
}
