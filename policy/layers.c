#include "policy/layers.h"

#include <string.h>

static const struct {
	const char *name;
	enum layer_kind kind;
	const char *lack;
} layers[LAYER_COUNT] = {
#define LAYER_ROW(sym, name, kind, lack) [LAYER_##sym] = {name, LAYER_KIND_##kind, lack},
        LAYERS(LAYER_ROW)
#undef LAYER_ROW
};

_Static_assert(LAYER_COUNT <= 32, "layers are bits of a uint32_t");

const char *layer_name(enum layer l)
{
	return layers[l].name;
}

const char *layer_lack(enum layer l)
{
	return layers[l].lack;
}

enum layer_kind layer_kind(enum layer l)
{
	return layers[l].kind;
}

int layer_by_name(const char *name)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (strcmp(layers[i].name, name) == 0)
			return i;
	return -1;
}

uint32_t layers_of_kind(enum layer_kind kind)
{
	uint32_t bits = 0;
	for (int i = 0; i < LAYER_COUNT; i++)
		if (layers[i].kind == kind)
			bits |= LAYER_BIT(i);
	return bits;
}
