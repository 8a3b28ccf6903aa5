import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { manualClock, systemClock } from '../../../src/kit/time/clock.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { connectRaw, refusedWith, registerTestHost } from '../../support/host-agent.ts';
import { signJwt } from './support/start-gateway.ts';
import { type Connection, startProcesses } from './support/start-processes.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/hosts', import.meta.url));
const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

const dispatch = (connection: Connection, executionId: string, extra: object = {}) =>
  connection.send('POST', '/internal/dispatch', {
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({
      executionId,
      plugin: { id: '@acme/tools' },
      handler: 'handlers.js#echo',
      input: 1,
      ...extra,
    }),
  });

test('an agent connected to either process is one host to both', { timeout: 90_000 }, async () => {
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

test('an execution id runs once at a time across processes; streams pass through all of them', {
  timeout: 90_000,
}, async () => {
  const gateway = await startProcesses({ projectDir: PROJECT, config: ON_HOSTS });
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const agent = connectRaw(gateway, await host.token(), host, await gateway.socketTo(gateway.primaryPid()));
  await agent.hello();

  for (const [at, [first, second]] of [
    [primary, sibling],
    [sibling, primary],
  ].entries()) {
    const executionId = `once-${at}`;
    const answer = dispatch(first!, executionId);
    await agent.next('execute');
    const refused = await dispatch(second!, executionId);
    expect([refused.status, refused.body.error.code]).toEqual([409, 'CONFLICT']);
    agent.send({ type: 'result', executionId, result: { exitCode: 0, result: at } });
    expect((await answer).body.result.result).toBe(at);
  }
  expect(agent.frames.filter(({ type }) => type === 'execute')).toHaveLength(2);

  // A process that died holds nothing any more once it is restarted.
  const [siblingPid = 0] = gateway.siblingPids();
  dispatch(sibling, 'orphan').catch(() => {});
  await agent.next('execute');
  process.kill(siblingPid, 'SIGKILL');
  await agent.next('cancel');
  await expect.poll(() => gateway.siblingPids().filter((pid) => pid !== siblingPid)).toHaveLength(1);
  const orphan = await dispatch(primary, 'orphan');
  // The host was given it, and nobody knows how far it came: it is not run again there, but nobody holds its id.
  expect(orphan.body.error.message).toContain('was already sent to host');

  const { sibling: fresh } = await gateway.connections();
  const streamed = dispatch(fresh, 'streamed', { streams: true });
  await agent.next('execute');
  agent.send({ type: 'stream', executionId: 'streamed', contentType: 'text/plain' });
  const pieces = ['one ', 'two ', 'three'];
  for (const piece of pieces)
    agent.send({ type: 'chunk', executionId: 'streamed', data: Buffer.from(piece).toString('base64') });
  agent.send({ type: 'result', executionId: 'streamed', result: { exitCode: 0 } });
  const { headers, body } = await streamed;
  expect([headers['content-type'], body]).toEqual(['text/plain', 'one two three']);

  const cut = dispatch(fresh, 'cut', { streams: true });
  await agent.next('execute');
  agent.send({ type: 'stream', executionId: 'cut', contentType: 'text/plain' });
  await agent.next('pull');
  agent.send({ type: 'error', executionId: 'cut', error: { code: 'EXECUTION_ERROR', message: 'gone' } });
  await expect(cut).rejects.toThrow();
});
