import { WaitReason } from '../../../../contracts/index.ts';
import type { JobState } from '../run/state.ts';

/**
 * Returns the wait reason of the run, or null if no step waits. If steps have different reasons, the first reason in
 * the order of `WaitReason` is returned.
 */
export function waitReasonOf(jobs: readonly JobState[]): WaitReason | null {
  const waits = new Set(
    jobs.flatMap(({ steps }) =>
      steps.flatMap(({ record, wait }) => (record.status === 'waiting' && wait ? wait.for : [])),
    ),
  );
  return WaitReason.options.find((reason) => waits.has(reason)) ?? null;
}
