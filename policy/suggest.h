/*
 * suggest.h - `agentbox-policyc suggest POLICY OF`: a policy that would have
 * allowed what was refused.
 *
 * Reads refusals from stdin, one a line, fields by tabs:
 *
 *	TIMES PROTOCOL PORT HOST REMEDY BY HINT
 *
 * REMEDY is "add" where an entry of egress.allow helps; BY says what was going
 * on.  Hosts of a known group become the group; what a policy cannot or should
 * not allow becomes a remark.  OF names where they are from.
 */
#ifndef POLICY_SUGGEST_H
#define POLICY_SUGGEST_H

int suggest_main(int argc, char **argv);

#endif
