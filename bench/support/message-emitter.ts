import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { startBenchGateway } from './bench-gateway.ts';

/**
 * Emits messages in a process of its own: `message-emitter.ts <folder or "bare"> <url> <key> <token>`. "bare" signs and sends without
 * storing; otherwise a gateway of the folder does, as for `ctx.emit` in its process. The parent sends the number.
 */
const [folder, url, secret, token] = process.argv.slice(2) as [string, string, string, string];
const IN_FLIGHT = 16;
/** Publishes at the same time. Each waits for its commit. */
const PUBLISHERS = 128;
const TEXT = 'x'.repeat(400);
const key = Buffer.from(secret, 'base64');

async function bare(): Promise<(n: number) => Promise<void>> {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: IN_FLIGHT });
  return async (n) => {
    const now = Date.now();
    const body = Buffer.from(
      JSON.stringify({ type: 'x', timestamp: new Date(now).toISOString(), data: { at: now, n, text: TEXT } }),
    );
    const id = `msg_${randomUUID()}`;
    const timestamp = String(Math.floor(now / 1000));
    const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    const headers = {
      ...{ 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': timestamp },
      'webhook-signature': `v1,${digest}`,
    };
    const answer = await pool.request({ method: 'POST', path, headers, body });
    await answer.body.dump();
  };
}

async function stored(): Promise<{ emit: (n: number) => Promise<void>; port: number }> {
  const config = JSON.parse(readFileSync(`${folder}/svc.config.json`, 'utf8')) as object;
  const { services, port } = await startBenchGateway({ folder, config, token });
  await services.endpointAdmin.create(
    { namespaceId: 'default' },
    { url, types: ['*'], secret: `whsec_${secret}` },
  );
  const options = { namespaceId: 'default', traceId: '0'.repeat(32) };
  const emit = async (n: number): Promise<void> => {
    await services.publisher.publish({ type: 'x', data: { at: Date.now(), n, text: TEXT } }, options);
  };
  return { emit, port };
}

const { emit, port } = folder === 'bare' ? { emit: await bare(), port: undefined } : await stored();
const workers = folder === 'bare' ? IN_FLIGHT : PUBLISHERS;
process.on('message', async ({ count, perSecond }: { count: number; perSecond?: number }) => {
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (next < count) {
        const n = next++;
        const early = perSecond === undefined ? 0 : startedAt + (n / perSecond) * 1000 - performance.now();
        if (early > 1) await new Promise((resolve) => setTimeout(resolve, early));
        await emit(n);
      }
    }),
  );
  process.send!({ done: true });
});
process.send!({ port });
