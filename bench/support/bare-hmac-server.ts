import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

/** Minimal cost of a webhook receiver: read, HMAC, compare, parse, answer; without store, log and limits. */
const secret = process.argv[2]!;
const answer = JSON.stringify({ status: 'accepted' });

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const expected = createHmac('sha256', secret).update(body).digest();
    const claimed = Buffer.from(String(request.headers['x-hub-signature-256']).slice(7), 'hex');
    const valid = claimed.length === expected.length && timingSafeEqual(claimed, expected);
    if (valid) JSON.parse(body.toString());
    response.writeHead(valid ? 202 : 401, {
      'content-type': 'application/json',
      'content-length': answer.length,
    });
    response.end(answer);
  });
}).listen(0, '127.0.0.1', function (this: import('node:http').Server) {
  console.log((this.address() as import('node:net').AddressInfo).port);
});
