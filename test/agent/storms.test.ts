import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { createHostKeys } from '../../src/kit/security/host-proof.ts';
import { childrenOf } from '../daemons/gateway/support/start-processes.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../support/gateway.ts';
import { createKillableGateway } from '../support/gateway-process.ts';
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
  await expect.poll(() => hostSessions.connected).toBe(0);
}, 60_000);

test('a gateway killed in the middle: the agent ends what ran for it, and finds the next one', async () => {
  const { url, start, call } = await createKillableGateway({
    plugins: [join(PROJECT, 'plugins/tools')],
    execution: { default: 'host' },
  });
  const child = await start();
  const host = await registerTestHost({ url }, ADMIN_TOKEN);
  const agent = await startTestAgent({ url } as TestGateway, { url, host });
  const before = new Set(childrenOf(process.pid));
  const lost = call('spin', { timeoutMs: 60_000 }).catch(() => 'lost');
  // The agent lives in this process; its runner is a child of it, and busier than by its start alone.
  const runner = (): number | undefined => childrenOf(process.pid).find((pid) => !before.has(pid));
  await expect.poll(() => cpuTicks(runner())).toBeGreaterThan(100);
  child.kill('SIGKILL');
  expect(await lost).toBe('lost');
  await start();
  // The agent waits up to half a minute between two attempts.
  await expect.poll(agent.welcomes, { timeout: 60_000 }).toBe(2);
  const reply = await call('echo', { input: 'again' });
  expect(await reply.json()).toMatchObject({ result: { result: 'again' } });
  expect(agent.logs.lines).toContainEqual(
    expect.objectContaining({ message: expect.stringMatching(/process was ended|was killed|ended because/) }),
  );
});

/** Hundredths of a second of processor time. */
function cpuTicks(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]);
}
