// memory.mjs PID TEXT: exit 0 when TEXT is in the memory of PID, 1 when not.
import fs from 'node:fs';

const [pid, text] = process.argv.slice(2);
const needle = Buffer.from(text);
const STEP = 1 << 24; // a piece at a time; pieces overlap by the length of the needle
let maps;
try { maps = fs.readFileSync(`/proc/${pid}/maps`, 'utf8'); } catch { process.exit(1); }
const mem = fs.openSync(`/proc/${pid}/mem`, 'r');
for (const line of maps.split('\n')) {
	const m = /^([0-9a-f]+)-([0-9a-f]+) r/.exec(line);
	if (!m || line.includes('[v')) continue;
	const end = parseInt(m[2], 16);
	for (let at = parseInt(m[1], 16); at < end; at += STEP - needle.length) {
		const b = Buffer.alloc(Math.min(STEP, end - at));
		try {
			const n = fs.readSync(mem, b, 0, b.length, at);
			if (b.subarray(0, n).includes(needle)) process.exit(0);
		} catch { break; /* a mapping that cannot be read by anyone */ }
	}
}
process.exit(1);
