#!/usr/bin/env node
// mock-llm.mjs - a scripted LLM endpoint for testing coding-agent CLIs without a key or a network.
//
// One file, no dependencies, Node >= 18.  It speaks four wire protocols and answers each request
// with the next turn of a scenario file, whatever protocol the client happens to use:
//
//   Anthropic Messages        POST [/v1]/messages, /messages/count_tokens     JSON and SSE
//   OpenAI Responses          POST [/v1]/responses                            JSON and SSE
//   OpenAI Chat Completions   POST [/v1]/chat/completions                     JSON and SSE
//   Gemini generateContent    POST [/v1beta]/models/M:generateContent,
//                                  :streamGenerateContent, :countTokens       JSON and SSE
//   model lists               GET  [/v1]/models, /v1beta/models
//
// Everything else (telemetry, update checks, feature flags) gets `200 {}` and a log line.
//
// Usage:
//   node mock-llm.mjs --scenario FILE [--scenarios DIR] [--listen 127.0.0.1:0]...
//                     [--listen unix:/path]... [--port-file FILE] [--log FILE] [--bodies DIR] [--cwd DIR] [--echo]
//
// --echo: each answer has the headers of its request as x-echo.
//
// URL prefixes, put in front of the API path (so into the client's base URL):
//   /s/SESSION/...            its own turn counter, on the default scenario
//   /x/SCENARIO/SESSION/...   its own turn counter, on DIR/SCENARIO.json
//
// Control:  GET /__mock/health   GET /__mock/log   POST /__mock/reset   POST /__mock/scenario   POST /__mock/open/GATE
//
// Scenario file:
//   { "turns": [TURN...],            answers to main requests, in order
//     "final": TURN,                 answer once the turns are used up (default: a short text)
//     "background": TURN,            answer to title/summary/classifier requests
//     "backgroundPattern": "regex",  more prompts to treat as background
//     "models": ["id"...] }          what the model lists say
//
//   TURN = { "thinking": "...", "text": "...", "tools": [{ "name": "$shell", "args": {...} }],
//            "usage": { "input": 100, "output": 20, "cacheRead": 0, "cacheWrite": 0, "reasoning": 0 },
//              (input counts the cached tokens too; each protocol reports them its own way)
//            "stop": "max_tokens",             overrides the natural stop reason
//            "delayMs": 0, "chunkDelayMs": 0, "chunkSize": 12,
//            "error": { "status": 429, "message": "...", "type": "...", "retryAfter": 1 },
//            "streamError": { "type": "overloaded_error", "message": "..." },   after the text
//            "disconnect": true,               drop the socket after the text
//            "hang": true,                     never end (cancel tests); with text, after the text
//            "gate": "a",                      waits until that gate is opened
//            "repeat": 3,                      use this turn N times; -1 = for ever
//            "expect": ["substring"...] }      each must occur in the request body, else 400
//
//   Tool names starting with $ are resolved against the tools the client offers:
//   $shell {command}, $write {path, content}, $read {path}, $edit {path, old, new}, $mcp {…}.
//   Any other name is sent as it stands.  {{tool_result}} in text is the last tool result seen,
//   {{headers}} are the request's headers, {{cwd}} in args is the absolute workspace path guessed from the prompt (or the --cwd option).

import http from 'node:http';
import fs from 'node:fs';
import path from 'node:path';
import crypto from 'node:crypto';

// ---------------------------------------------------------------------------------- options

function parseArgs(argv) {
  const o = { listen: [], scenario: null, scenarios: null, log: null, bodies: null, portFile: null, cwd: null, echo: false };
  for (let i = 0; i < argv.length; i++) {
    const a = argv[i];
    const val = () => { if (++i >= argv.length) fail(`${a} needs a value`); return argv[i]; };
    if (a === '--scenario') o.scenario = val();
    else if (a === '--scenarios') o.scenarios = val();
    else if (a === '--listen') o.listen.push(val());
    else if (a === '--port') o.listen.push(`127.0.0.1:${val()}`);
    else if (a === '--port-file') o.portFile = val();
    else if (a === '--log') o.log = val();
    else if (a === '--bodies') o.bodies = val();
    else if (a === '--cwd') o.cwd = val();
    else if (a === '--echo') o.echo = true;
    else if (a === '-h' || a === '--help') { usage(); process.exit(0); }
    else fail(`unknown option ${a}`);
  }
  if (!o.listen.length) o.listen.push('127.0.0.1:0');
  return o;
}
function usage() {
  const src = fs.readFileSync(new URL(import.meta.url), 'utf8').split('\n');
  for (const l of src.slice(1)) { if (!l.startsWith('//')) break; console.log(l.replace(/^\/\/ ?/, '')); }
}
function fail(msg) { console.error(`mock-llm: ${msg}`); process.exit(2); }

const opt = parseArgs(process.argv.slice(2));
const DEFAULT_SCENARIO = { turns: [{ text: 'Hello from the mock model.' }] };
const BACKGROUND_TEXT = 'Mock title';
const BACKGROUND = new RegExp([
  'title generator', '(generate|write|create|produce|give)[^.]{0,60} title', 'conversation title', 'session title',
  'is_?new_?topic', 'summari[sz]e this (coding )?conversation', '^quota$', 'next_speaker', 'next speaker',
  'prompt suggestion', 'suggest(s|ed)? (a|the) (short|next)', 'recap', 'task complexity', 'complexity_score', 'command prefix',
].join('|'), 'im');

function loadScenario(file) { return normalise(JSON.parse(fs.readFileSync(file, 'utf8')), file); }
function normalise(s, where) {
  if (!s || !Array.isArray(s.turns)) fail(`${where}: a scenario needs a "turns" array`);
  return s;
}
if (opt.bodies) fs.mkdirSync(opt.bodies, { recursive: true });
let defaultScenario = opt.scenario ? loadScenario(opt.scenario) : DEFAULT_SCENARIO;

// ------------------------------------------------------------------------------------ state

const sessions = new Map();      // key -> { scenario, turn, used, requests }
const log = [];
const gates = new Map();         // name -> { opened, open() }
function gate(name) {
  if (!gates.has(name)) { let open; const opened = new Promise((ok) => { open = ok; }); gates.set(name, { opened, open }); }
  return gates.get(name);
}
let seq = 0;

function session(name, scenarioName) {
  const key = `${scenarioName || ''}/${name}`;
  let s = sessions.get(key);
  if (!s) {
    let scenario = null;
    if (scenarioName) {
      if (!opt.scenarios || !/^[\w.-]+$/.test(scenarioName)) return null;
      try { scenario = loadScenario(path.join(opt.scenarios, `${scenarioName}.json`)); } catch { return null; }
    }
    s = { key, own: scenario, turn: 0, used: 0, requests: 0, toolResult: '' };
    sessions.set(key, s);
  }
  return s;
}
function nextTurn(s) {
  const sc = s.own || defaultScenario;
  if (s.turn >= sc.turns.length) return { index: -1, turn: sc.final || { text: 'No more scripted turns.' } };
  const turn = sc.turns[s.turn];
  const index = s.turn;
  s.used++;
  const repeat = turn.repeat ?? 1;
  if (repeat >= 0 && s.used >= repeat) { s.turn++; s.used = 0; }
  return { index, turn };
}
function record(entry) {
  log.push(entry);
  if (log.length > 5000) log.shift();
  if (opt.log) fs.appendFileSync(opt.log, JSON.stringify(entry) + '\n');
}

// ------------------------------------------------------------------------- reading requests

const id = (p) => p + crypto.randomBytes(12).toString('hex');
const now = () => Math.floor(Date.now() / 1000);
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const asText = (c) => typeof c === 'string' ? c
  : Array.isArray(c) ? c.map((p) => typeof p === 'string' ? p : p.text ?? asText(p.content ?? p.parts ?? '')).join('\n')
  : c && typeof c === 'object' ? (c.text ?? JSON.stringify(c)) : '';

// What each protocol's request says, in one shape:
// { model, stream, tools: [{name, schema, custom}], system, last, toolResult, schema }
const readers = {
  anthropic(b) {
    const msgs = b.messages || [];
    const last = msgs[msgs.length - 1] || {};
    const results = Array.isArray(last.content) ? last.content.filter((p) => p.type === 'tool_result') : [];
    return {
      model: b.model, stream: !!b.stream, system: asText(b.system), last: asText(last.content), messages: msgs.length,
      tools: (b.tools || []).map((t) => ({ name: t.name, schema: t.input_schema })),
      toolResult: results.length ? asText(results[results.length - 1].content) : null,
      schema: b.output_config?.format?.schema || b.output_format?.schema || null,
    };
  },
  responses(b) {
    const items = typeof b.input === 'string' ? [{ role: 'user', content: b.input }] : b.input || [];
    const last = items[items.length - 1] || {};
    const out = [...items].reverse().find((i) => /_call_output$/.test(i.type || ''));
    const flat = [];
    const add = (t, namespace) => {
      if (t.type === 'function') flat.push({ name: t.name, namespace, schema: t.parameters });
      else if (t.type === 'custom') flat.push({ name: t.name, namespace, custom: true });
      else if (t.type === 'local_shell') flat.push({ name: 'local_shell', localShell: true });
      else if (t.type === 'namespace') for (const n of t.tools || []) add(n, t.name);
    };
    for (const t of b.tools || []) add(t);
    for (const i of items) if (i.type === 'additional_tools') for (const t of i.tools || []) add(t);   // codex, newer models
    return {
      model: b.model, stream: !!b.stream, messages: items.length,
      system: (b.instructions || '') + '\n' + items.filter((i) => i.role === 'developer' || i.role === 'system').map((i) => asText(i.content)).join('\n'),
      last: asText(last.content ?? last.output), tools: flat,
      toolResult: out ? asText(out.output) : null,
      schema: b.text?.format?.schema || null,
    };
  },
  chat(b) {
    const msgs = b.messages || [];
    const last = msgs[msgs.length - 1] || {};
    return {
      model: b.model, stream: !!b.stream, messages: msgs.length,
      system: msgs.filter((m) => m.role === 'system' || m.role === 'developer').map((m) => asText(m.content)).join('\n'),
      last: asText(last.content),
      tools: (b.tools || []).filter((t) => t.function).map((t) => ({ name: t.function.name, schema: t.function.parameters })),
      toolResult: last.role === 'tool' ? asText(last.content) : null,
      schema: b.response_format?.json_schema?.schema || null,
      includeUsage: b.stream_options?.include_usage ?? false,
    };
  },
  gemini(b, url) {
    const c = b.contents || [];
    const last = c[c.length - 1] || {};
    const fr = (last.parts || []).filter((p) => p.functionResponse);
    const decls = (b.tools || []).flatMap((t) => t.functionDeclarations || []);
    return {
      model: decodeURIComponent((/models\/([^:/?]+)/.exec(url) || [])[1] || ''), stream: /:streamGenerateContent/.test(url), messages: c.length,
      system: asText(b.systemInstruction?.parts), last: asText(last.parts),
      tools: decls.map((d) => ({ name: d.name, schema: d.parametersJsonSchema || d.parameters })),
      toolResult: fr.length ? asText(fr[fr.length - 1].functionResponse.response?.output ?? fr[fr.length - 1].functionResponse.response) : null,
      schema: b.generationConfig?.responseJsonSchema || b.generationConfig?.responseSchema || null,
    };
  },
};

function route(method, url) {
  const p = url.split('?')[0].replace(/\/+$/, '');
  if (method === 'GET' && /\/models(\/[^/]+)?$/.test(p)) return 'models';
  if (method !== 'POST') return 'other';
  if (/\/messages\/count_tokens$/.test(p)) return 'count_tokens';
  if (/\/messages$/.test(p)) return 'anthropic';
  if (/\/responses$/.test(p)) return 'responses';
  if (/\/chat\/completions$/.test(p)) return 'chat';
  if (/:(streamGenerateContent|generateContent)$/.test(p)) return 'gemini';
  if (/:countTokens$/.test(p)) return 'gemini_count';
  return 'other';
}
function isBackground(r, sc) {
  if (/memory (extraction|consolidation) (sub)?agent/i.test(r.system.slice(0, 400))) return true;
  if (r.tools.length) return false;
  if (r.schema) return true;
  if (r.messages <= 1 && /^(hi|hello|ping|test|quota)[.!]?$/i.test(r.last.trim()) && r.maxTokens && r.maxTokens <= 64) return true;   // access probes
  const hay = `${r.system}\n${r.last}`;
  return BACKGROUND.test(hay) || (sc.backgroundPattern ? new RegExp(sc.backgroundPattern, 'im').test(hay) : false);
}

// ------------------------------------------------------------------- resolving neutral tools

const ALIASES = {
  $shell: ['Bash', 'bash', 'run_shell_command', 'shell_command', 'exec_command', 'shell', 'local_shell', 'run_command', 'run_commands', 'execute'],
  $write: ['Write', 'write', 'write_file', 'create', 'create_file', 'apply_patch'],
  $read: ['Read', 'read', 'read_file', 'view', 'exec_command', 'shell_command', 'shell'],
  $edit: ['Edit', 'edit', 'replace', 'edit_file', 'str_replace', 'apply_patch'],
};
const PARAMS = {
  command: ['command', 'cmd', 'script', 'commands'], path: ['file_path', 'filePath', 'path', 'absolute_path', 'filename'],
  content: ['content', 'file_text', 'contents', 'text'], old: ['old_string', 'oldString', 'old_str', 'oldText'],
  new: ['new_string', 'newString', 'new_str', 'newText'],
};

function resolveTool(call, r) {
  const args = JSON.parse(JSON.stringify(call.args || {}));
  const cwd = opt.cwd || guessCwd(r);
  const subst = (v) => typeof v === 'string' ? v.replaceAll('{{cwd}}', cwd)
    : Array.isArray(v) ? v.map(subst) : v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, subst(x)])) : v;
  const a = subst(args);
  if (!call.name.startsWith('$')) {
    const t = r.tools.find((x) => x.name === call.name);
    return { name: call.name, args: a, custom: !!t?.custom, namespace: t?.namespace };
  }
  if (call.name === '$mcp') {                      // the tool offered whose name ends in args.tool, else mcp__SERVER__TOOL
    const t = r.tools.find((x) => x.name.endsWith(a.tool)) || { name: a.server ? `mcp__${a.server}__${a.tool}` : a.tool };
    return { name: t.name, namespace: t.namespace, args: a.args || {} };
  }
  const names = ALIASES[call.name] || [];
  const t = names.map((n) => r.tools.find((x) => x.name === n)).find(Boolean);
  if (!t) return shellFallback(call.name, a, r);
  if (t.localShell) return { name: t.name, localShell: true, args: { command: ['bash', '-lc', a.command] } };
  if (t.name === 'apply_patch') {
    const body = call.name === '$edit'
      ? `*** Begin Patch\n*** Update File: ${a.path}\n@@\n-${a.old}\n+${a.new}\n*** End Patch\n`
      : `*** Begin Patch\n*** Add File: ${a.path}\n${String(a.content).replace(/\n$/, '').split('\n').map((l) => '+' + l).join('\n')}\n*** End Patch\n`;
    return t.custom ? { name: t.name, custom: true, input: body } : { name: t.name, args: { input: body } };
  }
  if (call.name !== '$shell' && /^(exec_command|shell_command|shell)$/.test(t.name)) return shellFallback(call.name, a, r);
  return { name: t.name, namespace: t.namespace, args: fitArgs(t, a) };
}
function shellFallback(kind, a, r) {               // no such tool on offer: do it with the shell
  const q = (s) => `'${String(s).replaceAll("'", `'\\''`)}'`;
  const cmd = kind === '$write' ? `mkdir -p "$(dirname ${q(a.path)})" && printf %s ${q(a.content)} > ${q(a.path)}`
    : kind === '$read' ? `cat ${q(a.path)}` : a.command;
  const t = ALIASES.$shell.map((n) => r.tools.find((x) => x.name === n)).find(Boolean);
  if (t) return { name: t.name, namespace: t.namespace, args: fitArgs(t, { command: cmd }) };
  const js = r.tools.find((x) => x.custom && x.name === 'exec');                 // codex "code mode"
  if (js) return { name: 'exec', custom: true, namespace: js.namespace, input: `const r = await tools.exec_command({cmd: ${JSON.stringify(cmd)}});\ntext(r.output ?? JSON.stringify(r));\n` };
  return { name: kind.slice(1), args: a };
}
function fitArgs(t, a) {
  const props = t.schema?.properties || {};
  const out = {};
  for (const [k, v] of Object.entries(a)) {
    const name = (PARAMS[k] || []).find((n) => n in props) || k;
    const type = props[name]?.type;
    out[name] = (type === 'array' || type === 'ARRAY') && k === 'command' ? (name === 'commands' ? [v] : ['bash', '-lc', v]) : v;
  }
  if (props.edits && 'old' in a) { delete out.old; delete out.new; out.edits = [{ oldText: a.old, newText: a.new }]; }
  for (const k of t.schema?.required || []) if (!(k in out)) out[k] = filler(props[k], k);
  return out;
}
function filler(schema, name = '') {
  if (!schema) return '';
  if (schema.enum) return schema.enum.includes('user') ? 'user' : schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf || schema.oneOf) return filler((schema.anyOf || schema.oneOf)[0], name);
  switch (String(Array.isArray(schema.type) ? schema.type[0] : schema.type).toLowerCase()) {
    case 'object': return Object.fromEntries((schema.required || Object.keys(schema.properties || {})).map((k) => [k, filler(schema.properties?.[k], k)]));
    case 'array': return [];
    case 'number': case 'integer': return schema.minimum ?? 1;
    case 'boolean': return false;
    default: return /title|name/i.test(name) ? BACKGROUND_TEXT : 'mock';
  }
}
function guessCwd(r) {
  const hay = `${r.system}\n${r.all}`;
  const m = /(?:working directory|cwd|workspace)[^\n/<]{0,60}?[:>`"\s](\/[^\s`"<>,\\]+)/i.exec(hay) || /<cwd>([^<]+)<\/cwd>/.exec(hay);
  return (m ? m[1] : process.cwd()).replace(/[.)]+$/, '');
}

// -------------------------------------------------------------------------- writing answers

class Gone extends Error {}
class Out {                                        // one response; SSE or a JSON body
  constructor(res, turn) { this.res = res; this.turn = turn; this.closed = false; res.on('close', () => { this.closed = true; }); }
  head(extra) { this.res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no', 'request-id': id('req_'), ...extra }); }
  async sse(event, data) {
    if (this.closed) throw new Gone();
    if (this.turn.chunkDelayMs) await sleep(this.turn.chunkDelayMs);
    if (this.closed) throw new Gone();
    this.res.write((event ? `event: ${event}\n` : '') + `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  }
  json(status, body, headers) { this.res.writeHead(status, { 'content-type': 'application/json', ...headers }); this.res.end(JSON.stringify(body)); }
  async cut(emitError) {                           // after the text: does this turn break off here?
    const t = this.turn;
    if (t.hang) { while (!this.closed) await sleep(50); throw new Gone(); }
    if (t.disconnect) { await sleep(20); this.res.socket?.destroy(); throw new Gone(); }
    if (t.streamError) { await emitError({ type: 'overloaded_error', message: 'Overloaded', ...t.streamError }); this.res.end(); throw new Gone(); }
  }
}
const pieces = (s, n) => { const out = []; for (let i = 0; i < s.length; i += n) out.push(s.slice(i, i + n)); return out; };
const usageOf = (t) => ({ input: 100, output: 20, cacheRead: 0, cacheWrite: 0, reasoning: 0, ...t.usage });

const writers = {
  async anthropic(o, r, t, tools) {
    const u = usageOf(t);
    const usage = { input_tokens: Math.max(0, u.input - u.cacheRead - u.cacheWrite), cache_creation_input_tokens: u.cacheWrite, cache_read_input_tokens: u.cacheRead, output_tokens: u.output, service_tier: 'standard' };
    const blocks = [];
    if (t.thinking) blocks.push({ type: 'thinking', thinking: t.thinking, signature: 'bW9jaw==' });
    if (t.text) blocks.push({ type: 'text', text: t.text });
    for (const c of tools) blocks.push({ type: 'tool_use', id: id('toolu_'), name: c.name, input: c.args ?? { input: c.input } });
    const stop = t.stop || (tools.length ? 'tool_use' : 'end_turn');
    const msg = { id: id('msg_'), type: 'message', role: 'assistant', model: r.model, content: blocks, stop_reason: stop, stop_sequence: null, usage };
    if (!r.stream) { await o.cut(async (e) => o.json(529, { type: 'error', error: e })); return o.json(200, msg); }
    o.head();
    await o.sse('message_start', { type: 'message_start', message: { ...msg, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } } });
    await o.sse('ping', { type: 'ping' });
    const emitError = (e) => o.sse('error', { type: 'error', error: e });
    let i = 0, cutDone = false;
    for (const b of blocks) {
      if (b.type === 'tool_use' && !cutDone) { await o.cut(emitError); cutDone = true; }
      const start = b.type === 'tool_use' ? { ...b, input: {} } : b.type === 'text' ? { ...b, text: '' } : { ...b, thinking: '', signature: '' };
      await o.sse('content_block_start', { type: 'content_block_start', index: i, content_block: start });
      const delta = (d) => o.sse('content_block_delta', { type: 'content_block_delta', index: i, delta: d });
      const n = t.chunkSize || 12;
      if (b.type === 'text') for (const p of pieces(b.text, n)) await delta({ type: 'text_delta', text: p });
      if (b.type === 'thinking') { for (const p of pieces(b.thinking, n)) await delta({ type: 'thinking_delta', thinking: p }); await delta({ type: 'signature_delta', signature: b.signature }); }
      if (b.type === 'tool_use') for (const p of pieces(JSON.stringify(b.input), n * 2)) await delta({ type: 'input_json_delta', partial_json: p });
      await o.sse('content_block_stop', { type: 'content_block_stop', index: i++ });
    }
    if (!cutDone) await o.cut(emitError);
    await o.sse('message_delta', { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage });
    await o.sse('message_stop', { type: 'message_stop' });
    o.res.end();
  },

  async responses(o, r, t, tools) {
    const u = usageOf(t);
    const usage = { input_tokens: u.input, input_tokens_details: { cached_tokens: u.cacheRead }, output_tokens: u.output, output_tokens_details: { reasoning_tokens: u.reasoning }, total_tokens: u.input + u.output };
    const output = [];
    if (t.thinking) output.push({ type: 'reasoning', id: id('rs_'), summary: [{ type: 'summary_text', text: t.thinking }], encrypted_content: null });
    if (t.text) output.push({ type: 'message', id: id('msg_'), role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: t.text, annotations: [] }] });
    for (const c of tools) {
      const base = { id: id('fc_'), call_id: id('call_'), status: 'completed' };
      if (c.custom) output.push({ type: 'custom_tool_call', ...base, name: c.name, ...(c.namespace ? { namespace: c.namespace } : {}), input: c.input ?? JSON.stringify(c.args) });
      else if (c.localShell) output.push({ type: 'local_shell_call', ...base, action: { type: 'exec', command: c.args.command, timeout_ms: 10000, env: {} } });
      else output.push({ type: 'function_call', ...base, name: c.name, ...(c.namespace ? { namespace: c.namespace } : {}), arguments: JSON.stringify(c.args) });
    }
    const resp = { id: id('resp_'), object: 'response', created_at: now(), model: r.model, status: 'completed', output, usage, error: null, incomplete_details: null, parallel_tool_calls: true, tools: [], tool_choice: 'auto' };
    if (t.stop === 'max_tokens') { resp.status = 'incomplete'; resp.incomplete_details = { reason: 'max_output_tokens' }; }
    if (!r.stream) { await o.cut(async (e) => o.json(503, { error: e })); return o.json(200, resp); }
    o.head();
    let n = 0;
    const ev = (type, data) => o.sse(type, { type, sequence_number: n++, ...data });
    const partial = { ...resp, status: 'in_progress', output: [], usage: null };
    await ev('response.created', { response: partial });
    await ev('response.in_progress', { response: partial });
    const emitError = (e) => ev('response.failed', { response: { ...resp, status: 'failed', output: [], usage: null, error: { code: e.type === 'overloaded_error' ? 'server_is_overloaded' : e.type, message: e.message } } });
    let i = 0, cutDone = false;
    for (const it of output) {
      if (/_call$/.test(it.type) && !cutDone) { await o.cut(emitError); cutDone = true; }
      const at = { output_index: i, item_id: it.id };
      const empty = it.type === 'message' ? { ...it, status: 'in_progress', content: [] } : it.type === 'reasoning' ? { ...it, summary: [] }
        : it.type === 'function_call' ? { ...it, status: 'in_progress', arguments: '' } : it.type === 'custom_tool_call' ? { ...it, status: 'in_progress', input: '' } : it;
      await ev('response.output_item.added', { output_index: i, item: empty });
      const size = t.chunkSize || 12;
      if (it.type === 'reasoning') {
        const s = it.summary[0].text;
        await ev('response.reasoning_summary_part.added', { ...at, summary_index: 0, part: { type: 'summary_text', text: '' } });
        for (const p of pieces(s, size)) await ev('response.reasoning_summary_text.delta', { ...at, summary_index: 0, delta: p });
        await ev('response.reasoning_summary_text.done', { ...at, summary_index: 0, text: s });
        await ev('response.reasoning_summary_part.done', { ...at, summary_index: 0, part: it.summary[0] });
      } else if (it.type === 'message') {
        const s = it.content[0].text;
        await ev('response.content_part.added', { ...at, content_index: 0, part: { type: 'output_text', text: '', annotations: [] } });
        for (const p of pieces(s, size)) await ev('response.output_text.delta', { ...at, content_index: 0, delta: p });
        await ev('response.output_text.done', { ...at, content_index: 0, text: s });
        await ev('response.content_part.done', { ...at, content_index: 0, part: it.content[0] });
      } else if (it.type === 'function_call') {
        for (const p of pieces(it.arguments, size * 2)) await ev('response.function_call_arguments.delta', { ...at, delta: p });
        await ev('response.function_call_arguments.done', { ...at, name: it.name, arguments: it.arguments });
      } else if (it.type === 'custom_tool_call') {
        for (const p of pieces(it.input, size * 2)) await ev('response.custom_tool_call_input.delta', { ...at, delta: p });
        await ev('response.custom_tool_call_input.done', { ...at, input: it.input });
      }
      await ev('response.output_item.done', { output_index: i++, item: it });
    }
    if (!cutDone) await o.cut(emitError);
    await ev(resp.status === 'incomplete' ? 'response.incomplete' : 'response.completed', { response: resp });
    o.res.end();
  },

  async chat(o, r, t, tools) {
    const u = usageOf(t);
    const usage = { prompt_tokens: u.input, completion_tokens: u.output, total_tokens: u.input + u.output, prompt_tokens_details: { cached_tokens: u.cacheRead }, completion_tokens_details: { reasoning_tokens: u.reasoning } };
    const calls = tools.map((c, index) => ({ index, id: id('call_'), type: 'function', function: { name: c.name, arguments: JSON.stringify(c.args ?? { input: c.input }) } }));
    const finish = t.stop === 'max_tokens' ? 'length' : calls.length ? 'tool_calls' : 'stop';
    const base = { id: id('chatcmpl-'), created: now(), model: r.model, system_fingerprint: 'mock' };
    if (!r.stream) {
      await o.cut(async (e) => o.json(503, { error: e }));
      const message = { role: 'assistant', content: t.text ?? null, refusal: null };
      if (t.thinking) message.reasoning_content = t.thinking;
      if (calls.length) message.tool_calls = calls.map(({ index, ...c }) => c);
      return o.json(200, { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish, logprobs: null }], usage });
    }
    o.head();
    const chunk = (delta, finish_reason = null) => o.sse(null, { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason, logprobs: null }] });
    const size = t.chunkSize || 12;
    await chunk({ role: 'assistant', content: '' });
    for (const p of pieces(t.thinking || '', size)) await chunk({ reasoning_content: p });
    for (const p of pieces(t.text || '', size)) await chunk({ content: p });
    await o.cut((e) => o.sse(null, { error: { message: e.message, type: e.type, code: e.type } }));
    for (const c of calls) {
      await chunk({ tool_calls: [{ ...c, function: { name: c.function.name, arguments: '' } }] });
      for (const p of pieces(c.function.arguments, size * 2)) await chunk({ tool_calls: [{ index: c.index, function: { arguments: p } }] });
    }
    await chunk({}, finish);
    await o.sse(null, { ...base, object: 'chat.completion.chunk', choices: [], usage });
    await o.sse(null, '[DONE]');
    o.res.end();
  },

  async gemini(o, r, t, tools) {
    const u = usageOf(t);
    const usageMetadata = { promptTokenCount: u.input, candidatesTokenCount: u.output - u.reasoning, totalTokenCount: u.input + u.output, cachedContentTokenCount: u.cacheRead, thoughtsTokenCount: u.reasoning };
    const finishReason = t.stop === 'max_tokens' ? 'MAX_TOKENS' : 'STOP';
    const base = { modelVersion: r.model, responseId: id('resp') };
    const fcs = tools.map((c) => ({ functionCall: { name: c.name, args: c.args ?? { input: c.input } }, thoughtSignature: 'bW9jaw==' }));
    const wrap = (parts, end) => ({ ...base, candidates: [{ index: 0, content: { role: 'model', parts }, ...(end ? { finishReason } : {}) }], ...(end ? { usageMetadata } : {}) });
    if (!r.stream) {
      await o.cut(async (e) => o.json(503, { error: { code: 503, status: 'UNAVAILABLE', message: e.message } }));
      const parts = [...(t.thinking ? [{ text: t.thinking, thought: true }] : []), ...(t.text ? [{ text: t.text }] : []), ...fcs];
      return o.json(200, wrap(parts, true));
    }
    o.head();
    const size = t.chunkSize || 12;
    for (const p of pieces(t.thinking || '', size)) await o.sse(null, wrap([{ text: p, thought: true }]));
    for (const p of pieces(t.text || '', size)) await o.sse(null, wrap([{ text: p }]));
    await o.cut((e) => o.sse(null, { error: { code: 503, status: 'UNAVAILABLE', message: e.message } }));
    for (const f of fcs) await o.sse(null, wrap([f]));
    await o.sse(null, wrap([{ text: '' }], true));
    o.res.end();
  },
};

const ERROR_TYPES = {
  anthropic: { 400: 'invalid_request_error', 401: 'authentication_error', 403: 'permission_error', 404: 'not_found_error', 413: 'request_too_large', 429: 'rate_limit_error', 500: 'api_error', 529: 'overloaded_error' },
  openai: { 400: 'invalid_request_error', 401: 'invalid_api_key', 403: 'permission_denied', 404: 'not_found', 429: 'rate_limit_exceeded', 500: 'server_error', 503: 'server_is_overloaded' },
  gemini: { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL', 503: 'UNAVAILABLE' },
};
function sendError(res, api, e) {
  const status = e.status || 500;
  const message = e.message || `mock error ${status}`;
  const headers = { 'content-type': 'application/json', 'request-id': id('req_') };
  if (e.retryAfter !== undefined) headers['retry-after'] = String(e.retryAfter);
  if (e.shouldRetry !== undefined) headers['x-should-retry'] = String(e.shouldRetry);
  const kind = api === 'anthropic' ? 'anthropic' : api === 'gemini' ? 'gemini' : 'openai';
  const type = e.type || ERROR_TYPES[kind][status] || 'api_error';
  const body = kind === 'anthropic' ? { type: 'error', error: { type, message }, request_id: headers['request-id'] }
    : kind === 'gemini' ? { error: { code: status, message, status: type } }
    : { error: { message, type, param: null, code: type } };
  res.writeHead(status, headers);
  res.end(JSON.stringify(body));
}

function modelList(url, sc) {
  const ids = sc.models || ['mock-model'];
  const one = /\/models\/([^/?]+)/.exec(url);
  if (/v1beta/.test(url)) {
    const g = (m) => ({ name: `models/${m}`, displayName: m, inputTokenLimit: 200000, outputTokenLimit: 8192, supportedGenerationMethods: ['generateContent', 'countTokens'] });
    return one ? g(decodeURIComponent(one[1])) : { models: ids.map(g) };
  }
  const m = (x) => ({ id: x, object: 'model', type: 'model', display_name: x, created: 1700000000, created_at: '2025-01-01T00:00:00Z', owned_by: 'mock' });
  return one ? m(decodeURIComponent(one[1])) : { object: 'list', data: ids.map(m), has_more: false, first_id: ids[0], last_id: ids[ids.length - 1] };
}

// ----------------------------------------------------------------------------------- server

async function handle(req, res, raw) {
  let url = req.url;
  const reply = (status, obj) => { res.writeHead(status, { 'content-type': 'application/json' }); res.end(JSON.stringify(obj)); };

  if (url.startsWith('/__mock/')) {
    if (url === '/__mock/health') return reply(200, { ok: true, pid: process.pid });
    if (url === '/__mock/log') return reply(200, log);
    if (url === '/__mock/reset') { sessions.clear(); log.length = 0; return reply(200, {}); }
    if (url === '/__mock/scenario' && req.method === 'POST') {
      try { const s = JSON.parse(raw); if (!Array.isArray(s.turns)) throw new Error('no turns'); defaultScenario = s; sessions.clear(); return reply(200, {}); } catch (e) { return reply(400, { error: String(e) }); }
    }
    if (url.startsWith('/__mock/open/') && req.method === 'POST') { gate(url.slice(13)).open(); return reply(200, {}); }
    return reply(404, {});
  }

  let s = null, m;
  if ((m = /^\/x\/([^/]+)\/([^/]+)(\/.*)$/.exec(url))) { s = session(m[2], m[1]); url = m[3]; }
  else if ((m = /^\/s\/([^/]+)(\/.*)$/.exec(url))) { s = session(m[1]); url = m[2]; }
  else s = session('default');
  if (!s) return reply(404, { error: { message: 'mock: no such scenario' } });
  const sc = s.own || defaultScenario;
  const api = route(req.method, url);
  const entry = { seq: ++seq, t: Date.now(), session: s.key, method: req.method, url, api, ua: req.headers['user-agent'] || '' };

  if (api === 'other') { record({ ...entry, kind: 'unknown' }); return reply(200, {}); }
  if (api === 'models') { record({ ...entry, kind: 'models' }); return reply(200, modelList(url, sc)); }

  let body;
  try { body = JSON.parse(raw || '{}'); } catch { record({ ...entry, kind: 'bad-json' }); return sendError(res, api, { status: 400, message: 'invalid JSON' }); }
  if (opt.bodies) fs.writeFileSync(path.join(opt.bodies, `${String(entry.seq).padStart(4, '0')}-${api}.json`), JSON.stringify(body, null, 1));
  const tokens = Math.max(1, Math.ceil(raw.length / 4));
  if (api === 'count_tokens') { record({ ...entry, kind: 'count' }); return reply(200, { input_tokens: tokens }); }
  if (api === 'gemini_count') { record({ ...entry, kind: 'count' }); return reply(200, { totalTokens: tokens }); }

  const r = readers[api](body, url);
  r.all = raw;
  r.maxTokens = body.max_tokens ?? body.max_completion_tokens ?? body.max_output_tokens ?? body.generationConfig?.maxOutputTokens;
  if (r.toolResult !== null) s.toolResult = r.toolResult.replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, '').replace(/^Chunk ID:[\s\S]*?\nOutput:\n/, '').trim();
  const background = isBackground(r, sc);
  let index = -2, turn;
  if (background) turn = sc.background || { text: r.schema ? JSON.stringify(filler(r.schema)) : BACKGROUND_TEXT, usage: { input: 10, output: 3 } };
  else ({ index, turn } = nextTurn(s));
  s.requests++;

  const calls = (turn.tools || (turn.tool ? [turn.tool] : [])).map((c) => resolveTool(c, r));
  if (turn.text?.includes('{{tool_result}}')) turn = { ...turn, text: turn.text.replaceAll('{{tool_result}}', s.toolResult.trim()) };
  if (turn.text?.includes('{{headers}}')) turn = { ...turn, text: turn.text.replaceAll('{{headers}}', JSON.stringify(req.headers)) };
  const missing = (turn.expect || []).filter((x) => !raw.includes(JSON.stringify(x).slice(1, -1)));
  const whole = !missing.length && !turn.error && !turn.streamError && !turn.disconnect && !turn.hang;
  record({
    ...entry, key: req.headers["x-api-key"] ?? req.headers["x-goog-api-key"] ?? req.headers.authorization, kind: background ? "background" : "main", turn: index, model: r.model, stream: r.stream, messages: r.messages,
    tools: r.tools.map((t) => (t.namespace ? `${t.namespace}.` : '') + t.name), calls: calls.map((c) => c.name),
    last: r.last.slice(-300), toolResult: r.toolResult === null ? null : r.toolResult.slice(0, 300), error: turn.error?.status, usage: whole ? usageOf(turn) : undefined,
  });

  if (missing.length) { record({ seq: entry.seq, kind: 'expect-failed', status: 400, missing }); return sendError(res, api, { status: 400, message: `mock expectation failed: ${missing.join(' | ')}` }); }
  if (turn.gate) await gate(turn.gate).opened;
  if (turn.delayMs) await sleep(turn.delayMs);
  if (turn.error) return sendError(res, api, turn.error);
  await writers[api](new Out(res, turn), r, turn, calls);
}

const MAX_BODY = 64 << 20;
function onRequest(req, res) {
  const parts = [];
  let size = 0;
  req.on('data', (d) => { size += d.length; if (size > MAX_BODY) req.destroy(); else parts.push(d); });
  req.on('error', () => {});
  res.on('error', () => {});
  if (opt.echo) res.setHeader('x-echo', JSON.stringify(req.headers));
  req.on('end', () => {
    handle(req, res, Buffer.concat(parts).toString('utf8')).catch((e) => {
      if (e instanceof Gone) return;
      console.error(`mock-llm: ${req.method} ${req.url}: ${e.stack || e}`);
      if (!res.headersSent) { res.writeHead(500, { 'content-type': 'application/json' }); res.end(JSON.stringify({ error: { message: `mock bug: ${e.message}` } })); } else res.destroy();
    });
  });
}
function onUpgrade(req, socket) {                  // no websockets here: clients fall back to HTTP
  record({ seq: ++seq, t: Date.now(), method: 'UPGRADE', url: req.url, kind: 'unknown' });
  socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
}

for (const spec of opt.listen) {
  const srv = http.createServer(onRequest);
  srv.on('upgrade', onUpgrade);
  await new Promise((ok, bad) => {
    srv.on('error', bad);
    if (spec.startsWith('unix:')) { const p = spec.slice(5); try { fs.unlinkSync(p); } catch { /* none */ } srv.listen(p, ok); }
    else { const [, host, port] = /^(.*):(\d+)$/.exec(spec) || fail(`bad --listen ${spec}`); srv.listen(Number(port), host, ok); }
  }).catch((e) => fail(e.message));
  const a = srv.address();
  const where = typeof a === 'string' ? `unix:${a}` : `http://${a.address}:${a.port}`;
  console.log(`mock-llm: listening on ${where}`);
  if (typeof a !== 'string' && opt.portFile) { fs.writeFileSync(opt.portFile + '.tmp', `${a.port}\n`); fs.renameSync(opt.portFile + '.tmp', opt.portFile); }
}
for (const sig of ['SIGTERM', 'SIGINT']) process.on(sig, () => process.exit(0));
