import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listSchedules, listWorkflows, ManifestV3, PluginSchedule } from '../../../src/contracts/index.ts';
import { Definitions } from '../../../src/daemons/workflow/domain/definition/definitions.ts';
import { setStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { manifestFaults } from '../../../src/daemons/workflow/manifest-faults.ts';
import { tempDir } from '../../support/daemon.ts';
import { startWorkflow } from './support/workflow.ts';

const JOBS = { main: { steps: [{ uses: 'set' }] } };
/** Different times, all of which come. */
const plans = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ cron: `${n % 60} ${Math.floor(n / 60)} * * *` }));
const workflowsOf = (...counts: number[]) =>
  counts.map((count, n) => ({ id: `w${n}`, on: { schedule: plans(count) }, jobs: JOBS }));

async function withPlugin(workflows: object[], schedules: object[]) {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'plugins/timer');
  await mkdir(folder, { recursive: true });
  const manifest = { schema: 'svc.plugin/3', id: 'timer', version: '1.0.0', workflows, schedules };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), '{"name": "timer", "version": "1.0.0"}');
  const it = await startWorkflow({ projectDir });
  return { it, manifest: ManifestV3.parse(manifest) };
}

test('a schedule that never matches is omitted with its fault, and refused in a submitted definition', async () => {
  const never = { workflow: 'w0', cron: '0 0 30 2 *' };
  const { it } = await withPlugin(workflowsOf(1), [{ workflow: 'w0', cron: '0 4 * * *' }, never]);
  const { items } = await it.call(listSchedules);
  expect(items.map(({ cron }) => cron).sort()).toEqual(['0 0 * * *', '0 4 * * *']);
  expect((await it.call(listWorkflows)).faults).toMatchObject([
    { source: 'timer', path: 'schedules[1].cron', message: expect.stringContaining('never matches') },
  ]);
  const definition = { id: 'sent', on: { schedule: [{ cron: '0 0 30 2 *' }] }, jobs: JOBS };
  await expect(it.start(definition)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('on.schedule[0].cron'),
  });
});

test('a run continues with a stored definition whose schedule never matches', async () => {
  const definition = { id: 'old', on: { schedule: [{ cron: '0 0 30 2 *' }] }, jobs: JOBS };
  const definitions = new Definitions({
    kindOf: () => setStep,
    find: async (hash) => ({ hash, workflowId: 'old', body: JSON.stringify(definition) }),
  });
  expect((await definitions.byHash('h')).definition.id).toBe('old');
  expect(() => definitions.compile(definition)).toThrow('never matches');
});

test('a plugin has two hundred schedules at most, those of its workflows included', async () => {
  const own = plans(100).map((plan) => ({ ...plan, workflow: 'w0' }));
  const { it, manifest } = await withPlugin(workflowsOf(50, 50, 50, 10, 50), own);
  expect((await it.call(listSchedules)).items).toHaveLength(200);
  const { items, faults } = await it.call(listWorkflows);
  expect(items.map(({ id }) => id).sort()).toEqual(['w0', 'w1', 'w2', 'w3']);
  const paths = ['workflows[4].on.schedule', 'schedules[40]'];
  expect(faults.map(({ path }) => path)).toEqual(paths);
  expect(faults[0]!.message).toContain('a plugin may have 200 schedules');
  expect(manifestFaults(manifest).map(({ path }) => path)).toEqual(paths);
});

test('the service answers while schedules are planned', async () => {
  const rare = Array.from({ length: 190 }, (_, n) => ({
    workflow: 'w0',
    cron: `${n % 60} ${n % 24} 29 2 +1`,
  }));
  const { it } = await withPlugin(workflowsOf(1), rare);
  let isOver = false;
  let turns = 0;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  const found = (await it.call(listSchedules)).items.map(({ id, workflowId: workflow, cron }) => ({
    id,
    plan: PluginSchedule.parse({ workflow, cron }),
  }));
  setImmediate(count);
  const loaded = new Map([['timer', true]]);
  await it.services.schedules.sync({ found, loaded });
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(rare.length);
});

test('which plugin a workflow was of is kept for the latest ten thousand, and not for loaded plugins', () => {
  const loaded = new Set(['here']);
  const definitions = new Definitions({
    kindOf: () => setStep,
    find: async () => undefined,
    findPlugin: (id) => (loaded.has(id) ? 'anything' : undefined),
  });
  const ofPlugin = (pluginId: string, count: number, from = 0) =>
    Array.from({ length: count }, (_, n) => {
      const definition = { id: `${pluginId}-${from + n}`, jobs: JOBS };
      return { source: pluginId, pluginId, definition };
    });
  const messageOf = (id: string): string => {
    try {
      definitions.require(id);
    } catch (error) {
      return String(error);
    }
    return '';
  };
  const isUnavailable = (id: string): boolean => messageOf(id).includes('which is not loaded');
  for (let from = 0; from < 10_500; from += 500) definitions.register(ofPlugin('gone', 500, from));
  definitions.register(ofPlugin('here', 1));
  expect([isUnavailable('gone-0'), isUnavailable('gone-499')]).toEqual([false, false]);
  expect([isUnavailable('gone-500'), isUnavailable('gone-10499')]).toEqual([true, true]);
  definitions.register([]);
  loaded.delete('here');
  expect(messageOf('here-0')).toContain('There is no workflow "here-0"');
});
