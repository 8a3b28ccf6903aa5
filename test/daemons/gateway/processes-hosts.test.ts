import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { manualClock, systemClock } from '../../../src/kit/clock.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { connectRaw, refusedWith, registerTestHost } from '../../support/host-agent.ts';
import { signJwt } from './support/start-gateway.ts';
import { type Connection, startProcesses } from './support/start-processes.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/hosts', import.meta.url));
const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

const dispatch = (connection: Connection, executionId: string) =>
  connection.send('POST', '/internal/dispatch', {
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({
      executionId,
      plugin: { id: '@acme/tools' },
      handler: 'handlers.js#echo',
      input: 1,
    }),
  });

test('an agent that reached either process is one host to both', { timeout: 90_000 }, async () => {
  const gateway = await startProcesses({ projectDir: PROJECT, config: ON_HOSTS });
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const [siblingPid = 0] = gateway.siblingPids();
  expect((await dispatch(sibling, 'none')).body.error.code).toBe('HOST_UNAVAILABLE');

  for (const pid of [siblingPid, gateway.primaryPid()]) {
    const agent = connectRaw(gateway, await host.token(), host, await gateway.socketTo(pid));
    expect(await agent.hello()).toMatchObject({ hostId: host.hostId });
    for (const [at, connection] of [primary, sibling].entries()) {
      const executionId = `e-${pid}-${at}`;
      const answer = dispatch(connection, executionId);
      expect(await agent.next('execute')).toMatchObject({ executionId });
      agent.send({ type: 'result', executionId, result: { exitCode: 0, result: { from: pid } } });
      expect((await answer).body).toMatchObject({ executionId, result: { result: { from: pid } } });
    }
    const { sibling: leaving } = await gateway.connections();
    dispatch(leaving, `left-${pid}`).catch(() => {});
    expect(await agent.next('execute')).toMatchObject({ executionId: `left-${pid}` });
    leaving.close();
    expect(await agent.next('cancel')).toMatchObject({ executionId: `left-${pid}` });
  }

  const claims = { hostId: 'container:e1', namespaceId: 'default', typ: 'container', executionId: 'e1' };
  const container = await signJwt(claims, { clock: manualClock(systemClock.now()) });
  const refused = connectRaw(gateway, container, undefined, await gateway.socketTo(siblingPid));
  expect(await refusedWith(refused)).toBe(403);

  // Revoked through one process, cut at the other.
  const last = connectRaw(gateway, await host.token(), host, await gateway.socketTo(siblingPid));
  await last.hello();
  const revoked = await primary.send('DELETE', `/api/v1/hosts/${host.hostId}`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(revoked.status).toBe(200);
  expect((await last.closed).code).toBe(4403);
});
