/* Answers of S3: those that are, and all that are cut, foreign or forged. */
#include "egress/s3_answer.h"
#include "tests/t.h"

static struct s3_answer a;

static bool parse(const char *text)
{
	return s3_answer_parse(text, strlen(text), &a);
}

static const char begun[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<InitiateMultipartUploadResult "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>b</Bucket><Key>a/b</Key>"
        "<UploadId>VXBs&amp;b2Fk.ID_1-2&#x3d;</UploadId></InitiateMultipartUploadResult>\n";
static const char error[] =
        "<Error><Code>SlowDown</Code><Message>Please &lt;reduce&gt;\nyour rate</Message>"
        "<Resource/><Details><Code>Inner</Code></Details></Error>";

static void whole(void)
{
	must(parse(begun), "a multipart upload begins");
	is_str(a.root, "InitiateMultipartUploadResult", "is that");
	is_str(a.upload_id, "VXBs&b2Fk.ID_1-2=", "its id, entities resolved");
	must(parse(error), "an error");
	is_str(a.root, "Error", "is one");
	is_str(a.code, "SlowDown", "its code, and not that of what is in it");
	is_str(a.message, "Please <reduce> your rate", "its message, on one line");
}

static void broken(void)
{
	static const char *const all[] = {"", " ", "x", "<", "<a", "<a>", "</a>", "<a></b>",
	        "<a><b></a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<?xml", "<!DOCTYPE a><a/>",
	        "<a><!-- x --></a>", "<a><![CDATA[x]]></a>", "<a b", "<>", "< a/>", "<a>&</a",
	        "<a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a></a>"};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ok(!parse(all[i]) && !a.root[0], "none: %s", all[i]);
	size_t cut = 0;
	for (size_t n = 0; n + 1 < strlen(begun); n++) /* the last is its newline */
		cut += s3_answer_parse(begun, n, &a);
	ok(cut == 0, "cut anywhere it is none");
	ok(!s3_answer_parse("<a>\0</a>", 8, &a), "nor with a NUL");
	static char large[4096];
	(void)snprintf(large, sizeof(large), "<a><UploadId>%*s</UploadId></a>", S3_UPLOAD_ID, "x");
	ok(!parse(large), "nor with an id that is too long");
	(void)snprintf(large, sizeof(large), "<Error><Message>%*s</Message></Error>", 2000, "x");
	ok(parse(large) && strlen(a.message) == S3_MESSAGE - 1, "a long message is cut");
	ok(parse("<a><UploadId>&#0;&#99999999999999999999;&#x;&</UploadId></a>") &&
	                strcmp(a.upload_id, "???&") == 0,
	        "entities that are none");
}

int main(void)
{
	whole();
	broken();
	ok(s3_answer_again(503, "SlowDown") && s3_answer_again(400, "RequestTimeout") &&
	                s3_answer_again(429, "") && s3_answer_again(403, "AccessDenied") &&
	                s3_answer_again(200, "InternalError"),
	        "worth another try");
	ok(!s3_answer_again(400, "InvalidArgument") && !s3_answer_again(413, "EntityTooLarge") &&
	                !s3_answer_again(400, ""),
	        "not worth one");
	return done();
}
