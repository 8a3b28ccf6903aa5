import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { createHostKeys } from '../../src/kit/host-proof.ts';
import { packageRoot } from '../../src/kit/paths.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../support/gateway.ts';
import { connectRaw, type RegisteredHost, registerTestHost } from '../support/host-agent.ts';
import { PROJECT, startTestAgent } from './support.ts';

/** Hosts without the hundred milliseconds of hashing that each registration takes. */
async function plantHosts(gateway: TestGateway, count: number): Promise<RegisteredHost[]> {
  const { hostStore, jwts } = gateway.services as GatewayServices;
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const keys = createHostKeys();
      const hostId = `host_storm-${String(index).padStart(4, '0')}`;
      const clientId = `client_${hostId}`;
      const createdAt = gateway.clock.now();
      const common = { clientId, hostId, namespaceId: 'default', name: hostId, createdAt, revokedAt: null };
      await hostStore.register(
        {
          ...common,
          publicKey: keys.publicKey,
          capabilities: [],
          labels: {},
          metadata: {},
          sessionId: null,
          connectedAt: null,
          lastSeenAt: null,
        },
        { ...common, secretHash: '' },
      );
      const grant = { hostId, namespaceId: 'default', typ: 'access', ttlSeconds: 3600 } as const;
      const { token } = await jwts.mint(grant);
      return { ...common, clientSecret: '', keys, token: async () => token };
    }),
  );
}

test('five hundred agents that come at once, and again, are all let in, and their former sessions leave no trace', async () => {
  const gateway = await startGateway();
  const { hostSessions } = gateway.services as GatewayServices;
  const hosts = await plantHosts(gateway, 500);
  const storm = () =>
    Promise.all(
      hosts.map(async (host) => {
        const agent = connectRaw(gateway, await host.token(), host);
        await agent.hello();
        return agent;
      }),
    );
  const first = await storm();
  expect(hostSessions.connected).toBe(500);
  const second = await storm();
  expect(hostSessions.connected).toBe(500);
  const codes = await Promise.all(first.map(({ closed }) => closed.then(({ code }) => code)));
  expect(new Set(codes)).toEqual(new Set([4409]));
  for (const { socket } of second) socket.terminate();
  await expect.poll(() => hostSessions.connected, { timeout: 5000 }).toBe(0);
}, 60_000);

test('a gateway killed in the middle: the agent ends what ran for it, and finds the next one', async () => {
  const folder = await tempDir();
  const config = { plugins: [join(PROJECT, 'plugins/tools')], execution: { default: 'host' } };
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;

  async function startGatewayProcess() {
    const file = join(packageRoot, 'bench/support/gateway-process.ts');
    const child = spawn(process.execPath, [file, folder, String(port), ADMIN_TOKEN], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
    });
    return child;
  }
  const call = (handler: string, body: object = {}) =>
    fetch(`${url}/internal/dispatch`, {
      method: 'POST',
      headers: { 'x-internal-secret': 'i'.repeat(40), 'content-type': 'application/json' },
      body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: `handlers.js#${handler}`, ...body }),
    });

  const child = await startGatewayProcess();
  const host = await registerTestHost({ url }, ADMIN_TOKEN);
  const agent = await startTestAgent({ url } as TestGateway, { url, host });
  const lost = call('spin', { timeoutMs: 60_000 }).catch(() => 'lost');
  const processGone = () =>
    agent.logs.lines.some(({ message }) => /process was ended|was killed/.test(String(message)));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  child.kill('SIGKILL');
  expect(await lost).toBe('lost');
  await startGatewayProcess();
  await expect.poll(agent.welcomes, { timeout: 20_000 }).toBe(2);
  const reply = await call('echo', { input: 'again' });
  expect(await reply.json()).toMatchObject({ result: { result: 'again' } });
  expect(processGone()).toBe(true);
}, 60_000);

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
