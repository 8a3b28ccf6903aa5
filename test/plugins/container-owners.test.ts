import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { containerOwner } from '../../src/plugins/backends/container/index.ts';
import { tempDir } from '../support/daemon.ts';
import { startContainerBackend } from './container-backend.ts';

/** An engine that lists containers by label and notes which are removed. */
async function startEngine(containers: Array<{ Id: string; Labels: Record<string, string> }>) {
  const removed: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://engine');
    if (request.method === 'DELETE') {
      removed.push(pathname.split('/').at(-1)!);
      response.writeHead(204).end();
      return;
    }
    const { label } = JSON.parse(searchParams.get('filters')!) as { label: string[] };
    const found = containers.filter(({ Labels }) =>
      label.every((one) =>
        Object.entries(Labels).some(([name, value]) => one === name || one === `${name}=${value}`),
      ),
    );
    response.setHeader('content-type', 'application/json').end(JSON.stringify(found));
  });
  const socket = join(await tempDir(), 'engine.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(() => void server.close());
  return { socket, removed };
}

test('of two nodes with one path of the data folder on one engine, each removes only its own containers', async () => {
  const dataDir = '/app/.svc';
  const labelled = (instance: string) => ({
    Id: `of-${instance}`,
    Labels: { 'svc.owner': containerOwner({ dataDir, instance }), 'svc.boot': 'earlier' },
  });
  const engine = await startEngine([labelled('node-a'), labelled('node-b')]);
  const a = await startContainerBackend(engine, { dataDir, instance: 'node-a' });
  expect(await a.backend.removeOrphans()).toBe(1);
  expect(engine.removed).toEqual(['of-node-a']);
  const b = await startContainerBackend(engine, { dataDir, instance: 'node-b' });
  expect(await b.backend.removeOrphans()).toBe(1);
  expect(engine.removed).toEqual(['of-node-a', 'of-node-b']);
});

test('containers of processes that no longer exist are removed, and not those of another process', async () => {
  const dataDir = '/app/.svc';
  const labelled = (instance: string) => ({
    Id: `of-${instance.replace('/', '-')}`,
    Labels: { 'svc.owner': containerOwner({ dataDir, instance }), 'svc.boot': 'earlier' },
  });
  const engine = await startEngine(['node-a', 'node-a/2', 'node-a/3'].map(labelled));
  const first = await startContainerBackend(engine, {
    ...{ dataDir, instance: 'node-a', endedInstances: ['node-a/3'] },
  });
  expect(await first.backend.removeOrphans()).toBe(2);
  expect(engine.removed.toSorted()).toEqual(['of-node-a', 'of-node-a-3']);
});
