#include "egress/http_answer.h"

#include "base/json.h"
#include "base/mem.h"

const char *http_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} all[] = {{200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"},
	        {301, "Moved Permanently"}, {302, "Found"}, {304, "Not Modified"},
	        {307, "Temporary Redirect"}, {400, "Bad Request"}, {401, "Unauthorized"},
	        {403, "Forbidden"}, {404, "Not Found"}, {408, "Request Timeout"}, {409, "Conflict"},
	        {413, "Content Too Large"}, {417, "Expectation Failed"},
	        {422, "Unprocessable Content"}, {429, "Too Many Requests"},
	        {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
	        {501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
	        {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].status == status)
			return all[i].phrase;
	return status < 300 ? "Success" : status < 400 ? "Redirect" : "Error";
}

void http_answer(struct buf *out, int status, const char *reason)
{
	auto_buf struct buf body = BUF_INIT(4096);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "error");
	jw_open(&w, "error", '{');
	jw_str(&w, "type", "agentbox_egress");
	jw_str(&w, "message", reason);
	jw_close(&w, '}');
	jw_close(&w, '}');
	/* x-should-retry is how SDKs are told that asking again is of no use. */
	bool retry = status == 502 || status == 504;
	buf_printf(out,
	        "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
	        "%sConnection: close\r\n\r\n%s",
	        status, http_phrase(status), body.len, retry ? "" : "x-should-retry: false\r\n",
	        body.p);
}
