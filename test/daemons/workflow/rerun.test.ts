import { expect, test } from 'vitest';
import { getJob, submitJob } from '../../../src/contracts/index.ts';
import { startCode } from './support/code.ts';
import { LEDGER_CONFIG, startLedger } from './support/ledger.ts';
import { cel, startWorkflow } from './support/workflow.ts';

const who = { tenantId: 'default', hostId: 'x', requestId: 'r', traceId: 't' };

async function setUp() {
  const ledger = await startLedger();
  const it = await startWorkflow({ config: LEDGER_CONFIG });
  const call = (name: string) => ({ id: name, uses: 'http', with: { url: `${ledger.url}/${name}` } });
  const counts = (...names: string[]) => names.map((name) => ledger.count(name));
  return { ledger, it, call, counts };
}

test('jobs that failed beside the chosen one are run again, and so is what was skipped for want of them', async () => {
  const { ledger, it, call, counts } = await setUp();
  for (const name of ['b2', 'c2'])
    ledger.answer(name, (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const id = await it.start({
    jobs: {
      a: { steps: [call('a')] },
      b: { steps: [call('b1'), call('b2'), call('b3')] },
      c: { steps: [call('c1'), call('c2')] },
      afterC: { needs: 'c', steps: [call('d')] },
    },
  });
  await it.until(id, 'failed');
  const again = await it.services.runs.rerun('default', id, 'b.b2', who);
  await it.until(again.id, 'succeeded');
  // What had succeeded before a failure is not done twice, in either job.
  expect(counts('a', 'b1', 'b2', 'b3', 'c1', 'c2', 'd')).toEqual([1, 1, 2, 1, 1, 2, 1]);
});

test('a job that may fail is not run again for having failed, nor what went on after it', async () => {
  const { ledger, it, call, counts } = await setUp();
  ledger.answer('may', (_, response) => response.writeHead(400).end());
  ledger.answer('must', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const id = await it.start({
    jobs: {
      may: { continueOnError: true, steps: [call('may')] },
      after: { needs: 'may', steps: [call('after')] },
      must: { steps: [call('must')] },
    },
  });
  await it.until(id, 'failed');
  await expect.poll(() => counts('may', 'after')).toEqual([1, 1]);
  const again = await it.services.runs.rerun('default', id, 'must.must', who);
  await it.until(again.id, 'succeeded');
  expect(counts('may', 'after', 'must')).toEqual([1, 1, 2]);
});

test('of a failed matrix every combination goes on where it stood', async () => {
  const { ledger, it, counts } = await setUp();
  ledger.answer('two', (_, response, nth) => response.writeHead(nth === 1 ? 400 : 200).end());
  const call = (name: string) => ({
    id: name,
    uses: 'http',
    with: { url: `${ledger.url}/${name}/${cel('matrix.v')}` },
  });
  const matrix = { v: ['x', 'y'] };
  const id = await it.start({
    jobs: { m: { strategy: { matrix, failFast: false }, steps: [call('one'), call('two'), call('three')] } },
  });
  await it.until(id, 'failed');
  const again = await it.services.runs.rerun('default', id, 'm:1.two', who);
  await it.until(again.id, 'succeeded');
  expect(counts('one/x', 'one/y', 'two/x', 'two/y', 'three/x', 'three/y')).toEqual([1, 1, 2, 2, 1, 1]);
});

test('a job that is run again is a job', async () => {
  const it = await startCode("export const count = () => 'done';", {
    workflows: [],
    jobs: [{ id: 'count', handler: 'flows.js#count' }],
  });
  const { job } = await it.call(submitJob, { body: { handler: 'code/count' } as never });
  await it.until(job.id, 'succeeded');
  const again = await it.services.runs.rerun('default', job.id, undefined, who);
  await it.until(again.id, 'succeeded');
  const found = await it.call(getJob, { params: { jobId: again.id as never } });
  expect(found).toMatchObject({ handler: 'code/count', result: 'done' });
});
