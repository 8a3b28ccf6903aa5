import { describe, expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { registerTestHost } from '../../support/host-agent.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { startUpstream } from './support/echo-upstream.ts';
import { type Connection, startProcesses } from './support/start-processes.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const SLOW = { timeout: 120_000 };

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'gateway processes on PostgreSQL' : POSTGRES_MISSING,
  () => {
    test(
      'a host, client or token that one member deletes is refused by the other once the call has returned',
      SLOW,
      async () => {
        const upstream = await startUpstream();
        const gateway = await startProcesses({
          peers: { rest: upstream.url },
          config: { store: { url: await migratedPostgres() } },
        });
        await gateway.allUp();
        const { primary, sibling } = await gateway.connections();
        const post = async (path: string, body: unknown) => {
          const headers = { ...ADMIN, 'content-type': 'application/json' };
          return (await primary.send('POST', path, { headers, body: JSON.stringify(body) })).body;
        };
        const logIn = async (client: { clientId: string; clientSecret: string }): Promise<string> => {
          const { clientId, clientSecret } = client;
          return (await post('/auth/token', { clientId, clientSecret })).accessToken;
        };
        const makers = {
          async token() {
            const { token, jti } = await post('/api/v1/tokens', { hostId: 'ci' });
            return { token, path: `/api/v1/tokens/${jti}` };
          },
          async client() {
            const client = await post('/api/v1/clients', { name: 'ci' });
            return { token: await logIn(client), path: `/api/v1/clients/${client.clientId}` };
          },
          async host() {
            const host = await registerTestHost(gateway, ADMIN_TOKEN);
            return { token: await host.token(), path: `/api/v1/hosts/${host.hostId}` };
          },
        };
        const pairs: Array<[Connection, Connection]> = [
          [sibling, primary],
          [primary, sibling],
        ];
        for (const make of Object.values(makers)) {
          for (const [deleting, other] of pairs) {
            const { token, path } = await make();
            const headers = { authorization: `Bearer ${token}` };
            const statusAt = async (each: Connection) =>
              (await each.send('GET', '/api/v1/x', { headers })).status;
            expect([await statusAt(other), await statusAt(deleting)]).toEqual([200, 200]);
            expect((await deleting.send('DELETE', path, { headers: ADMIN })).status).toBe(200);
            expect([await statusAt(other), await statusAt(deleting)]).toEqual([401, 401]);
          }
        }
      },
    );
  },
);
