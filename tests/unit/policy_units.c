#include "policy/units.h"
#include "base/mem.h"
#include "tests/t.h"

typedef int parse_fn(const char *text, uint64_t *ret);

static void gives(parse_fn *fn, const char *text, uint64_t want)
{
	uint64_t got = 7;
	int r = fn(text, &got);
	ok(r == 0 && got == want, "'%s' is %llu", text, (unsigned long long)want);
}

static void fails(parse_fn *fn, const char *text, int code)
{
	uint64_t got = 7;
	int r = fn(text, &got);
	ok(r == code && got == 7, "'%s' fails with %d", text, code);
}

int main(void)
{
	gives(units_bytes, "0", 0);
	gives(units_bytes, "512", 512);
	gives(units_bytes, "1k", 1024);
	gives(units_bytes, "2G", UINT64_C(2) << 30);
	gives(units_bytes, "1.5G", UINT64_C(3) << 29);
	gives(units_bytes, "2TiB", UINT64_C(2) << 40);
	gives(units_bytes, "18446744073709551615", UINT64_MAX);
	fails(units_bytes, "18446744073709551616", -ERANGE);
	fails(units_bytes, "16777216T", -ERANGE);
	static const char *const wrong[] = {"", " 1", "1 G", "-1", "+1", "0x10", "1e3", "1.", ".5",
	        "1.5", "2GB", "2Gi", "G", "1,5G", "1.1234567891G", "inf", "nan"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		fails(units_bytes, wrong[i], -EINVAL);
	gives(units_count, "200k", 200000);
	gives(units_count, "1.5k", 1500);
	gives(units_count, "2M", 2000000);
	fails(units_count, "2G", -EINVAL);
	fails(units_count, "1.0005k", -EINVAL);
	gives(units_milli, "2", 2000);
	gives(units_milli, "1.5", 1500);
	gives(units_milli, "0.001", 1);
	fails(units_milli, "0.0001", -EINVAL);
	gives(units_time_ms, "500ms", 500);
	gives(units_time_ms, "30s", 30000);
	gives(units_time_ms, "1.5s", 1500);
	gives(units_time_ms, "10m", 600000);
	gives(units_time_ms, "1h", 3600000);
	gives(units_time_ms, "1d", 86400000);
	fails(units_time_ms, "30", -EINVAL);
	fails(units_time_ms, "1.5ms", -EINVAL);
	gives(units_plain, "600000", 600000);
	fails(units_plain, "1.5", -EINVAL);
	double d = 0;
	ok(units_real("2.50", &d) == 0 && d > 2.49 && d < 2.51, "2.50");
	ok(units_real("-1", &d) == -EINVAL && units_real("1e5", &d) == -EINVAL, "no signs, no e");

	char out[UNITS_TEXT_MAX];
	units_print_bytes(UINT64_C(4) << 30, out);
	is_str(out, "4G", "4G");
	units_print_bytes(1536, out);
	is_str(out, "1536", "1536");
	units_print_bytes(0, out);
	is_str(out, "0", "0");
	units_print_milli(1500, out);
	is_str(out, "1.5", "1.5");
	units_print_milli(2000, out);
	is_str(out, "2", "2");
	units_print_time_ms(3600000, out);
	is_str(out, "1h", "1h");
	units_print_time_ms(1500, out);
	is_str(out, "1500ms", "1500ms");
	return done();
}
