import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { degradedServices, queryServices } from '../../src/cli/commands/status/services.ts';
import { SERVICE_NAMES, type ServiceName } from '../../src/contracts/index.ts';
import type { ServiceStatus } from '../../src/supervisor/control-protocol.ts';
import { tempDir } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';
import { PROGRAM, testPlatform } from './platform.ts';
import { runSvc } from './svc.ts';

const child = (name: ServiceName, url: string | null) => ({ name, url, pid: 1, startedAt: '1' });

async function startService(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/api/v1/health') answer(response);
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('status queries all services in parallel', async () => {
  const waiting: Array<() => void> = [];
  const services = SERVICE_NAMES.map(async (service) => {
    const degraded = service === 'rest' ? [{ reasonCode: 'FULL', message: 'no room' }] : [];
    const url = await startService((response) => {
      const reply = { status: 'ok', service, version: '1', uptimeMs: 1, degraded };
      waiting.push(() => response.end(JSON.stringify(reply)));
      if (waiting.length === SERVICE_NAMES.length) for (const answer of waiting) answer();
    });
    return child(service, url);
  });
  const children = await Promise.all(services);
  const answers = await queryServices(children);
  const told = children.map(({ name, url }) => ({ name, url, state: 'ready' }) as ServiceStatus);
  expect(degradedServices(answers, told)).toEqual([
    { service: 'rest', reasonCode: 'FULL', message: 'no room' },
  ]);
});

test('a running service that does not respond is reported; a stopped one is not', async () => {
  const broken = await startService((response) => response.destroy());
  const answers = await queryServices([
    child('state', broken),
    child('rest', broken),
    child('workflow', null),
  ]);
  const told = [
    { name: 'state', url: broken, state: 'ready' },
    { name: 'rest', url: null, state: 'restarting' },
    { name: 'workflow', url: null, state: 'starting' },
  ] as ServiceStatus[];
  expect(degradedServices(answers, told)).toEqual([
    { service: 'state', reasonCode: 'NO_ANSWER', message: expect.stringContaining(broken) },
  ]);
});

test('status reports the gateway of --url or SVC_GATEWAY_URL instead of the platform of this folder', async () => {
  const gateway = await startGateway();
  const folder = await tempDir();
  const expected = { running: true, gateway: gateway.url, status: 'ok', degraded: [], hosts: null };
  expect((await runSvc(folder, ['status', '--url', gateway.url, '--json'])).json.result).toMatchObject(
    expected,
  );
  const env = { SVC_GATEWAY_URL: gateway.url };
  expect((await runSvc(folder, ['status', '--json'], env)).json.result).toMatchObject(expected);
  const { stdout } = await runSvc(folder, ['status', '--token', 'test-admin-token'], env);
  expect(stdout).toContain(`the gateway at ${gateway.url} is ok`);
  expect(stdout).toMatch(/disk: [\d.]+ of [\d.]+ GB are free/);
  const member = await runSvc(folder, ['status', '--token', 'test-member-token', '--json'], env);
  expect(member.json.result).toMatchObject({ running: true, node: null });

  const silent = await runSvc(folder, ['status', '--url', 'http://127.0.0.1:1', '--json']);
  expect(silent.json.error).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
});

test('the local gateway counts as the platform of this folder under every host name', async () => {
  const { svc, service } = await testPlatform({}, {}, PROGRAM);
  expect((await svc('up', '-d')).json.ok).toBe(true);
  const { url } = await service('gateway');
  for (const name of [url, url.replace('127.0.0.1', 'localhost')]) {
    const { result } = (await svc('status', '--url', name)).json;
    expect(result).toMatchObject({ running: true, degraded: [], plugins: { broken: [] } });
    expect(result.services).toHaveLength(SERVICE_NAMES.length);
  }
}, 60_000);
