import { describe, expect, test } from 'vitest';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import { setStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { cel } from './support/workflow.ts';

const of = (steps: object[]) => ({ id: 'large', jobs: { main: { steps } } });
const withValue = (v: unknown) => of([{ uses: 'set', with: { v } }]);

/** Texts of the faults of a definition. */
function faultsOf(definition: object): string[] {
  try {
    compileDefinition(definition, () => setStep);
    return [];
  } catch (error) {
    const { details } = error as { details: { issues: Array<{ message: string }> } };
    return details.issues.map(({ message }) => message);
  }
}

describe('of a definition with a hundred thousand faults a hundred are reported, shortened', () => {
  const longIds = Array.from({ length: 200 }, (_, n) => ({ id: `s${n}`.padEnd(64, 'x'), uses: 'set' }));
  const wrongNames = cel(`[${Array(300).fill('steps.no').join(',')}]`);
  test.each<[string, object]>([
    [
      'names that are not there',
      of([...longIds.slice(1), { uses: 'set', with: { v: Array(300).fill(wrongNames) } }]),
    ],
    ['expressions without an end in one text', withValue(Array(9000).fill(cel('1 +')).join(''))],
    [
      'unknown keys',
      {
        ...of([{ uses: 'set' }]),
        ...Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, 1])),
      },
    ],
    [
      'jobs that are none',
      { id: 'large', jobs: Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`j${n}`, {}])) },
    ],
  ])('%s', (_, definition) => {
    const faults = faultsOf(definition);
    expect(faults).toHaveLength(100);
    expect(Math.max(...faults.map(({ length }) => length))).toBeLessThan(2500);
  });
});

test('a definition with too many expressions is refused before they are compiled', () => {
  expect(faultsOf(withValue(cel('1').repeat(10_001)))).toEqual([
    'have more than 10000 expressions; pass large data as input',
  ]);
  expect(faultsOf(withValue(cel('1').repeat(10_000)))).toEqual([]);
});

test('the paths of expressions in deep lists are right', () => {
  const deep = [[1, { a: ['x', cel('1 +')] }], cel('steps.none')];
  const { jobs } = compileDefinition(withValue([[cel('1')]]), () => setStep);
  expect(jobs[0]!.steps[0]!.with.expressions[0]!.path).toEqual([
    'jobs',
    'main',
    'steps',
    0,
    'with',
    'v',
    0,
    0,
  ]);
  expect(() => compileDefinition(withValue(deep), () => setStep)).toThrow('with.v[0][1].a[1]:1:');
});
