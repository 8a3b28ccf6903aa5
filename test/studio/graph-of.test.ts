import { expect, test } from 'vitest';
import { graphOf } from '../../src/studio/screens/runs/graph-of.ts';

const job = (id: string, ...needs: string[]) => ({ id, status: 'running' as const, needs });
const step = (id: string) => {
  const [jobId, name] = id.split('.') as [string, string];
  return { id, jobId, name, status: 'succeeded' as const };
};
const edgesOf = (...args: Parameters<typeof graphOf>): string[] =>
  graphOf(...args).edges.map(({ from, to }) => `${from} > ${to}`);

test('the steps of a job follow each other, and a job follows the last steps of the jobs that it needs', () => {
  const jobs = [job('build'), job('test'), job('deploy', 'build', 'test')];
  const steps = [step('build.a'), step('build.b'), step('test.a'), step('deploy.a')];
  expect(edgesOf({ jobs, children: [] }, steps)).toEqual([
    'job build > step build.a',
    'step build.a > step build.b',
    'job test > step test.a',
    'step build.b > job deploy',
    'step test.a > job deploy',
    'job deploy > step deploy.a',
  ]);
});

test('a job waits for every combination of a matrix, and a job without steps yet is a node', () => {
  const jobs = [job('build:0'), job('build:1'), job('deploy', 'build')];
  const graph = graphOf({ jobs, children: [] }, [step('build:0.a')]);
  expect(graph.nodes.map(({ id }) => id)).toEqual([
    'job build:0',
    'step build:0.a',
    'job build:1',
    'job deploy',
  ]);
  expect(edgesOf({ jobs, children: [] }, [step('build:0.a')])).toEqual([
    'job build:0 > step build:0.a',
    'step build:0.a > job deploy',
    'job build:1 > job deploy',
  ]);
});

test('a child run follows the step that started it, also after a retry with another child', () => {
  const child = (id: string, stepId: string) => ({
    ...{ id: id as never, stepId, workflowId: 'ship' },
    status: 'failed' as const,
  });
  const children = [child('run_1', 'main.a'), child('run_2', 'main.a'), child('run_3', 'main.lost')];
  const graph = graphOf({ jobs: [job('main')], children }, [step('main.a')]);
  expect(graph.nodes.filter(({ kind }) => kind === 'run')).toMatchObject([
    { of: 'run_1', name: 'ship', status: 'failed' },
    { of: 'run_2' },
    { of: 'run_3' },
  ]);
  expect(graph.edges.slice(1)).toEqual([
    { from: 'step main.a', to: 'run run_1' },
    { from: 'step main.a', to: 'run run_2' },
  ]);
});

test('steps of ctx.all stand side by side, and what comes after it follows all of them', () => {
  const at = (id: string, branch: string) => ({ ...step(`main.${id}`), branch });
  const steps = [
    at('first', ''),
    at('a1', '1-0'),
    at('b1', '1-1'),
    at('a2', '1-0'),
    at('c1', '1-2.1-0'),
    at('c2', '1-2.1-1'),
    at('after', ''),
    at('d', '2-0'),
    at('e', '2-1'),
    at('f', '3-0'),
  ];
  expect(edgesOf({ jobs: [job('main'), job('next', 'main')], children: [] }, steps)).toEqual([
    'job main > step main.first',
    'step main.first > step main.a1',
    'step main.first > step main.b1',
    'step main.a1 > step main.a2',
    'step main.first > step main.c1',
    'step main.first > step main.c2',
    'step main.a2 > step main.after',
    'step main.b1 > step main.after',
    'step main.c1 > step main.after',
    'step main.c2 > step main.after',
    'step main.after > step main.d',
    'step main.after > step main.e',
    'step main.d > step main.f',
    'step main.e > step main.f',
    'step main.f > job next',
  ]);
});

test('a run without jobs has an empty graph', () => {
  expect(graphOf({ jobs: [], children: [] }, [])).toEqual({ nodes: [], edges: [] });
});
