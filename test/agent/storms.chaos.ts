import { expect, test } from 'vitest';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { createHostKeys } from '../../src/kit/security/host-proof.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { connectRaw, type RegisteredHost } from '../support/host-agent.ts';

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

test('five hundred agents that connect at once, twice, are all admitted, and their previous sessions are closed', async () => {
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
