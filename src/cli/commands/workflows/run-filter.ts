import { z } from 'zod';
import { type CallInput, type cancelRuns, RunStatus, WaitReason } from '../../../contracts/index.ts';
import { labelsOf } from '../../label-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { parseSince } from '../logs/filter.ts';

/** Flags that filter runs, in lists and in bulk actions. */
export const runFilterFlags = {
  status: z
    .array(RunStatus)
    .default([])
    .describe(`repeatable; one of ${RunStatus.options.join(', ')}`),
  waitingFor: WaitReason.optional().describe('only runs waiting for this'),
  paused: z.boolean().default(false).describe('only paused runs'),
  workflow: z.string().optional().describe('only runs of this workflow'),
  label: z.array(z.string()).default([]).describe('only runs with this label: k=v, repeatable'),
  since: z.string().optional().describe('created since: 30s, 10m, 2h, 1d ago, or a time'),
  until: z.string().optional().describe('created before: like --since'),
  search: z.string().min(1).optional().describe('text in the input, or the id of a run'),
};

type RunFilter = NonNullable<CallInput<typeof cancelRuns>['body']['filter']>;
type FilterFlags = z.output<z.ZodObject<typeof runFilterFlags>>;

/** Returns the filter of the flags. Ages count from `now`, in epoch ms. */
export function runFilterOf(flags: FilterFlags, now: number): RunFilter {
  const { status, waitingFor, paused, workflow, label, since, until, search } = flags;
  const labels = label.flatMap((flag) =>
    Object.entries(labelsOf([flag])).map(([key, value]) => `${key}:${value}`),
  );
  return {
    ...{ waitingReason: waitingFor, workflowId: workflow, search },
    ...(paused ? { paused } : {}),
    ...(status.length === 0 ? {} : { status }),
    ...(labels.length === 0 ? {} : { label: labels }),
    ...(since === undefined ? {} : { from: parseSince(since, now) }),
    ...(until === undefined ? {} : { to: parseSince(until, now, '--until') }),
  };
}

/** Returns the absolute forms of `--since` and `--until`, with which a later command has the same filter. */
export function absoluteFlags({ from, to }: RunFilter): string | undefined {
  const flags = Object.entries({ since: from, until: to }).flatMap(([flag, at]) =>
    at === undefined ? [] : [`--${flag} ${new Date(Number(at)).toISOString()}`],
  );
  return flags.length === 0 ? undefined : flags.join(' ');
}

/**
 * Returns the filter of a bulk action, or undefined if the command names a run. Throws UsageError if it names both or
 * neither.
 */
export function bulkFilterOf(
  { run, all, ...flags }: FilterFlags & { run?: string | undefined; all: boolean },
  now: number,
): RunFilter | undefined {
  const filter = runFilterOf(flags, now);
  const hasFilter = all || Object.values(filter).some((value) => value !== undefined);
  if (hasFilter === (run !== undefined))
    throw new UsageError(
      'Pass a run id, or --all or a filter: --status, --waiting-for, --paused, --workflow, --label, --since, --until, --search.',
    );
  return hasFilter ? filter : undefined;
}
