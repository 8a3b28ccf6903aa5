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

test('a run without jobs has an empty graph', () => {
  expect(graphOf({ jobs: [], children: [] }, [])).toEqual({ nodes: [], edges: [] });
});
