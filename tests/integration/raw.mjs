// raw.mjs SOCKET: sends stdin as it is and prints the status lines that come back, or "closed".
//   --end            half-closes after stdin
//   --idle N --then PATH   N idle connections, then one request
//   --eager          an upgraded jail whose request comes together with a bad frame: prints the
//                    streams of the frames that come back and the start of the first one
//   --bad-frames     an upgraded jail that gets a frame of an unknown stream
import net from 'node:net';

const [socket, ...rest] = process.argv.slice(2);
const has = (f) => rest.includes(f);
const value = (f) => rest[rest.indexOf(f) + 1];

function talk(bytes, { end = false, wait = 4000 } = {}) {
	return new Promise((resolve) => {
		const c = net.connect({ path: socket, allowHalfOpen: true });
		let text = '';
		const finish = () => { c.destroy(); resolve(text); };
		c.on('data', (d) => { text += d.toString('latin1'); });
		c.on('end', finish);
		c.on('error', finish);
		setTimeout(finish, wait).unref();
		c.write(bytes, () => { if (end) c.end(); });
	});
}

const statusLines = (t) => (t.match(/HTTP\/1\.[01] \d+[^\r]*/g) || ['closed']).join('\n');

if (has('--idle')) {
	const idle = [];
	for (let i = 0; i < Number(value('--idle')); i++) {
		const c = net.connect(socket);
		c.on('error', () => {});
		idle.push(c);
	}
	await new Promise((r) => setTimeout(r, 1500));
	const t = await talk(`GET ${value('--then')} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, { wait: 10000 });
	console.log(statusLines(t));
	idle.forEach((c) => c.destroy());
} else if (has('--eager')) {
	const body = '{"argv":["sleep","2"]}';
	const head = `POST /v1/jails HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: agentbox-stdio\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
	const text = await talk(Buffer.concat([Buffer.from(head), Buffer.from([77, 0, 0, 0, 1, 1])]), { wait: 8000 });
	let at = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1');
	const streams = [], first = at.subarray(5, 15).toString('latin1');
	while (at.length >= 5) {
		streams.push(at[0]);
		at = at.subarray(5 + at.readUInt32BE(1));
	}
	console.log(streams.join(','), first);
} else if (has('--bad-frames')) {
	const body = '{"argv":["cat"]}';
	const c = net.connect(socket);
	c.write(`POST /v1/jails HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: agentbox-stdio\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
	c.once('data', () => c.write(Buffer.from([77, 0, 0, 0, 1, 1])));
	c.on('error', () => {});
	const end = new Promise((r) => c.on('close', () => r('closed')));
	const late = new Promise((r) => setTimeout(r, 8000, 'still open').unref());
	console.log(await Promise.race([end, late]));
} else {
	const chunks = [];
	for await (const d of process.stdin) chunks.push(d);
	console.log(statusLines(await talk(Buffer.concat(chunks), { end: has('--end') })));
}
process.exit(0);
