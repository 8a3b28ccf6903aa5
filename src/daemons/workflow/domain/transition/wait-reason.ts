import { WaitReason } from '../../../../contracts/index.ts';
import type { JobState } from '../run/state.ts';

/** Returns why the run as a whole waits: the first of its steps' waits in the order of `WaitReason`. */
export function waitReasonOf(jobs: readonly JobState[]): WaitReason | null {
  const waits = new Set(
    jobs.flatMap(({ steps }) =>
      steps.flatMap(({ record, wait }) => (record.status === 'waiting' && wait ? wait.for : [])),
    ),
  );
  return WaitReason.options.find((reason) => waits.has(reason)) ?? null;
}
