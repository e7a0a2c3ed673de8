/* Any bytes as what a server of S3 says: of a document that is cut nothing is believed, and texts
 * that go into logs and requests are texts. */
#include "egress/s3_answer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plain(const char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		abort();
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct s3_answer a, b;
	/* Of its own length, so that a read behind it is seen. */
	char *copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	bool whole = s3_answer_parse(copy, size, &a);
	plain(a.root, sizeof(a.root));
	plain(a.code, sizeof(a.code));
	plain(a.message, sizeof(a.message));
	plain(a.upload_id, sizeof(a.upload_id));
	if (whole != (a.root[0] != '\0'))
		abort();
	/* Without what closes its root it is none. */
	while (size && copy[size - 1] != '<')
		size--;
	if (whole && s3_answer_parse(copy, size, &b))
		abort();
	free(copy);
	return 0;
}
