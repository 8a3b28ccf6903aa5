import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  listAudit,
  refreshConnection,
  revokeConnection,
  revokeSecret,
  runCommand,
  setSecret,
} from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { createClient } from '../../src/http/index.ts';
import { createElsewhere, networkMissing } from '../agent/network.ts';
import { spawnAgent, startTestAgent } from '../agent/support.ts';
import { callbackOf, connect, LOOPBACK } from '../daemons/gateway/connections/support.ts';
import { asCaller, startRest } from '../daemons/rest/support.ts';
import { engineMissing, type TestEngine } from '../plugins/engine.ts';
import { useEngine } from '../support/containers.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../support/gateway.ts';
import { registerTestHost } from '../support/host-agent.ts';
import { leakForms } from '../support/leak-forms.ts';
import { startOAuthProvider } from '../support/oauth-provider.ts';
import { textsIn } from '../support/texts-in.ts';

const CONNECTION = 'crm';
const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'keeper',
  version: '1.0.0',
  permissions: { secrets: ['API_KEY'], connections: [CONNECTION] },
  commands: ['secret', 'connection', 'fail', 'unlisted'].map((id) => ({
    id,
    handler: `h.js#${id}`,
    ...(id === 'unlisted' ? { permissions: {} } : {}),
  })),
};
const CODE = `
  import { createHash } from 'node:crypto';
  const digest = (value) => createHash('sha256').update(value).digest('hex');
  const shown = (ctx, value) => {
    console.log('printed', value);
    process.stdout.write('written ' + value + '\\n');
    console.error(Buffer.from(value).toString('base64'));
    ctx.log.info('logged ' + value, { hex: Buffer.from(value).toString('hex') });
    return { digest: digest(value), value, base64: Buffer.from('x' + value).toString('base64') };
  };
  export const secret = async (ctx) => shown(ctx, await ctx.secrets.get('API_KEY'));
  export const unlisted = secret;
  export const connection = async (ctx) => shown(ctx, await ctx.connections.token('${CONNECTION}'));
  export const fail = async (ctx) => {
    const value = await ctx.secrets.get('API_KEY');
    const token = await ctx.connections.token('${CONNECTION}');
    throw Object.assign(new Error('rejected ' + value + ' and ' + token), { code: 'REJECTED', cause: new Error(token) });
  };`;

interface Output {
  digest: string;
  value: string;
  base64: string;
}

async function start(execution: object, address = '127.0.0.1') {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/keeper');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"name": "keeper", "type": "module"}');
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(folder, 'h.js'), CODE);
  const peers = createPeers();
  const config = { execution, ...LOOPBACK };
  const listen = address === '127.0.0.1' ? {} : { listen: { host: '0.0.0.0', port: 0 } };
  const [gateway, keeper, provider] = await Promise.all([
    startGateway({ projectDir, peers, config, ...listen }),
    startTestDaemon(state),
    startOAuthProvider(),
  ]);
  const local = `http://127.0.0.1:${new URL(gateway.url).port}`;
  const rest = await startRest({ projectDir, peers, config });
  peers.set({ gateway: local, state: keeper.url, rest: rest.url });
  provider.trust(callbackOf(gateway));
  const client = createClient({ url: rest.url, peer: 'rest' });
  const run = async (commandId: string, tenant = 'default'): Promise<Output> => {
    const params = { pluginId: 'keeper' as never, commandId };
    const headers = asCaller('operator', tenant);
    const { result } = await client.call(runCommand, { params, body: { input: null } as never }, { headers });
    return result as never;
  };
  return {
    gateway,
    rest,
    provider,
    run,
    place: { gateway, provider },
    far: `http://${address}:${new URL(gateway.url).port}`,
  };
}

const digest = (value: string) => createHash('sha256').update(value).digest('hex');

/** Uses the secret and the connection in every state. Returns all values that were in use. */
async function useAll({ gateway, provider, run, place }: Awaited<ReturnType<typeof start>>) {
  const set = (value: string) =>
    gateway.call(setSecret, { params: { name: 'API_KEY' }, body: { value } as never });
  await expect(run('secret')).rejects.toMatchObject({
    message: expect.stringContaining('svc secrets set API_KEY --tenant default'),
  });
  const values = [1, 2].map(() => `key-${randomBytes(12).toString('hex')}`);
  const masked = { value: '[redacted]', base64: expect.stringContaining('[redacted]') };
  for (const value of values) {
    // A new version is used at the next call.
    await set(value);
    expect(await run('secret')).toEqual({ digest: digest(value), ...masked });
  }
  await expect(run('unlisted')).rejects.toMatchObject({
    message: expect.stringContaining('permissions.secrets'),
  });
  await expect(run('secret', 'acme')).rejects.toMatchObject({
    // Hosts belong to a namespace, too.
    message: expect.stringMatching(/namespace acme has no secret|No host of namespace acme/),
  });

  await expect(run('connection')).rejects.toMatchObject({
    message: expect.stringContaining(`svc connections create ${CONNECTION}`),
  });
  await connect(place);
  const token = () => provider.answers.at(-1)!.access_token!;
  values.push(token());
  expect(await run('connection')).toEqual({ digest: digest(token()), ...masked });
  await gateway.call(refreshConnection, { params: { name: CONNECTION } });
  values.push(token());
  expect(await run('connection')).toEqual({ digest: digest(token()), ...masked });
  await expect(run('connection', 'acme')).rejects.toMatchObject({
    message: expect.stringMatching(/has no connection|No host of namespace acme/),
  });
  const failure = await run('fail').catch((error: Error & { details: unknown }) => error);
  expect(failure).toMatchObject({ message: expect.stringContaining('rejected [redacted] and [redacted]') });

  await gateway.call(revokeConnection, { params: { name: CONNECTION } });
  await expect(run('connection')).rejects.toMatchObject({ message: expect.stringContaining('was revoked') });
  await gateway.call(revokeSecret, { params: { name: 'API_KEY' } });
  await expect(run('secret')).rejects.toMatchObject({
    message: expect.stringContaining('has no secret API_KEY'),
  });
  const audit = await gateway.call(listAudit, { query: { limit: 100 } as never });
  return { values, answers: [failure, (failure as Error).message, audit] };
}

/** Searches logs, files and answers for each value in all encodings. */
async function expectNoLeak(
  parts: Awaited<ReturnType<typeof start>>,
  { values, answers }: Awaited<ReturnType<typeof useAll>>,
  more: string[] = [],
): Promise<void> {
  const { gateway, rest } = parts;
  const logs = JSON.stringify([gateway.logs.lines, rest.logs.lines]);
  // The handlers did log.
  expect(logs).toContain('logged [redacted]');
  const texts = [logs, JSON.stringify(answers), ...(await textsIn(gateway.dataDir)), ...more];
  const leaks = values.flatMap((value, n) =>
    leakForms(value)
      .filter((form) => texts.some((text) => text.includes(form)))
      .map((form) => `value ${n} as ${form.slice(0, 20)}`),
  );
  expect(leaks).toEqual([]);
}

test('in a process of the platform', { timeout: 90_000 }, async () => {
  const parts = await start({});
  await expectNoLeak(parts, await useAll(parts));
});

test('on a host, and its agent records nothing', { timeout: 90_000 }, async () => {
  const parts = await start({ plugins: { keeper: { backend: 'host' } } });
  const { logs, home } = await startTestAgent(parts.gateway);
  const used = await useAll(parts);
  await expectNoLeak(parts, used, [JSON.stringify(logs.lines), ...(await textsIn(home))]);
});

describe.skipIf(networkMissing !== undefined)('over a network', () => {
  test('on a host that nothing can connect to, in the agent program', { timeout: 120_000 }, async () => {
    const elsewhere = createElsewhere();
    const parts = await start({ plugins: { keeper: { backend: 'host' } } }, elsewhere.address);
    const host = await registerTestHost(parts.gateway, ADMIN_TOKEN);
    const home = await tempDir();
    const printed: string[] = [];
    const agent = await spawnAgent({ url: parts.far }, host, elsewhere.within, {
      home,
      onOutput: (text) => void printed.push(text),
    });
    const used = await useAll(parts);
    // At its end the program prints all lines that it still has.
    agent.kill('SIGTERM');
    await once(agent, 'close');
    expect(printed.join('')).toContain('written [redacted]');
    await expectNoLeak(parts, used, [printed.join(''), ...(await textsIn(home))]);
  });
});

describe.skipIf(engineMissing !== undefined)('in a container', () => {
  let engine: TestEngine;
  useEngine('podman', (started) => {
    engine = started;
  });

  test('without a network of its own', { timeout: 240_000 }, async () => {
    const container = { socket: engine.socket, requireLimits: false };
    const parts = await start({ container, plugins: { keeper: { backend: 'container' } } });
    await expectNoLeak(parts, await useAll(parts));
  });
});
