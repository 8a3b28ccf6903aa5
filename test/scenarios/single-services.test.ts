import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';
import type { AnyJson } from '../support/any-json.ts';
import { tempDir } from '../support/daemon.ts';
import { Machines } from '../support/machines.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

const POLL = { timeout: 60_000, interval: 100 };

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'services in processes of their own' : POSTGRES_MISSING,
  { timeout: 240_000 },
  () => {
    test('find each other through the store, in any order of their starts', async () => {
      const machines = await Machines.create();
      const services = await machines.startAll();
      const keep = () => machines.call('/api/v1/plugins/desk/notes/a', { method: 'PUT', body: { n: 1 } });
      await expect.poll(keep, POLL).toMatchObject({ status: 200, body: { kept: 'a' } });
      expect(await machines.call('/api/v1/plugins/desk/notes/a')).toMatchObject({ body: { n: 1 } });
      expect(await machines.call('/api/v1/marketplace/plugins')).toMatchObject({
        body: { items: [{ id: 'desk', status: 'loaded' }] },
      });
      const runs = () => machines.call('/api/v1/workflows/runs');
      await expect.poll(runs, POLL).toMatchObject({ status: 200 });
      const start = { method: 'POST', body: { workflowId: 'stamp-twice' } };
      const run = await machines.call('/api/v1/workflows/runs', start);
      expect(run.status).toBe(202);
      const path = `/api/v1/workflows/runs/${run.body.run.id}`;
      await expect.poll(() => machines.call(path), POLL).toMatchObject({ body: { status: 'succeeded' } });

      for (const name of SERVICE_NAMES) {
        const logs = () => machines.call(`/api/v1/logs?service=${name}&search=listens`);
        await expect.poll(logs, POLL).toMatchObject({ body: { items: [{ serviceId: name }] } });
        const probes = ['/health', '/ready'].map((path) => (name === 'rest' ? `/api/v1${path}` : path));
        for (const path of probes) expect((await fetch(`${services[name].url}${path}`)).status).toBe(200);
        expect(services[name].stderr).toBe('');
      }
    });

    test('a stop under load fails no request and exits with 0, because the address is withdrawn first', async () => {
      const machines = await Machines.create();
      await Promise.all(
        (['state', 'marketplace', 'workflow', 'gateway'] as const).map((name) => machines.start(name)),
      );
      const [one] = await Promise.all([machines.startReachable('rest'), machines.startReachable('rest')]);
      const find = () => machines.call('/api/v1/plugins/desk/notes/a');
      await expect.poll(find, POLL).toMatchObject({ status: 200 });

      const statuses: number[] = [];
      let isOver = false;
      const client = async (): Promise<void> => {
        while (!isOver) statuses.push((await find()).status);
      };
      const load = Promise.all([client(), client()]);
      const served = () => one.records.filter(({ message }) => String(message).includes('/notes/')).length;
      await expect.poll(served, POLL).toBeGreaterThan(0);
      one.child.kill('SIGTERM');
      expect(await one.exited).toEqual({ code: 0, signal: null });
      const before = statuses.length;
      await expect.poll(() => statuses.length, POLL).toBeGreaterThan(before + 20);
      isOver = true;
      await load;
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test('calls avoid a killed process before its lease has expired', async () => {
      const machines = await Machines.create();
      await Promise.all(
        (['state', 'marketplace', 'workflow', 'gateway'] as const).map((name) => machines.start(name)),
      );
      const [one] = await Promise.all([machines.startReachable('rest'), machines.startReachable('rest')]);
      const find = async () => (await machines.call('/api/v1/plugins/desk/notes/a')).status;
      await expect.poll(find, POLL).toBe(200);
      one.child.kill('SIGKILL');
      await one.exited;
      await machines.setLeases('rest', Date.now() + 3_600_000);
      const fourTimes = async () => [await find(), await find(), await find(), await find()];
      await expect.poll(fourTimes, POLL).toEqual([200, 200, 200, 200]);
    });

    test('known addresses stay in use while all leases have expired, as after an outage of PostgreSQL', async () => {
      const machines = await Machines.create();
      await machines.startAll();
      const find = async () => (await machines.call('/api/v1/plugins/desk/notes/a')).status;
      await expect.poll(find, POLL).toBe(200);
      const statuses: number[] = [];
      await machines.setLeases('rest', 1);
      do statuses.push(await find());
      while (!(await machines.hasLease('rest')));
      expect(new Set(statuses)).toEqual(new Set([200]));
    });

    test('a node with some services uses those of other nodes, and svc shows both', async () => {
      const machines = await Machines.create();
      const home = join(await tempDir(), 'data');
      const svc = (...args: string[]) => machines.svc(home, ...args);
      await Promise.all((['state', 'marketplace', 'workflow'] as const).map((name) => machines.start(name)));
      const up = await svc('up', '-d', '--services', 'gateway,rest');
      onTestFinished(async () => void (await svc('down')));
      expect([up.code, up.stderr]).toEqual([0, expect.stringContaining('only rest, gateway')]);
      const keep = () => machines.call('/api/v1/plugins/desk/notes/a', { method: 'PUT', body: { n: 1 } });
      await expect.poll(keep, POLL).toMatchObject({ status: 200, body: { kept: 'a' } });

      const { services, members } = (await svc('status')).json.result;
      expect(services.map(({ name }: AnyJson) => name)).toEqual(['rest', 'gateway']);
      const kinds = new Set(members.map(({ kind }: AnyJson) => kind));
      expect(kinds).toEqual(new Set(SERVICE_NAMES));

      const again = machines.attempt('rest', home);
      expect(await again.exited).toEqual({ code: 1, signal: null });
      expect(again.stderr).toMatch(/rest already runs on .* by svc up \(pid \d+\)\./);
      expect((await svc('restart', 'rest')).code).toBe(0);
      await expect.poll(keep, POLL).toMatchObject({ status: 200 });
    });

    test('a service is refused while the same service of its node runs, and others are not', async () => {
      const machines = await Machines.create();
      const home = join(await tempDir(), 'data');
      const state = await machines.start('state', [], home);
      const again = machines.attempt('state', home);
      expect(await again.exited).toEqual({ code: 1, signal: null });
      expect(again.stderr).toContain(
        `state already runs on ${home} by svc start state (pid ${state.child.pid}).`,
      );
      expect(again.stderr).toContain('set SVC_HOME=<folder>');
      await machines.start('marketplace', [], home);
    });

    test('a lost lease ends the process with 1, so that its service manager starts it again', async () => {
      const machines = await Machines.create();
      const workflow = await machines.start('workflow');
      await machines.endMembers();
      expect(await workflow.exited).toEqual({ code: 1, signal: null });
    });
  },
);
