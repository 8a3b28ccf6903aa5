import { expect, test, vi } from 'vitest';
import { RENEW_MS } from '../../../src/daemons/membership/membership.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { isAlive } from '../../support/is-alive.ts';
import { startUpstream } from './support/echo-upstream.ts';
import { sigtermDuring } from './support/sigterm-during.ts';
import { type Connection, startProcesses } from './support/start-processes.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const JSON_TYPE = { 'content-type': 'application/json' };
const SLOW = { timeout: 60_000 };
const POLL = { timeout: 20_000, interval: 50 };

const post = (connection: Connection, path: string, body: unknown) =>
  connection.send('POST', path, { headers: { ...ADMIN, ...JSON_TYPE }, body: JSON.stringify(body) });

/** Values of a metric's series, by their labels. */
function series(text: string, name: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

test(
  'two processes answer on one port, and a revocation confirmed by one applies at the other',
  SLOW,
  async () => {
    const upstream = await startUpstream();
    const gateway = await startProcesses({ peers: { rest: upstream.url } });
    await gateway.allUp();
    const { primary, sibling } = await gateway.connections();
    expect([primary, sibling].every(Boolean)).toBe(true);

    for (const [revoking, other] of [
      [sibling, primary],
      [primary, sibling],
    ] as const) {
      const minted = await post(revoking, '/api/v1/tokens', {
        hostId: 'h',
        namespaceId: 'default',
        ttlSeconds: 600,
      });
      expect(minted.status).toBe(201);
      const bearer = { authorization: `Bearer ${minted.body.token}` };
      // Both remember the token now.
      for (const each of [other, revoking]) {
        expect((await each.send('GET', '/api/v1/x', { headers: bearer })).status).toBe(200);
      }
      const revoked = await revoking.send('DELETE', `/api/v1/tokens/${minted.body.jti}`, { headers: ADMIN });
      expect(revoked.status).toBe(200);
      for (const each of [other, revoking]) {
        expect((await each.send('GET', '/api/v1/x', { headers: bearer })).status).toBe(401);
      }
    }
  },
);

test(
  'a client that one process revokes is refused by both at once, even just after a process died',
  SLOW,
  async () => {
    const upstream = await startUpstream();
    const gateway = await startProcesses({ peers: { rest: upstream.url }, gateway: { processes: 3 } });
    await gateway.allUp();
    const { primary, sibling } = await gateway.connections();
    const logIn = async () => {
      const { body } = await post(primary, '/api/v1/clients', { name: 'ci' });
      const { clientId, clientSecret } = body;
      const login = await post(primary, '/auth/token', { clientId, clientSecret });
      return { clientId: clientId as string, bearer: { authorization: `Bearer ${login.body.accessToken}` } };
    };
    const statuses = (headers: Record<string, string>) =>
      Promise.all(
        [primary, sibling].map(async (each) => (await each.send('GET', '/api/v1/x', { headers })).status),
      );
    const revokeAtSibling = async (clientId: string) => {
      const { status } = await sibling.send('DELETE', `/api/v1/clients/${clientId}`, { headers: ADMIN });
      expect(status).toBe(200);
    };
    const first = await logIn();
    expect(await statuses(first.bearer)).toEqual([200, 200]);
    await revokeAtSibling(first.clientId);
    expect(await statuses(first.bearer)).toEqual([401, 401]);

    const second = await logIn();
    expect(await statuses(second.bearer)).toEqual([200, 200]);
    const [, other = 0] = gateway.siblingPids();
    const alive = await gateway.socketTo(other);
    const ended = new Promise((resolve) => alive.once('close', resolve));
    process.kill(other, 'SIGKILL');
    await ended;
    await revokeAtSibling(second.clientId);
    expect(await statuses(second.bearer)).toEqual([401, 401]);
  },
);

test(
  'limits apply to both together: exact for small and large limits, also after borrowing ahead',
  SLOW,
  async () => {
    const upstream = await startUpstream();
    const gateway = await startProcesses({
      peers: { rest: upstream.url },
      config: { tenants: { busy: { requestsPerMinute: 500 } } },
      gateway: {
        staticTokens: {
          [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' },
          busy: { hostId: 'b', namespaceId: 'busy' },
        },
      },
    });
    await gateway.allUp();
    const { primary, sibling } = await gateway.connections();

    // 10 a minute, over both: which of them answers must not matter.
    const pause = { pluginId: '@acme/orders', event: 'plain' };
    const statuses: number[] = [];
    for (let i = 0; i < 14; i++) {
      const answer = await post(i % 2 === 0 ? sibling : primary, '/api/v1/webhooks/pause', pause);
      statuses.push(answer.status);
      if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
    expect(statuses).toEqual([...Array(10).fill(200), ...Array(4).fill(429)]);

    // The sibling borrows ahead at its first call and then uses little of it: the primary must get the rest.
    const busy = { headers: { authorization: 'Bearer busy' } };
    const counts = new Map<number, number>();
    const call = async (connection: Connection, times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        const { status } = await connection.send('GET', '/api/v1/x', busy);
        counts.set(status, (counts.get(status) ?? 0) + 1);
      }
    };
    await call(sibling, 3);
    await call(primary, 520);
    await call(sibling, 5);
    expect(Object.fromEntries(counts)).toEqual({ 200: 500, 429: 28 });
  },
);

test('wrong passwords are counted over both', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const guess = { clientId: 'client_nobody', clientSecret: 'wrong' };
  const statuses: number[] = [];
  for (let i = 0; i < 13; i++) {
    statuses.push((await post(i % 2 === 0 ? primary : sibling, '/auth/token', guess)).status);
  }
  expect(statuses).toEqual([...Array(10).fill(401), 429, 429, 429]);
});

test('each process reports the metrics of both, in series of their own', SLOW, async () => {
  const upstream = await startUpstream();
  const gateway = await startProcesses({ peers: { rest: upstream.url } });
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  for (let i = 0; i < 5; i++) await primary.send('GET', '/api/v1/x', { headers: ADMIN });
  for (let i = 0; i < 7; i++) await sibling.send('GET', '/api/v1/x', { headers: ADMIN });

  const read = async (connection: Connection) => (await connection.send('GET', '/metrics')).body as string;
  const label = (number: number) => `service="gateway",upstream="rest",status="200",process="${number}"`;
  const counted = (number: number) => `svc_gateway_upstream_requests_total{${label(number)}}`;
  for (const connection of [primary, sibling]) {
    const text = await read(connection);
    expect(series(text, 'svc_gateway_upstream_requests_total')).toEqual({ [counted(1)]: 5, [counted(2)]: 7 });
    expect(text.match(/^# TYPE svc_http_requests_total counter$/gm)).toHaveLength(1);
    expect(text).toContain('# TYPE svc_http_request_duration_ms histogram');
    const memory = Object.values(series(text, 'svc_process_memory_rss_bytes'));
    expect(memory).toHaveLength(2);
    for (const rss of memory) expect(rss).toBeGreaterThan(40 * 1024 * 1024);
  }

  const [pid] = gateway.siblingPids();
  process.kill(pid!, 'SIGKILL');
  await expect.poll(() => gateway.siblingPids().filter((next) => next !== pid), POLL).toHaveLength(1);
  // The series of the process that did not die goes on; that of the new process starts at 0.
  expect(series(await read(primary), 'svc_gateway_upstream_requests_total')).toEqual({ [counted(1)]: 5 });
});

test('the metrics and the reload of one process are closed to clients', SLOW, async () => {
  const gateway = await startProcesses();
  for (const [method, path] of [
    ['GET', '/internal/processes/metrics'],
    ['POST', '/internal/processes/reread'],
  ] as const) {
    const response = await fetch(`${gateway.url}${path}`, { method, headers: ADMIN });
    expect(response.status).toBe(403);
  }
});

test('a gateway on a shared port refuses a port in use, shared or not', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const second = startProcesses({ listen: { host: '127.0.0.1', port: gateway.port } });
  await expect(second).rejects.toMatchObject({ code: 'CONFLICT' });
});

test(
  'a process in a crash loop is restarted with a backoff and shown as failed, while the other serves',
  SLOW,
  async () => {
    const gateway = await startProcesses();
    const first = gateway.primaryPid();
    const killed = new Set<number>();
    while (killed.size < 5) {
      // One look: between two of them it may be gone.
      const pid = await vi.waitUntil(() => gateway.siblingPids().find((one) => !killed.has(one)), POLL);
      process.kill(pid, 'SIGKILL');
      killed.add(pid);
    }
    const further = () => gateway.service.status().furtherProcesses;
    await expect.poll(() => further()?.map(({ state }) => state), POLL).toEqual(['failed']);
    expect(further()).toEqual([
      expect.objectContaining({
        number: 2,
        restarts: 4,
        lastExit: expect.objectContaining({ signal: 'SIGKILL' }),
      }),
    ]);
    const ofType = (type: string) => gateway.events.filter((event) => event.type === type);
    expect(ofType('crashed')).toHaveLength(4);
    expect(ofType('crash-loop')).toEqual([
      expect.objectContaining({ service: 'gateway', process: 2, crashes: 5 }),
    ]);
    expect(gateway.primaryPid()).toBe(first);
    expect((await fetch(`${gateway.url}/health`)).status).toBe(200);
  },
);

test('processes that are killed together restart together, and neither ends the other', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const killed = [gateway.primaryPid(), ...gateway.siblingPids()];
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  const states = () => {
    const { state, furtherProcesses = [] } = gateway.service.status();
    return [state, ...furtherProcesses.map((further) => further.state)];
  };
  await expect.poll(() => gateway.siblingPids().filter((pid) => !killed.includes(pid)), POLL).toHaveLength(1);
  await expect.poll(states, POLL).toEqual(['ready', 'ready']);
  const { primary, sibling } = await gateway.connections();
  const pids = [gateway.primaryPid(), ...gateway.siblingPids()];
  // A member that was ended would stop at its next renewal.
  await new Promise((resolve) => setTimeout(resolve, RENEW_MS + 1000));
  expect([gateway.primaryPid(), ...gateway.siblingPids()]).toEqual(pids);
  for (const each of [primary, sibling]) expect((await each.send('GET', '/ready')).status).toBe(200);
});

test('SIGTERM during requests: both processes answer all of them and end', SLOW, async () => {
  const { cut, pids } = await sigtermDuring({ processes: 2, requests: 100, delayMs: () => 100 });
  expect(pids).toHaveLength(2);
  expect(cut).toEqual([]);
  await expect.poll(() => pids.filter(isAlive), POLL).toEqual([]);
});
