import { z } from 'zod';
import { type CallInput, type cancelRuns, RunStatus, WaitReason } from '../../../contracts/index.ts';
import { UsageError } from '../../parse-args.ts';

/** Flags that filter runs, in lists and in bulk actions. */
export const runFilterFlags = {
  status: RunStatus.optional().describe('only with this status'),
  waitingFor: WaitReason.optional().describe('only runs waiting for this'),
  workflow: z.string().optional().describe('only runs of this workflow'),
};

type RunFilter = NonNullable<CallInput<typeof cancelRuns>['body']['filter']>;
type FilterFlags = z.output<z.ZodObject<typeof runFilterFlags>>;

export function runFilterOf({ status, waitingFor, workflow }: FilterFlags): RunFilter {
  return { status, waitingReason: waitingFor, workflowId: workflow };
}

/**
 * Returns the filter of a bulk action, or undefined if the command names a run. Throws UsageError if it names both or
 * neither.
 */
export function bulkFilterOf({
  run,
  all,
  ...flags
}: FilterFlags & { run?: string | undefined; all: boolean }): RunFilter | undefined {
  const filter = runFilterOf(flags);
  const hasFilter = all || Object.values(filter).some((value) => value !== undefined);
  if (hasFilter === (run !== undefined))
    throw new UsageError('Pass a run id, or --all, --status, --waiting-for or --workflow.');
  return hasFilter ? filter : undefined;
}
