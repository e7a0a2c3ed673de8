#include "supervisor/media.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

const char *media_type(const char *path)
{
	static const struct {
		const char *ending, *type;
	} all[] = {
	        {"bin", "application/octet-stream"},
	        {"bz2", "application/x-bzip2"},
	        {"css", "text/css; charset=utf-8"},
	        {"csv", "text/csv; charset=utf-8"},
	        {"diff", "text/x-diff; charset=utf-8"},
	        {"docx", "application/"
	                 "vnd.openxmlformats-officedocument.wordprocessingml.document"},
	        {"gif", "image/gif"},
	        {"gz", "application/gzip"},
	        {"htm", "text/html; charset=utf-8"},
	        {"html", "text/html; charset=utf-8"},
	        {"jpeg", "image/jpeg"},
	        {"jpg", "image/jpeg"},
	        {"js", "text/javascript; charset=utf-8"},
	        {"json", "application/json"},
	        {"jsonl", "application/x-ndjson"},
	        {"log", "text/plain; charset=utf-8"},
	        {"md", "text/markdown; charset=utf-8"},
	        {"mp3", "audio/mpeg"},
	        {"mp4", "video/mp4"},
	        {"odp", "application/vnd.oasis.opendocument.presentation"},
	        {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
	        {"odt", "application/vnd.oasis.opendocument.text"},
	        {"patch", "text/x-diff; charset=utf-8"},
	        {"pdf", "application/pdf"},
	        {"png", "image/png"},
	        {"pptx", "application/"
	                 "vnd.openxmlformats-officedocument.presentationml.presentation"},
	        {"svg", "image/svg+xml"},
	        {"tar", "application/x-tar"},
	        {"tgz", "application/gzip"},
	        {"txt", "text/plain; charset=utf-8"},
	        {"wasm", "application/wasm"},
	        {"wav", "audio/wav"},
	        {"webm", "video/webm"},
	        {"webp", "image/webp"},
	        {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	        {"xml", "application/xml"},
	        {"xz", "application/x-xz"},
	        {"yaml", "application/yaml"},
	        {"yml", "application/yaml"},
	        {"zip", "application/zip"},
	        {"zst", "application/zstd"},
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < ARRAY_LEN(all); i++)
		if (strcasecmp(dot + 1, all[i].ending) == 0)
			return all[i].type;
	return "application/octet-stream";
}
