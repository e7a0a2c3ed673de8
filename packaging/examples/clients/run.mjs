#!/usr/bin/env node
// run.mjs USER/GOAL PROMPT: a run of the harness hello, its events as they come, an artifact and its
// result.  Needs nothing but Node.  The daemon's socket is $AGENTBOX_SOCKET or the usual one.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const socketPath = process.env.AGENTBOX_SOCKET || '/run/agentbox/agentbox.sock';

class Refused extends Error {}

async function text(answer) {
	answer.setEncoding('utf8');
	let all = '';
	for await (const piece of answer) all += piece;
	return all;
}

// The answer, still to be read; what is refused throws with the daemon's reason.
async function ask(method, path, { body, headers = {} } = {}) {
	const answer = await new Promise((resolve, reject) => {
		const type = body ? { 'Content-Type': 'application/json' } : {};
		http.request({ socketPath, method, path, headers: { ...type, ...headers } }, resolve)
			.on('error', reject)
			.end(body && JSON.stringify(body));
	});
	if (answer.statusCode < 300) return answer;
	const problem = JSON.parse((await text(answer)) || '{}');
	throw new Refused(problem.detail ?? `the daemon answered ${answer.statusCode}`);
}

// Each event once, in order; a connection that breaks goes on after the last number seen.
async function* follow(run, patience = 15000) {
	let last = 0, until = Date.now() + patience;
	for (;;) {
		try {
			const answer = await ask('GET', `/v1/runs/${run}/events?follow=1`,
				{ headers: { Accept: 'text/event-stream', 'Last-Event-ID': String(last) } });
			for await (const line of createInterface({ input: answer })) {
				if (!line.startsWith('data:')) continue;
				const event = JSON.parse(line.slice(5));
				if (event.seq && event.seq <= last) continue;
				last = event.seq || last;
				until = Date.now() + patience;
				yield event;
				if (event.type === 'run.done') return;
			}
		} catch (e) {
			if (e instanceof Refused) throw e;
		}
		if (Date.now() > until) throw new Error('the daemon does not answer any more');
		await sleep(250);
	}
}

const [goal, prompt] = process.argv.slice(2);
const slash = goal?.indexOf('/');
if (prompt === undefined || !(slash > 0)) {
	console.error('usage: run.mjs USER/GOAL PROMPT');
	process.exit(2);
}
try {
	// With a key of its own, asking again after a lost answer does not start a second run.
	const { runId } = JSON.parse(await text(await ask('POST', '/v1/runs', {
		body: {
			session: { userId: goal.slice(0, slash), goalId: goal.slice(slash + 1) },
			harness: 'hello', prompt, idempotencyKey: `example-${randomUUID()}`,
		},
	})));
	let result;
	for await (const event of follow(runId)) {
		console.log(JSON.stringify(event));
		result = event.result;
	}
	process.stdout.write(await text(await ask('GET', `/v1/runs/${runId}/artifacts/out/hello.txt`)));
	console.log(JSON.stringify(result));
} catch (e) {
	console.error(e.message);
	process.exitCode = 1;
}
