import { expect, vi } from 'vitest';
import {
  getRun,
  listRunEvents,
  listRunSteps,
  type ReplyOf,
  type RunStep,
  startRun,
} from '../../../../src/contracts/index.ts';
import { workflow } from '../../../../src/daemons/workflow/index.ts';
import type { WorkflowServices } from '../../../../src/daemons/workflow/services.ts';
import { startTestDaemon, type TestDaemon, type TestDaemonOptions } from '../../../support/daemon.ts';

export type RunReply = ReplyOf<typeof getRun>;
export type TestWorkflow = TestDaemon<WorkflowServices> & {
  /** Starts a run of a definition sent along; its steps are those of one job. */
  start(definition: Record<string, unknown>, options?: StartOptions): Promise<string>;
  run(id: string, tenant?: string): Promise<RunReply>;
  /** Waits until the run has one of the statuses. */
  until(id: string, ...statuses: string[]): Promise<RunReply>;
  steps(id: string): Promise<RunStep[]>;
  step(id: string, stepId: string): Promise<RunStep>;
  eventTypes(id: string): Promise<string[]>;
};

export interface StartOptions {
  input?: unknown;
  tenant?: string;
  idempotencyKey?: string;
  priority?: number;
  runAt?: number;
}

/** The real daemon; every run is followed through its API. */
export async function startWorkflow(options: TestDaemonOptions = {}): Promise<TestWorkflow> {
  const daemon = await startTestDaemon(workflow, options);
  const it: TestWorkflow = {
    ...daemon,
    async start(definition, { tenant, input = {}, ...more } = {}) {
      const body = { definition: asDefinition(definition), input, ...more };
      return (await daemon.call(startRun, { body }, tenant)).run.id;
    },
    run: (id, tenant) => daemon.call(getRun, { params: { runId: id } }, tenant),
    async until(id, ...statuses) {
      let run!: RunReply;
      await vi.waitFor(
        async () => {
          run = await it.run(id);
          expect(statuses, JSON.stringify(run.error)).toContain(run.status);
        },
        { timeout: 20_000, interval: 5 },
      );
      return run;
    },
    steps: async (id) => (await daemon.call(listRunSteps, { params: { runId: id } })).items,
    async step(id, stepId) {
      const found = (await it.steps(id)).find((step) => step.id === stepId);
      if (!found) throw new Error(`no step ${stepId}`);
      return found;
    },
    async eventTypes(id) {
      const { items } = await daemon.call(listRunEvents, {
        params: { runId: id },
        query: { limit: 1000 },
      });
      return items.map(({ type, jobId, stepId }) => [type, stepId ?? jobId].filter(Boolean).join(' '));
    },
  };
  return it;
}

/** `{steps}` alone is a workflow of one job `main`. */
export function asDefinition({ steps, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return { id: 'test', ...(steps ? { jobs: { main: { steps } } } : {}), ...rest };
}

/** CEL as it stands in a definition. */
export const cel = (text: string): string => `\${{ ${text} }}`;
