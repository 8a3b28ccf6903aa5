import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listRuns, listSchedules, pauseSchedule } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { startWorkflow, type TestWorkflow } from './support/workflow.ts';

const scheduled = (id: string, cron = '0 * * * *') =>
  JSON.stringify({
    ...{ id, on: { schedule: [{ id: 'hourly', cron }] } },
    jobs: { main: { steps: [{ uses: 'set' }] } },
  });

/** A release: the workflow files of a node. */
async function release(...ids: string[]) {
  const projectDir = await tempDir();
  const folder = join(projectDir, 'workflows');
  mkdirSync(folder);
  const add = (id: string) => writeFileSync(join(folder, `${id}.json`), scheduled(id));
  for (const id of ids) add(id);
  return { projectDir, add, remove: (id: string) => rmSync(join(folder, `${id}.json`)) };
}

async function oneStore() {
  const dataDir = await tempDir();
  await placeEmptyDatabase('workflow', dataDir);
  return {
    start: (instance: string, projectDir: string) =>
      startWorkflow({
        ...{ dataDir, projectDir, sharesStore: true, env: { SVC_INSTANCE: instance } },
        config: { workflows: ['workflows/*.json'] },
      }),
  };
}

const schedulesOf = async (node: TestWorkflow) =>
  (await node.call(listSchedules)).items
    .map(({ id, paused }) => `${id}${paused ? ' paused' : ''}`)
    .toSorted();

test("a node without a workflow file deletes no schedule of another node's release", async () => {
  const store = await oneStore();
  const full = await release('both', 'extra');
  const a = await store.start('a', full.projectDir);
  const b = await store.start('b', (await release('both')).projectDir);
  expect(await schedulesOf(b)).toEqual(['both:hourly', 'extra:hourly']);
  const [extra] = (await a.call(listSchedules)).items.filter(({ workflowId }) => workflowId === 'extra');
  await a.call(pauseSchedule, { params: { scheduleId: extra!.id } });

  // While its node is down it is inactive, and comes back as it was.
  await a.close();
  await b.services.schedules.sync({ found: [], loaded: new Map() });
  expect(await schedulesOf(b)).toEqual(['both:hourly']);
  const again = await store.start('a', full.projectDir);
  expect(await schedulesOf(b)).toEqual(['both:hourly', 'extra:hourly paused']);

  // A release without it deletes it when no other node has it.
  full.remove('extra');
  await again.close();
  const next = await store.start('a', full.projectDir);
  expect(await schedulesOf(next)).toEqual(['both:hourly']);
});

test('a due schedule is left to the nodes that have its workflow, and starts one run', async () => {
  const store = await oneStore();
  const a = await store.start('a', (await release('extra')).projectDir);
  const b = await store.start('b', (await release()).projectDir);
  const { schedules, clock } = a.services;
  const now = clock.now() + 3_600_000;
  await b.services.schedules.serve(now);
  const runs = async () => (await a.call(listRuns)).items.length;
  expect(await runs()).toBe(0);
  await Promise.all([schedules.serve(now), schedules.serve(now)]);
  expect(await runs()).toBe(1);
});
