#!/usr/bin/env node
// matrix.mjs - what every agent is tried with, through abctl, and how that is judged.  For matrix.sh.
//
//	matrix.mjs configure              writes policies and harnesses of all cases below $T/etc
//	matrix.mjs run | restarted        the cases, some at once; those that need a new daemon
//	matrix.mjs told DOCUMENT [write]  does the document say what was found?
//
// Each case is a line "CASE<TAB>ok|wrong<TAB>what was found".  What was found is one of few words ("ok", "refused", ...),
// with the reason behind a colon where it is not "ok".  A case that finds what must not be is wrong.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { spawn } from 'node:child_process';

const { T, BIN, AGENT, MODEL, MCP_MODEL, PORT, MCP_PORT, MCP_WORD, MCP_EXPECTS, CGROUP } = process.env;
const AT_ONCE = 4;                                 // besides those that sleep
const sleep = (ms) => new Promise((ok) => setTimeout(ok, ms));
const slug = (name) => name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
const SHELLS = ['Bash', 'bash', 'run_shell_command', 'shell', 'execute']; // what agents call it, and its kind
const bytes = (n) => 'All work and no play makes Jack a dull boy.\n'.repeat(Math.ceil(n / 44)).slice(0, n);

// ------------------------------------------------------------------------------------ cases

// name; scenario: what the model does; head, body: of the harness; sleeps: it waits long before it asks again;
// go: what is done, and the findings.
// A harness that is refused, with words that match `refused`, is a finding, too.
const CASES = [
  { name: 'text', scenario: 'text', go: async (c) => {
    succeeded(await c.run('What is six times seven?'), 'The answer is 42.');
  } },
  { name: 'its whole output is understood', scenario: 'write', go: async (c) => {
    const r = succeeded(await c.run('Write it.'), 'Wrote out/hello.txt.');
    return of(r, 'agent.raw').some((e) => !e.stream) ? 'raw' : 'ok';
  } },
  { name: "the harness's body", scenario: 'marker', body: 'MARKER-APPENDED-7f3', go: async (c) => {
    succeeded(await c.run('Hi.'), 'The marker is there.');
  } },
  { name: 'a file comes back', scenario: 'write', head: 'artifacts: ["out/**"]', go: async (c) => {
    const r = succeeded(await c.run('Write it.'), 'Wrote out/hello.txt.');
    assert.deepEqual(r.result.artifacts.map((a) => `${a.path} ${a.bytes}`), ['out/hello.txt 6']);
    assert.equal((await abctl(['artifacts', r.result.runId, 'get', 'out/hello.txt'])).out, 'hello\n');
    assert.deepEqual(of(r, 'tool.result').map((e) => e.ok), [true]);
  } },
  { name: 'changed files are told', scenario: 'write', go: async (c) => {
    const r = succeeded(await c.run('Write it.'), 'Wrote out/hello.txt.');
    const told = of(r, 'file.changed').map((e) => `${e.change} ${e.path}`);
    if (!told.length) return 'no';
    assert.match(told.join(), /^(add|edit) out\/hello\.txt$/);
    return told[0].startsWith('edit') ? 'as edits: also new files' : 'ok';
  } },
  { name: 'tokens as the agent tells them', scenario: 'tool', go: async (c) => {
    const r = succeeded(await c.run('Make it.'), 'Done: out/hello.txt says');
    const u = of(r, 'usage').pop();
    if (!u?.inputTokens) return 'none';
    const said = c.asked().filter((q) => q.usage);
    const of3 = (x) => `${x.input} in, ${x.output} out, ${x.cacheRead} cached`;
    const own = of3({ input: u.inputTokens, output: u.outputTokens, cacheRead: u.cachedTokens });
    const main = of3(sum(said.filter((q) => q.kind === 'main' && q.turn >= 0)));
    if (![main, of3(sum(said))].includes(own)) return `differ: ${own}, where the model said ${main}`;
  } },
  { name: 'a tool fails', scenario: 'tool-fail', go: async (c) => {
    const r = succeeded(await c.run('Try.'), 'The command failed with exit status 3.');
    const [e] = of(r, 'tool.result');
    if (e.ok) return 'not told: its command seems to have succeeded';
    assert.match(e.output, /oops/);
    return e.exitCode === 3 ? 'ok' : 'ok: without the exit code';
  } },
  { name: 'API error 401', scenario: 'err401', sleeps: true, go: (c) => apiFails(c, /401|key|auth/i) },
  { name: 'API error 429', scenario: 'err429', sleeps: true, limit: 360, go: (c) => apiFails(c, /429|rate/i) },
  { name: 'API error 500', scenario: 'err500', sleeps: true, limit: 360, go: (c) => apiFails(c, /500|internal/i) },
  { name: 'API overloaded (529)', scenario: 'err529', sleeps: true, limit: 360, go: (c) => apiFails(c, /529|overload/i) },
  { name: 'overloaded in mid-stream', scenario: 'overloaded', go: (c) => cutShort(c, /overload/i, 'Recovered.') },
  { name: 'connection lost in mid-stream', scenario: 'disconnect', go: (c) => cutShort(c, /./, 'Recovered after the disconnect.') },
  { name: 'cancelled while it speaks', scenario: 'hang', go: (c) => cancelled(c, 'agent.message', 'agent.thinking') },
  { name: 'cancelled while a tool runs', scenario: 'sleep-tool', go: (c) => cancelled(c, 'tool.call') },
  { name: 'timeout', scenario: 'hang', limit: 15, go: async (c) => {
    const r = await c.run('Hang.');
    assert.equal(r.result.status, 'timeout');
    assert.equal(r.result.exit.reason, 'timeout');
    assert.ok(r.result.durationMs >= 15000 && r.result.durationMs < 45000, `it took ${r.result.durationMs} ms`);
    assert.ok(of(r, 'limit.hit').some((e) => e.limit === 'wall'));
  } },
  { name: 'turn limit', scenario: 'loop', limits: 'maxTurns: 2', refused: /[tT]urns/, go: async (c) => {
    const r = await c.run('Loop.');
    assert.notEqual(r.result.status, 'succeeded');
    assert.match(r.result.error, /turn/i);
    const turns = c.asked().filter((q) => q.kind === 'main').length;
    assert.ok(turns <= 3, `the model was asked ${turns} times`);
  } },
  { name: 'a tool is denied', scenario: 'tool-fail', head: `tools: { deny: [${SHELLS}] }`, refused: /tools/, go: (c) => without(c, (tool) => SHELLS.includes(tool) || tool === 'exec_command') },
  { name: 'no tool is allowed', scenario: 'tool-fail', head: 'tools: { allow: [] }', refused: /tools/, go: (c) => without(c, () => true) },
  { name: 'resumed', scenario: 'resume', go: async (c) => {
    succeeded(await c.run('Remember heliotrope.'), 'I will remember');
    succeeded(await c.run('Which word?'), 'The word was heliotrope.');
  } },
  { name: 'its conversation is lost', scenario: 'resume', go: async (c) => {
    succeeded(await c.run('Remember heliotrope.'), 'I will remember');
    const gone = await abctl(['exec', c.session, '--', 'find', '/home/agent', '-mindepth', '1', '-delete']);
    assert.equal(gone.code, 0, gone.err);
    const r = succeeded(await c.run('Which word?'), 'The word was heliotrope.');
    assert.deepEqual(of(r, 'session.resumed').map((e) => `${e.how} ${e.lost}`).at(-1), 'transcript true');
  } },
  { name: 'resumed by a new daemon', scenario: 'resume', go: async (c) => {
    succeeded(await c.run('Remember heliotrope.'), 'I will remember');
  }, restarted: async (c) => {
    succeeded(await c.run('Which word?'), 'The word was heliotrope.');
  } },
  { name: 'a person allows', scenario: 'tool', head: 'permissions: ask\nartifacts: ["out/**"]', refused: /ask/, go: async (c) => {
    const r = succeeded(await c.run('Make it.', { asked: 'approve' }), 'Done: out/hello.txt says');
    assert.deepEqual(of(r, 'permission.answered').map((e) => `${e.answer} ${e.by}`), ['once user']);
    assert.deepEqual(of(r, 'tool.result').map((e) => e.ok), [true]);
    assert.deepEqual(r.result.artifacts.map((a) => a.path), ['out/hello.txt']);
  } },
  { name: 'a person denies', scenario: 'tool', head: 'permissions: ask\nartifacts: ["out/**"]', refused: /ask/, go: (c) => denied(c, 'user', { asked: 'deny' }) },
  { name: 'permissions: deny', scenario: 'tool', head: 'permissions: deny\nartifacts: ["out/**"]', refused: /permissions/, go: (c) => denied(c, 'harness') },
  { name: 'MCP, a program', scenario: 'mcp', refused: /mcp/i, head: () => `tools: { mcp: { mock: { command: node, args: [/workspace/mcp.mjs, '${MCP_WORD}'], env: { MCP_WORD: '${MCP_WORD}', MCP_EXPECTS: ${MCP_EXPECTS} } } } }
workspace: { seed: { mcp.mjs: ${JSON.stringify(fs.readFileSync('tests/agents/mock-mcp.mjs', 'utf8'))} } }`, go: mcp },
  { name: 'MCP, by HTTP', scenario: 'mcp', refused: /mcp/i, head: `tools: { mcp: { mock: { url: "http://mcp.agentbox/$HOME", headers: { mcp-word: '${MCP_WORD}' } } } }`, go: mcp },
  { name: 'a prompt of 1 MB', scenario: 'big', go: async (c) => {
    succeeded(await c.run(`${bytes(1e6)}THE-END-OF-THE-PROMPT`), 'All of it came.');
  } },
  { name: 'a prompt that begins with -', scenario: 'dash', go: async (c) => {
    succeeded(await c.run('--version -rf / is what I say.'), 'It came as it was.');
  } },
];

// ----------------------------------------------------------------------------------- judging

const of = (r, type) => r.events.filter((e) => e.type === type);
// What a failure is said to be, with the code of it.
const why = (r) => `${r.result.error ?? ''} ${of(r, 'error').at(-1)?.code ?? ''}`;
const sum = (asked) => asked.reduce((s, q) => ({ input: s.input + q.usage.input, output: s.output + q.usage.output, cacheRead: s.cacheRead + q.usage.cacheRead }),
  { input: 0, output: 0, cacheRead: 0 });

function succeeded(r, text) {
  assert.equal(r.result.status, 'succeeded', r.result.error);
  assert.ok(r.result.finalText.includes(text), `its text is ${JSON.stringify(r.result.finalText.slice(0, 300))}`);
  return r;
}

async function apiFails(c, words) {
  const r = await c.run('Hi.');
  const asked = c.asked().filter((q) => q.error).length;
  if (r.result.status === 'timeout' && asked > 1) return 'goes on: it asks again until the time of the run is over';
  assert.match(why(r), words);
  assert.equal(r.result.status, 'failed');
  return asked > 1 ? 'retries' : 'ok';
}

// The model's words break off.  What the agent had by then is not an answer.
async function cutShort(c, words, answer) {
  const r = await c.run('Hi.');
  if (r.result.status !== 'succeeded') {
    assert.equal(r.result.status, 'failed');
    assert.match(why(r), words);
    return 'fails';
  }
  succeeded(r, answer);
  return 'ok';
}

async function cancelled(c, ...types) {
  let at = 0;
  const r = await c.run('Begin.', { event: async (e) => {
    if (at || !types.includes(e.type)) return;
    at = Date.now();
    assert.equal((await abctl(['cancel', e.run])).code, 0);
  } });
  assert.ok(at, `nothing came of ${types}`);
  assert.equal(r.result.status, 'cancelled');
  const took = r.ended - at;
  assert.ok(took < 20000, `it took ${took} ms`);
}

async function denied(c, by, more) {
  const r = await c.run('Make it.', more);
  const answers = of(r, 'permission.answered').map((e) => `${e.answer} ${e.by}`);
  assert.ok(answers.length && answers.every((a) => a === `deny ${by}`), `answers: ${answers}`);
  assert.ok(of(r, 'tool.result').every((e) => !e.ok), 'no call succeeds');
  assert.deepEqual(r.result.artifacts, []);
  if (r.result.status === 'succeeded') return 'ok';
  assert.equal(r.result.status, 'failed');
  assert.ok(r.result.error);
  return 'stops';
}

// Tools that are not to be used are not offered, or the run ends where one is.
async function without(c, forbidden) {
  const r = await c.run('Try.');
  if (r.result.status === 'succeeded') {
    assert.ok(!c.asked().some((q) => q.kind === 'main' && q.tools.some(forbidden)), 'such a tool is offered');
    return;
  }
  assert.equal(r.result.status, 'blocked');
  assert.match(r.result.error, /tool/);
  return 'ends';
}

async function mcp(c) {
  const r = succeeded(await c.run('Call it.'), 'echo: ping');
  assert.deepEqual(of(r, 'tool.result').filter((e) => /mock_echo/.test(e.name)).map((e) => e.ok), [true]);
}

// What holds for every run, however it ended.
async function sound(c, r) {
  const { result } = r;
  assert.equal(r.events.at(-1).type, 'run.done', 'run.done is the last event');
  assert.equal(of(r, 'run.done').length, 1);
  assert.deepEqual(of(r, 'tool.call').map((e) => e.callId).sort(), of(r, 'tool.result').map((e) => e.callId).sort(), 'each call has one result');
  assert.equal(r.code, result.status === 'succeeded' ? 0 : 1, 'what abctl exits with');
  const shown = JSON.parse((await abctl(['--json', 'show', result.runId])).out);
  assert.equal(shown.status ?? shown.result?.status, result.status, 'abctl show says the same');
  assert.ok(['succeeded', 'cancelled'].includes(result.status) || result.error, 'an end that is no success has a reason');
  for (let i = 0; processes(c).length; i++) {
    assert.ok(i < 100, `processes are left: ${processes(c)}`);
    await sleep(50);
  }
}

// Each request had the key, which only egress has.
function keyed(c) {
  for (const q of c.asked()) assert.match(q.key ?? '', new RegExp(`^(Bearer )?${process.env.PROOF_KEY}$`), 'the key of a request');
}

// What was metered outside is what the model has said, over the runs of a case that were answered whole; at least that where
// an agent asks for itself besides, which may be cut when it ends.
function metered(c) {
  if (c.runs.some((r) => !['succeeded', 'failed'].includes(r.result.status)) || ['overloaded', 'disconnect'].includes(c.scenario)) return;
  const said = c.asked().filter((q) => q.usage);
  const want = sum(said.filter((q) => q.turn >= 0));
  const got = c.runs.reduce((s, r) => ({ input: s.input + r.result.usage.inputTokens, output: s.output + r.result.usage.outputTokens,
    cacheRead: s.cacheRead + r.result.usage.cachedTokens }), { input: 0, output: 0, cacheRead: 0 });
  if (said.every((q) => q.turn >= 0)) assert.deepEqual(got, want, 'tokens metered are those of the model');
  else for (const k of Object.keys(want)) assert.ok(got[k] >= want[k], `${k} metered: ${got[k]}, said: ${want[k]}`);
}

// ----------------------------------------------------------------------------------- running

class Refused extends Error {}

function abctl(args, onLine) {
  return new Promise((ok, bad) => {
    const p = spawn(path.join(BIN, 'abctl'), ['--socket', `${T}/sock`, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    const r = { out: '', err: '' };
    if (onLine) readline.createInterface({ input: p.stdout }).on('line', onLine);
    else p.stdout.on('data', (d) => { r.out += d; });
    p.stderr.on('data', (d) => { r.err += d; });
    p.on('error', bad).on('close', (code) => ok({ ...r, code }));
  });
}

// Processes of the daemon's jails that this case's harness has started: each has its environment from there.
function processes(c) {
  const own = Buffer.from(`MATRIX_CASE=${c.harness}\0`);
  const left = [];
  for (const dir of fs.readdirSync(CGROUP).filter((d) => d.startsWith('jail-'))) {
    let pids = '';
    try { pids = fs.readFileSync(`${CGROUP}/${dir}/cgroup.procs`, 'utf8'); } catch { continue; }
    for (const pid of pids.split('\n').filter(Boolean)) {
      try { if (fs.readFileSync(`/proc/${pid}/environ`).includes(own)) left.push(fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')); } catch { /* gone */ }
    }
  }
  return left;
}

function context(k) {
  const harness = slug(k.name);
  const c = { scenario: k.scenario, harness, session: `u/${harness}`, runs: [] };
  c.asked = () => fs.readFileSync(`${T}/model.log`, 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l))
    .filter((q) => q.session === `${k.scenario}/${harness}` && ['main', 'background'].includes(q.kind));
  c.run = async (prompt, { asked, event } = {}) => {
    const n = c.runs.length;
    const file = `${T}/prompt-${harness}-${n}`;
    const r = { events: [] };
    const work = [];
    fs.writeFileSync(file, prompt);
    const from = prompt.length > 100000 ? ['-f', file] : ['-p', prompt];
    const { code, err } = await abctl(['--json', 'run', harness, '-s', c.session, ...from], (line) => {
      const e = JSON.parse(line);
      r.events.push(e);
      if (event) work.push(event(e));
      if (asked && e.type === 'permission.asked') work.push(abctl([asked, e.run]));
    });
    r.ended = Date.now();
    r.code = code;
    fs.writeFileSync(`${T}/events-${harness}-${n}`, r.events.map((e) => JSON.stringify(e) + '\n').join(''));
    await Promise.all(work);
    if (!r.events.length) throw new Refused(err.trim());
    r.result = r.events.at(-1).result;
    assert.ok(r.result, `no result: ${err}`);
    if (r.result.exit.reason === 'not started') throw new Refused(r.result.error);
    c.runs.push(r);
    await sound(c, r);
    return r;
  };
  return c;
}

async function attempt(k, go) {
  const c = context(k), began = Date.now();
  const [done, found] = await (async () => {
    try {
      const said = await go(c);
      keyed(c);
      if (!k.restarted) metered(c);
      return ['ok', said || 'ok'];
    } catch (e) {
      if (e instanceof Refused && k.refused?.test(e.message)) return ['ok', `refused: ${e.message.replace(/^abctl: system: /, '').replace(/; use an agent .*/s, '')}`];
      const results = c.runs.map((r) => `${r.result.status} ${r.result.error ?? ''}`).join('; ');
      return ['wrong', `${e.message} [${results}]`];
    }
  })();
  const line = [k.name, done, found.replace(/\s+/g, ' ')].join('\t');
  fs.appendFileSync(`${T}/found`, `${line}\n`);
  console.log(`${line}\t${((Date.now() - began) / 1000).toFixed(1)}`);
}

async function all(cases, which) {
  const only = process.env.CASE ? new RegExp(process.env.CASE) : /./;
  const chosen = cases.filter((k) => only.test(k.name));
  const queue = chosen.filter((k) => !k.sleeps);
  const inTurn = async () => { for (let k; (k = queue.shift());) await attempt(k, which(k)); };
  await Promise.all([...chosen.filter((k) => k.sleeps).map((k) => attempt(k, which(k))), ...Array.from({ length: AT_ONCE }, inTurn)]);
}

// ------------------------------------------------------------------------------ configuration

function configure() {
  const policy = fs.readFileSync(`${T}/policy.yaml`, 'utf8'); // the default's, with UPSTREAM for each upstream
  for (const k of CASES) {
    const name = slug(k.name);
    const head = typeof k.head === 'function' ? k.head() : k.head;
    fs.writeFileSync(`${T}/etc/policy/${name}.yaml`, policy.replaceAll('UPSTREAM', `http://127.0.0.1:${PORT}/x/${k.scenario}/${name}`).trimEnd()
      + `\n    - { host: mcp.agentbox, upstream: "http://127.0.0.1:${MCP_PORT}", header: authorization, prefix: "Bearer ", secret: MCP_KEY, allow_loopback: true }\n`);
    const limits = [k.limits, `timeoutMs: ${(k.limit ?? 240) * 1000}`].filter(Boolean).join(', ');
    fs.writeFileSync(`${T}/etc/harnesses/${name}.md`, ['---', `backend: ${AGENT}`, `model: ${k.go === mcp ? MCP_MODEL : MODEL}`, `policy: ${name}`, `limits: { ${limits} }`,
      `env: { MATRIX_CASE: ${name} }`, ...(head ? [head] : []), '---', k.body ?? 'Be brief.', ''].join('\n'));
  }
}

// ---------------------------------------------------------------------------------- document

// The table has a row for each case and a column for each agent; reasons are lines below it.  `ok / fails`: now this, now that.
function told(file, write) {
  const text = fs.readFileSync(file, 'utf8');
  const [, before, body, after] = /^([^]*<!-- tried -->\n)([^]*)(<!-- end of tried -->[^]*)$/.exec(text);
  const rows = body.split('\n').filter((l) => l.startsWith('|')).map((l) => l.slice(1, -1).split('|').map((x) => x.trim()));
  const notes = body.split('\n').filter((l) => l.startsWith('* '));
  const column = rows[0].indexOf(`\`${AGENT}\``);
  const found = new Map(fs.readFileSync(`${T}/found`, 'utf8').trim().split('\n').map((l) => l.split('\t')).map(([name, verdict, what]) => [name, verdict === 'ok' ? what : 'WRONG']));
  const want = { cells: [], notes: [] };
  for (const k of CASES) {
    const [, word, , reason] = /^([^:]*)(: (.*))?$/.exec(found.get(k.name) ?? 'not tried');
    want.cells.push([k.name, word]);
    if (reason) want.notes.push(`* \`${AGENT}\`, ${k.name}: ${word}: ${reason}`);
  }
  if (write) {
    const cell = (name, i) => {
      const said = rows.find((r) => r[0] === name)?.[i] ?? '', word = want.cells.find((x) => x[0] === name)[1];
      return i !== column || said.split(' / ').includes(word) ? said : word;
    };
    const table = [...rows.slice(0, 2), ...CASES.map((k) => [k.name, ...rows[0].slice(1).map((_, i) => cell(k.name, i + 1))])];
    const order = (l) => rows[0].indexOf(l.slice(2, l.indexOf(',')));
    const all = [...notes.filter((l) => order(l) !== column), ...want.notes].sort((a, b) => order(a) - order(b));
    fs.writeFileSync(file, [before, table.map((r) => `| ${r.join(' | ')} |\n`).join(''), '\n', all.map((l) => `${l}\n`).join(''), after].join(''));
    return;
  }
  for (const [name, word] of want.cells) {
    const said = rows.find((r) => r[0] === name)?.[column];
    if (!said?.split(' / ').includes(word)) console.log(`${name}: found '${word}', the document says '${said}'`);
  }
  for (const l of want.notes) if (!notes.includes(l)) console.log(`not in the document: ${l}`);
  for (const l of notes) if (l.startsWith(`* \`${AGENT}\``) && !want.notes.includes(l)) console.log(`no longer so: ${l}`);
  for (const [name] of rows.slice(2)) if (!CASES.some((k) => k.name === name)) console.log(`no such case: ${name}`);
}

const [, , verb, ...args] = process.argv;
if (verb === 'configure') configure();
else if (verb === 'run') await all(CASES, (k) => k.go);
else if (verb === 'restarted') await all(CASES.filter((k) => k.restarted), (k) => k.restarted);
else if (verb === 'told') told(...args);
else { console.error('usage: matrix.mjs configure | run | restarted | told DOCUMENT [write]'); process.exit(2); }
