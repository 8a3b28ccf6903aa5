import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { installPlugin } from '../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../src/http/index.ts';
import { minutes } from '../../src/kit/time/duration.ts';
import { greeter, pluginFolder } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { Machines, type StartedService } from '../support/machines.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { CLUSTER_SECRETS } from '../support/single-service.ts';

const POLL = { timeout: 60_000, interval: 100 };
const ID = '@acme/greeter';
const PATH = `/api/v1/marketplace/plugins/${encodeURIComponent(ID)}`;

const change = async (version: string) => ({
  method: 'POST',
  body: { source: await pluginFolder(greeter(version)) },
});

const newHome = async () => join(await tempDir(), 'data');

/** Runs the command of a plugin of `greeter` on one process. Returns its result, or the status of a failure. */
async function greet({ url }: StartedService, id = ID): Promise<unknown> {
  const command = `greet-${id.replace(/\W/g, '')}`;
  const caller = { hostId: 'operator', namespaceId: 'default' };
  const response = await fetch(`${url}/api/v1/commands/${encodeURIComponent(id)}/${command}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...serviceHeaders(CLUSTER_SECRETS.GATEWAY_INTERNAL_SECRET, caller),
    },
    body: '{}',
  });
  const body = (await response.json()) as { result?: unknown };
  return body.result ?? response.status;
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'plugins of processes without a marketplace on their machine' : POSTGRES_MISSING,
  { timeout: 240_000 },
  () => {
    test('every process has a change when the call returns, also several gateway processes of a node', async () => {
      const machines = await Machines.create({ processes: 2 });
      const home = await newHome();
      const [rest] = await Promise.all([
        machines.startReachable('rest'),
        machines.start('marketplace'),
        machines.start('workflow'),
      ]);
      expect((await machines.svc(home, 'up', '-d', '--services', 'gateway,rest')).code).toBe(0);
      onTestFinished(async () => void (await machines.svc(home, 'down')));
      const ready = async () => (await machines.call('/api/v1/marketplace/plugins')).status;
      await expect.poll(ready, POLL).toBe(200);
      const all = (revision: number) => ({
        gateway: [revision, revision],
        marketplace: [revision],
        rest: [revision, revision],
        workflow: [revision],
      });

      const installed = await machines.call('/api/v1/marketplace/plugins', await change('1.0.0'));
      expect(installed).toMatchObject({ status: 201 });
      expect(await machines.pluginRevisions()).toEqual(all(1));
      expect(await greet(rest)).toBe('hello from 1.0.0');
      expect((await machines.call(`${PATH}/update`, await change('2.0.0'))).status).toBe(200);
      expect(await machines.pluginRevisions()).toEqual(all(2));
      expect(await greet(rest)).toBe('hello from 2.0.0');
      expect(await machines.call('/api/v1/marketplace/reload', { method: 'POST', body: {} })).toMatchObject({
        body: { revision: 3 },
      });
      expect(await machines.pluginRevisions()).toEqual(all(3));
      expect((await machines.call(PATH, { method: 'DELETE' })).status).toBe(200);
      expect(await machines.pluginRevisions()).toEqual(all(4));
      expect(await greet(rest)).toBe(404);
      expect(await readdir(join(home, 'plugins'))).toHaveLength(2);
    });

    test('a process that was down catches up at its start, also with a damaged package in its cache', async () => {
      const machines = await Machines.create();
      const home = await newHome();
      const [rest] = await Promise.all([
        machines.start('rest', [], home),
        machines.start('marketplace'),
        machines.start('gateway'),
      ]);
      const other = await machines.startReachable('rest');
      const install = async () =>
        (await machines.call('/api/v1/marketplace/plugins', await change('1.0.0'))).status;
      await expect.poll(install, POLL).toBe(201);
      rest.child.kill('SIGTERM');
      await rest.exited;
      expect((await machines.call(`${PATH}/update`, await change('2.0.0'))).status).toBe(200);
      expect(await greet(other)).toBe('hello from 2.0.0');

      const again = await machines.start('rest', [], home);
      expect(await greet(again)).toBe('hello from 2.0.0');
      again.child.kill('SIGKILL');
      await again.exited;
      const folders = await readdir(join(home, 'plugins'));
      for (const folder of folders)
        await writeFile(join(home, 'plugins', folder, 'h.js'), "export const greet = () => 'changed'");
      const repaired = await machines.start('rest', [], home);
      expect(await greet(repaired)).toBe('hello from 2.0.0');
      expect((await fetch(`${repaired.url}/api/v1/ready`)).status).toBe(200);
    });

    test('installations through two marketplaces at the same time reach a process without one', async () => {
      const machines = await Machines.create();
      const [rest, ...marketplaces] = await Promise.all([
        machines.start('rest'),
        machines.startReachable('marketplace'),
        machines.startReachable('marketplace'),
      ]);
      const ids = ['one', 'two', 'three', 'four'];
      const caller = { hostId: 'operator', namespaceId: 'default' };
      const headers = () => serviceHeaders(CLUSTER_SECRETS.GATEWAY_INTERNAL_SECRET, caller);
      await Promise.all(
        ids.map(async (id, index) => {
          const { url } = marketplaces[index % 2]!;
          const client = createClient({ url, peer: 'marketplace', headers, timeoutMs: minutes(2) });
          const source = await pluginFolder(greeter('1.0.0', { id }));
          await client.call(installPlugin, { body: { source } });
          expect(await greet(rest, id)).toBe('hello from 1.0.0');
        }),
      );
      expect(await machines.pluginRevisions()).toEqual({ marketplace: [4, 4], rest: [4] });
    });
  },
);
