import type { RunChild, RunJob, RunStep } from '../../../contracts/workflow-records.ts';
import { Branches } from './branches.ts';

/** Maximum number of nodes that the graph shows. */
export const MAX_NODES = 300;

export interface GraphNode {
  id: string;
  kind: 'job' | 'step' | 'run';
  /** Id of the job, step or run. */
  of: string;
  name: string;
  status: string;
}

export interface GraphEdge {
  from: string;
  to: string;
}

export interface RunGraph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

interface Parts {
  jobs: ReadonlyArray<Pick<RunJob, 'id' | 'status' | 'needs'>>;
  children: ReadonlyArray<Pick<RunChild, 'id' | 'workflowId' | 'status' | 'stepId'>>;
}

type Step = Pick<RunStep, 'id' | 'jobId' | 'name' | 'status' | 'branch'>;

/**
 * Returns the jobs, steps and child runs of a run as a graph. A job follows the last steps of the jobs that it needs, a
 * step follows the one before it in its job or branch, and a child run follows its step.
 */
export function graphOf({ jobs, children }: Parts, steps: readonly Step[]): RunGraph {
  const stepsByJob = Map.groupBy(steps, ({ jobId }) => jobId);
  const stepNodes: GraphNode[] = [];
  const stepEdges: GraphEdge[] = [];
  const endsOf = new Map<string, readonly string[]>();
  for (const { id } of jobs) {
    const branches = new Branches(`job ${id}`);
    for (const step of stepsByJob.get(id) ?? []) {
      const node = `step ${step.id}`;
      stepNodes.push({ id: node, kind: 'step', of: step.id, name: step.name, status: step.status });
      for (const from of branches.add(node, step.branch ?? '')) stepEdges.push({ from, to: node });
    }
    endsOf.set(id, branches.ends());
  }
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  for (const { id, status, needs } of jobs) {
    nodes.push({ id: `job ${id}`, kind: 'job', of: id, name: id, status });
    for (const needed of jobs.filter((job) => needs.includes(definedId(job.id))))
      for (const from of endsOf.get(needed.id)!) edges.push({ from, to: `job ${id}` });
    const own = new Set((stepsByJob.get(id) ?? []).map((step) => `step ${step.id}`));
    nodes.push(...stepNodes.filter((node) => own.has(node.id)));
    edges.push(...stepEdges.filter(({ to }) => own.has(to)));
  }
  for (const { id, workflowId, status, stepId } of children) {
    nodes.push({ id: `run ${id}`, kind: 'run', of: id, name: workflowId, status });
    edges.push({ from: `step ${stepId}`, to: `run ${id}` });
  }
  const known = new Set(nodes.map((node) => node.id));
  return { nodes, edges: edges.filter(({ from }) => known.has(from)) };
}

/** Returns the id in the definition. Each combination of a matrix has its own number, such as `build:2`. */
const definedId = (jobId: string): string => jobId.replace(/:\d+$/, '');
