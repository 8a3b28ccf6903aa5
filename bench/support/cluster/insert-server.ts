import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';

/**
 * The obvious webhook receiver on PostgreSQL: `insert-server.ts <url> <secret>`. It checks the signature, parses the
 * body, inserts it with one statement and answers. Prints its port.
 */
const [url, secret] = process.argv.slice(2) as [string, string];
const ANSWER = JSON.stringify({ status: 'accepted' });
const pool = new pg.Pool({ connectionString: url, max: 10 });
await pool.query(
  `create table if not exists public.plain_delivery
     (id text primary key, received_at timestamptz not null, headers text not null, body bytea not null)`,
);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const status = await store(request.headers, Buffer.concat(chunks)).catch(() => 503);
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': ANSWER.length });
    response.end(ANSWER);
  });
}).listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));

async function store(headers: NodeJS.Dict<string | string[]>, body: Buffer): Promise<number> {
  const expected = createHmac('sha256', secret).update(body).digest();
  const claimed = Buffer.from(String(headers['x-hub-signature-256']).slice(7), 'hex');
  if (claimed.length !== expected.length || !timingSafeEqual(claimed, expected)) return 401;
  JSON.parse(body.toString());
  await pool.query('insert into public.plain_delivery values ($1, now(), $2, $3)', [
    headers['x-github-delivery'],
    JSON.stringify(headers),
    body,
  ]);
  return 202;
}
