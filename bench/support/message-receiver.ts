import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Receives signed messages in a process of its own: `message-receiver.ts`. Sends its URL to its parent. `secret <key>`
 * sets the key (base64) and empties the counts, `count` asks for the number and the waits from `data.at` to receipt, in ms.
 */
let key = Buffer.alloc(0);
let waits: number[] = [];
let wrong = 0;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
    const expected = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64');
    if (signature === `v1,${expected}`)
      waits.push(Date.now() - (JSON.parse(body.toString()) as { data: { at: number } }).data.at);
    else wrong++;
    response.writeHead(204).end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` });
});
process.on('message', (message: { key?: string; count?: 'waits' | 'number' }) => {
  if (message.key !== undefined) {
    key = Buffer.from(message.key, 'base64');
    waits = [];
    wrong = 0;
  }
  process.send!({ received: waits.length, wrong, waits: message.count === 'waits' ? waits : [] });
});
