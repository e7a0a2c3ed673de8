// server.js PORT DIR: a bucket `results` for the key S3RVER with the secret S3RVER.
//
// s3rver does not check signatures of version 4, so a front does, by aws4: what is asked is signed anew with
// the right secret, and has to come out the same; the body has to be the one that was signed.
const crypto = require('crypto');
const http = require('http');
const aws4 = require('aws4');
const S3rver = require('s3rver');

const [port, directory] = process.argv.slice(2);
const keys = {accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER'};
const region = 'us-east-1';

function ofHeader(req, body) {
	const given = req.headers.authorization;
	const names = (/SignedHeaders=([^,]+)/.exec(given) || [])[1];
	if (!names || !names.split(';').includes('host') || !names.split(';').includes('x-amz-content-sha256')) return false;
	const headers = Object.fromEntries(names.split(';').map(n => [n, req.headers[n]]));
	const own = aws4.sign({service: 's3', region, method: req.method, path: req.url, headers}, keys);
	const sum = crypto.createHash('sha256').update(body).digest('hex');
	return own.headers.Authorization === given && sum === req.headers['x-amz-content-sha256'];
}

function ofLink(req) {
	const url = new URL(req.url, 'http://x');
	const query = url.searchParams, [path] = req.url.split('?');
	const at = query.get('X-Amz-Date').replace(/(....)(..)(..T..)(..)/, '$1-$2-$3:$4:');
	const [date, seconds, signature] = ['Date', 'Expires', 'Signature'].map(n => query.get('X-Amz-' + n));
	const own = aws4.sign({service: 's3', region, method: req.method, signQuery: true, headers: {host: req.headers.host},
		path: `${path}?X-Amz-Date=${date}&X-Amz-Expires=${seconds}`}, keys);
	const fresh = Date.parse(at) + 1000 * Number(seconds) > Date.now();
	return fresh && new URL(own.path, 'http://x').searchParams.get('X-Amz-Signature') === signature;
}

function refuse(res) {
	res.writeHead(403, {'Content-Type': 'application/xml'});
	res.end('<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SignatureDoesNotMatch</Code><Message>not that of aws4</Message></Error>');
}

function front(to) {
	return (req, res) => {
		const parts = [];
		req.on('data', p => parts.push(p));
		req.on('end', () => {
			const body = Buffer.concat(parts);
			if (!(req.headers.authorization ? ofHeader(req, body) : req.url.includes('X-Amz-Signature=') && ofLink(req)))
				return refuse(res);
			const on = http.request({port: to, host: '127.0.0.1', method: req.method, path: req.url, headers: req.headers}, answer => {
				res.writeHead(answer.statusCode, answer.headers);
				answer.pipe(res);
			});
			on.on('error', () => res.destroy());
			on.end(body);
		});
	};
}

const server = new S3rver({port: 0, address: '127.0.0.1', directory, silent: true, resetOnClose: false,
	configureBuckets: [{name: 'results'}]});
server.run((e, where) => {
	if (e) throw e;
	http.createServer(front(where.port)).listen(Number(port), '127.0.0.1');
});
