/* Signatures of webhooks: the published vector, and keys that are none. */
#include "egress/sign.h"
#include "tests/t.h"

static struct err e;

static int sign(const char *secret, const char *text, char *to)
{
	return sign_text(secret, strlen(secret), text, strlen(text), to, &e);
}

int main(void)
{
	char got[SIGN_TEXT];
	must(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	             "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}", got) == 0,
	        "the vector of Standard Webhooks: %s", e.text);
	is_str(got, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "is that");
	must(sign("0123456789abcdef", "id.1.x", got) == 0, "a key as it is");
	is_str(got, "v1,GGa1cRr4SxNQataHFRZ9asJhRhPA2VIArqR36NV8ulA=", "signs");
	ok(sign("0123456789abcde", "x", got) == -EINVAL, "a short key: %s", e.text);
	ok(sign("", "x", got) == -EINVAL, "no key: %s", e.text);
	ok(sign("whsec_MfKQ9r8GKYqrTw==", "x", got) == -EINVAL, "a short key, encoded: %s", e.text);
	ok(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa*w", "x", got) == -EINVAL, "not base64: %s",
	        e.text);
	ok(sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "x", got) == -EINVAL, "cut: %s", e.text);
	ok(sign("whsec_", "x", got) == -EINVAL, "nothing behind it: %s", e.text);
	ok(sign("whsec_====", "x", got) == -EINVAL, "padding alone: %s", e.text);
	static char large[5000];
	memset(large, 'a', sizeof(large) - 1);
	ok(sign(large, "x", got) == -EINVAL, "too long: %s", e.text);
	return done();
}
