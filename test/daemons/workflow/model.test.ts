import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { StepFailure } from '../../../src/daemons/workflow/domain/steps/retry-policy.ts';
import type { StepKind } from '../../../src/daemons/workflow/domain/steps/step-kind.ts';
import { tempDir } from '../../support/daemon.ts';
import { openEngine, workStep } from './support/engine.ts';

type StepModel = { fails: boolean; may: boolean; when: 'default' | 'always' | 'failure' | 'never' };
type JobModel = { needs: number[]; when: 'default' | 'always' | 'failure'; may: boolean; steps: StepModel[] };

const Step = fc.record({
  fails: fc.boolean(),
  may: fc.boolean(),
  when: fc.constantFrom('default', 'default', 'always', 'failure', 'never'),
}) as fc.Arbitrary<StepModel>;
const Job = fc.record({
  needs: fc.array(fc.nat(5), { maxLength: 3 }),
  when: fc.constantFrom('default', 'default', 'always', 'failure'),
  may: fc.boolean(),
  steps: fc.array(Step, { minLength: 1, maxLength: 4 }),
}) as fc.Arbitrary<JobModel>;
/** Jobs that need earlier ones only. */
const Graph = fc
  .array(Job, { minLength: 1, maxLength: 6 })
  .map((jobs) =>
    jobs.map((job, index) => ({ ...job, needs: [...new Set(job.needs.filter((need) => need < index))] })),
  );

const CONDITIONS = { default: undefined, always: 'always()', failure: 'failure()', never: 'false' };

/** What the rules of docs/workflows.md say comes of it, written down a second time. */
function oracle(jobs: JobModel[]) {
  const results: string[] = [];
  const seen: string[] = [];
  const steps = jobs.map((job, index) => {
    const needed = job.needs.map((need) => results[need]!);
    const anyFailed = needed.includes('failed');
    const runs =
      job.when === 'always' ||
      (job.when === 'failure' ? anyFailed : needed.every((result) => result === 'succeeded'));
    if (!runs) {
      results.push('skipped');
      seen.push('skipped');
      return job.steps.map(() => 'pending');
    }
    let failed = false;
    const states = job.steps.map((step) => {
      const goes =
        step.when === 'always' || (step.when === 'failure' ? failed : step.when === 'default' && !failed);
      if (!goes) return 'skipped';
      if (!step.fails) return 'succeeded';
      failed ||= !step.may;
      return 'failed';
    });
    seen.push(failed ? 'failed' : 'succeeded');
    results.push(failed && !job.may ? 'failed' : 'succeeded');
    expect(states.length).toBe(jobs[index]!.steps.length);
    return states;
  });
  const isFailed = jobs.some((job, index) => seen[index] === 'failed' && !job.may);
  return { run: isFailed ? 'failed' : 'succeeded', jobs: seen, steps };
}

test('random graphs of jobs end as the rules say, whether steps run in place or asynchronously', async () => {
  const failing: StepKind = {
    ...workStep('fails', async () => {}),
    run: () => Promise.reject(new StepFailure('code', { code: 'STEP_FAILED', message: 'no', details: {} })),
  };
  const it = await openEngine({
    dataDir: await tempDir(),
    kinds: [failing, workStep('works', () => new Promise((resolve) => setTimeout(resolve, 1)))],
  });
  onTestFinished(() => it.close());
  await it.engine.start();
  await fc.assert(
    fc.asyncProperty(Graph, fc.boolean(), async (jobs, inPlace) => {
      const definition = {
        id: 'model',
        jobs: Object.fromEntries(
          jobs.map((job, index) => [
            `j${index}`,
            {
              needs: job.needs.map((need) => `j${need}`),
              ...(CONDITIONS[job.when] ? { if: CONDITIONS[job.when] } : {}),
              continueOnError: job.may,
              steps: job.steps.map((step) => ({
                uses: step.fails ? 'fails' : inPlace ? 'set' : 'works',
                continueOnError: step.may,
                ...(CONDITIONS[step.when] ? { if: CONDITIONS[step.when] } : {}),
              })),
            },
          ]),
        ),
      };
      const id = await it.beginDefinition(definition);
      await expect.poll(async () => (await it.store.runs.find(null, id))?.finishedAt ?? null).not.toBeNull();
      const run = (await it.store.runs.find(null, id))!;
      const { jobs: records, steps } = (await it.store.runs.load(run.seq))!;
      const expected = oracle(jobs);
      const jobStates = jobs.map((_, index) => records.find(({ key }) => key === `j${index}`)?.status);
      const stepStates = jobs.map((job, index) =>
        job.steps.map(
          (_, place) =>
            steps.find((step) => step.jobKey === `j${index}` && step.index === place)?.status ?? 'pending',
        ),
      );
      expect({ run: run.status, jobs: jobStates, steps: stepStates }).toEqual(expected);
    }),
    { numRuns: Number(process.env.SVC_TEST_MODELS ?? 60) },
  );
}, 120_000);
