/*
 * harness_mcp.h - `tools.mcp` of a harness: model context servers by name.
 */
#ifndef POLICY_HARNESS_MCP_H
#define POLICY_HARNESS_MCP_H

#include "policy/keys.h"

extern const struct key_table harness_mcp_keys; /* of one server */
key_set_fn harness_set_mcp;                     /* into struct harness_build */

#endif
