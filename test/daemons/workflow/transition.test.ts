import { expect, test } from 'vitest';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import type { KindOf } from '../../../src/daemons/workflow/domain/definition/compiled-workflow.ts';
import type { Effect } from '../../../src/daemons/workflow/domain/run/effects.ts';
import type { RunEvent } from '../../../src/daemons/workflow/domain/run/events.ts';
import { Program } from '../../../src/daemons/workflow/domain/run/program.ts';
import { setStep, signalStep, waitStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { StepKind } from '../../../src/daemons/workflow/domain/steps/step-kind.ts';
import { transition } from '../../../src/daemons/workflow/domain/transition/transition.ts';
import { below, type Random, seededRandom, seedOf } from '../../support/random.ts';
import { claimedState, SimulatedRun } from './support/simulated-run.ts';
import { cel } from './support/workflow.ts';

const ROUNDS = Number(process.env.SVC_TEST_TRANSITIONS ?? 300);

const neverRuns = (): never => {
  throw new Error('A transition performs no effect.');
};
const work: StepKind = { ...setStep, name: 'work', mode: 'effect', takesSlot: true, run: neverRuns };
const plugin: StepKind = { ...work, name: 'p/do', reportsBegin: true, away: () => undefined };
const KINDS = new Map([setStep, signalStep, waitStep, work, plugin].map((kind) => [kind.name, kind]));
const kindOf: KindOf = (uses) => KINDS.get(uses);

const STEPS = [
  { uses: 'set', with: { n: cel('1 + 1') } },
  { uses: 'wait', with: { ms: 500 } },
  { uses: 'signal', with: { name: 'go', timeoutMs: 2000 } },
  { uses: 'work' },
  { uses: 'work', retry: { maxAttempts: 3, initialMs: 100 } },
  { uses: 'p/do', timeoutMs: 1000 },
  { uses: 'p/do' },
  { uses: 'set', if: 'always()' },
  { uses: 'work', if: 'failure()', continueOnError: true },
  { uses: 'p/do', if: 'cancelled()' },
];

function randomDefinition(random: Random): object {
  const one = <Item>(items: readonly Item[]): Item => items[below(random, items.length)]!;
  const jobs = Array.from({ length: 1 + below(random, 3) }, (_, index) => ({
    needs: index > 0 && random() < 0.5 ? [`j${index - 1}`] : [],
    ...(random() < 0.2 ? { if: one(['always()', 'failure()', 'cancelled()']) } : {}),
    ...(random() < 0.3 ? { strategy: { matrix: { n: [1, 2, 3] }, maxParallel: 1 + below(random, 3) } } : {}),
    ...(random() < 0.2 ? { timeoutMs: 1500 } : {}),
    steps: Array.from({ length: 1 + below(random, 3) }, () => one(STEPS)),
  }));
  return {
    id: 'random',
    ...(random() < 0.3 ? { timeoutMs: 3000 } : {}),
    jobs: Object.fromEntries(jobs.map((job, index) => [`j${index}`, job])),
  };
}

test('random orders of events keep to the table of states, and a structured clone continues alike', () => {
  const seed = seedOf(process.env);
  console.log(`Seed of the transitions: SVC_TEST_SEED=${seed}`);
  for (let round = 0; round < ROUNDS; round++) {
    const random = seededRandom(seed + round);
    const definition = randomDefinition(random);
    const run = new SimulatedRun(compileDefinition(definition, kindOf), random);
    run.start();
    for (let events = 0; events < 40 && !run.hasLeft; events++) run.step();
    if (!run.hasLeft) run.finish();
    const told = `round ${round} of seed ${seed}: ${JSON.stringify(definition)}`;
    expect(run.faults, told).toEqual([]);
    expect(run.hasLeft, told).toBe(true);
  }
}, 60_000);

test('an interrupted step that waits for a slot requests one, however often its run advances', () => {
  const workflow = compileDefinition({ id: 'one', jobs: { main: { steps: [{ uses: 'p/do' }] } } }, kindOf);
  const program = new Program(workflow);
  const state = claimedState(program);
  const step = 'main 0';
  const facts = { isIdempotent: true };
  const error = { code: 'EXECUTION_ERROR', message: 'Its process was lost.', details: {} };
  const failure = { errorClass: 'code', error, retryAfterMs: null, interrupted: true } as const;
  const apply = (event: RunEvent, slots = 0): Effect['type'][] =>
    transition(state, { ...event, now: 0, monotonic: 0, fraction: 0, units: 1000, slots }, program)
      .effects.map(({ type }) => type)
      .filter((type) => type !== 'plugins.retried' && type !== 'attempt.ended');

  expect(apply({ type: 'claimed' }, 1)).toEqual(['attempt.start']);
  apply({ type: 'attempt.begun', step, attempt: 1 });
  apply({ type: 'attempt.settled', step, attempt: 1, outcome: { failure }, isExpired: false, facts });
  expect(apply({ type: 'advance' })).toEqual(['step.inspect']);
  expect(apply({ type: 'step.inspected', step, away: null, facts })).toEqual(['slot.request']);
  expect(apply({ type: 'advance' })).toEqual([]);
  expect(apply({ type: 'plugins.changed' })).toEqual([]);
  expect(apply({ type: 'slot.granted', owner: step })).toEqual(['attempt.start']);
});
