import { createHmac, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { atEnd } from '../support/at-end.ts';
import { createPlatform, type Platform } from '../support/platform.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/webhooks/plugins/*', import.meta.url))];
const KEYS = `SVC_MASTER_KEY=${Buffer.alloc(32, 7).toString('base64url')}
GATEWAY_JWT_SECRET=${'j'.repeat(40)}
GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}
SVC_OPERATOR_CLIENT_ID=operator-of-the-test
SVC_OPERATOR_CLIENT_SECRET=${'o'.repeat(40)}
`;

interface Node extends Platform {
  url: string;
}

async function startNode(postgresUrl: string): Promise<Node> {
  const gateway = { port: 0, publicUrl: 'http://svc.example' };
  const platform = await createPlatform({ store: { url: postgresUrl }, plugins: PLUGINS, gateway });
  atEnd(() => platform.dispose());
  await writeFile(join(platform.folder, '.env'), KEYS, { mode: 0o600 });
  await platform.svc('migrate', '--yes');
  return { ...platform, url: await platform.up() };
}

/** Sends a signed delivery. Resolves with true if it was acknowledged. */
async function deliver({ url }: Node, path: string, secret: string, id: string): Promise<boolean> {
  const body = JSON.stringify({ delivery: { id } });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-signature': `sha256=${signature}`,
    'x-delivery': id,
    'x-svc-namespace': 'default',
  };
  return fetch(`${url}${path}`, { method: 'POST', headers, body }).then(
    ({ status }) => status === 202,
    () => false,
  );
}

async function writeGreeter(parent: string, version: string): Promise<string> {
  const folder = join(parent, `greeter-${version}`);
  await mkdir(folder);
  const manifest = {
    ...{ schema: 'svc.plugin/3', id: 'greeter', version },
    commands: [{ id: 'hello', handler: 'h.js#hello' }],
  };
  const about = { name: 'greeter', version, type: 'module' };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), JSON.stringify(about));
  await writeFile(join(folder, 'h.js'), `export const hello = () => 'hello from ${version}';`);
  return folder;
}

async function killNode({ svc }: Node): Promise<void> {
  const { envelope } = await svc('status');
  const { pid, services } = envelope.result;
  for (const one of [pid, ...services.map((service: { pid: number }) => service.pid)])
    process.kill(one, 'SIGKILL');
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'two nodes on PostgreSQL' : POSTGRES_MISSING, () => {
  test('accept deliveries together, and nothing acknowledged is lost when the first is killed', async () => {
    const postgresUrl = await emptyPostgres();
    const one = await startNode(postgresUrl);
    const two = await startNode(postgresUrl);
    const { envelope } = await one.svc('webhooks', 'provision', '@acme/orders', 'later');
    const { secret } = envelope.result;
    const path = new URL(envelope.result.url).pathname;
    const acknowledged: string[] = [];
    const send = async (node: Node): Promise<void> => {
      const id = randomUUID();
      if (await deliver(node, path, secret, id)) acknowledged.push(id);
    };
    const sendMany = (nodes: readonly Node[]) =>
      Promise.all(Array.from({ length: 40 }, (_, index) => send(nodes[index % nodes.length]!)));
    await sendMany([one, two]);
    expect(acknowledged).toHaveLength(40);
    const load = sendMany([one, two]);
    await killNode(one);
    await load;
    await sendMany([two]);
    expect(acknowledged.length).toBeGreaterThanOrEqual(80);

    const unfinished = async () => {
      const { envelope: found } = await two.svc('webhooks', 'deliveries', '--limit', '200');
      const ended = found.result.items.filter(({ status }: { status: string }) => status === 'succeeded');
      return acknowledged.length - ended.length;
    };
    await expect.poll(unfinished, { timeout: 60_000, interval: 500 }).toBeLessThanOrEqual(0);
  }, 180_000);

  test('use a plugin as soon as its installation on one of them has returned', async () => {
    const postgresUrl = await emptyPostgres();
    const one = await startNode(postgresUrl);
    const two = await startNode(postgresUrl);
    const run = async (node: Node) => (await node.svc('run', 'greeter', 'hello')).envelope.result;
    const installed = await one.svc('plugins', 'install', await writeGreeter(one.folder, '1.0.0'), '--yes');
    expect(installed.exitCode).toBe(0);
    expect(await run(two)).toBe('hello from 1.0.0');

    await killNode(two);
    const source = await writeGreeter(one.folder, '2.0.0');
    const updated = await one.svc('plugins', 'update', 'greeter', source, '--yes');
    expect(updated.exitCode).toBe(0);
    expect(await run(one)).toBe('hello from 2.0.0');
    await two.up();
    await expect.poll(() => run(two), { timeout: 30_000, interval: 200 }).toBe('hello from 2.0.0');
  }, 180_000);
});
