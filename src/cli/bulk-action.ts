import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import type { CommandResult, RunError } from '../contracts/index.ts';
import { seconds } from '../kit/time/duration.ts';
import { CancelledError, confirm } from './confirm.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './parse-args.ts';
import type { Style } from './style.ts';

/** Flags of commands that act on many objects. */
export const bulkFlags = {
  dryRun: z.boolean().default(false).describe('only show how many match'),
  cursor: z
    .string()
    .min(1)
    .optional()
    .describe('continue a stopped call, with the same flags and absolute times'),
};

interface Batch {
  matching: { count: number; isComplete: boolean; sample: unknown[] } | null;
  items: unknown[];
  refused: Array<{ error: RunError }>;
  skipped?: number;
  paused?: RunError | null;
  nextCursor: string | null;
}

export interface BulkResult<Reply extends Batch> {
  /** What matched before anything was changed. Null if the call continues an earlier one. */
  matching: Reply['matching'];
  items: Reply['items'];
  refused: Reply['refused'];
  skipped: number;
  paused: RunError | null;
  /** Where to continue. Null if everything is done. */
  nextCursor: string | null;
  /** Flags to add to the command to continue. Null if everything is done. */
  continueWith: string | null;
}

export interface BulkOptions {
  dryRun: boolean;
  cursor: string | undefined;
  /** Absolute forms of relative flags, which a command that continues must repeat, such as `--since <time>`. */
  absolute?: string | undefined;
  /** Question before the first change. Without it, no confirmation is needed. */
  question?: (count: string) => string;
}

/** Longest time that a bulk action waits for a limit without any progress. */
const MAX_PAUSE_MS = seconds(90);
const PAUSE_MS = seconds(1);

/** Throws UsageError if a command that names one object has flags for many. */
export function refuseBulkFlags({ dryRun, cursor }: Pick<BulkOptions, 'dryRun' | 'cursor'>): void {
  if (dryRun) throw new UsageError('--dry-run needs a filter, such as --all. It does not go with an id.');
  if (cursor !== undefined)
    throw new UsageError('--cursor needs a filter, such as --all. It does not go with an id.');
}

/** Finds what matches, asks, then acts on it in batches until all is done. Notes the flags that continue the action. */
export async function runBulk<Reply extends Batch>(
  call: (fields: { dryRun?: boolean; cursor?: string }) => Promise<Reply>,
  { dryRun, cursor, question, absolute }: BulkOptions,
  context: CommandContext,
): Promise<CommandResult<BulkResult<Reply>>> {
  const first = cursor === undefined || dryRun ? await call({ dryRun: true }) : undefined;
  const { matching = null, nextCursor = cursor ?? null } = first ?? {};
  const result: BulkResult<Reply> = {
    ...{ matching, items: [], refused: [], skipped: 0, paused: null, nextCursor, continueWith: null },
  };
  const flagsFor = (at: string | null): string | null =>
    at === null ? null : [...(absolute ? [absolute] : []), `--cursor ${at}`].join(' ');
  result.continueWith = flagsFor(nextCursor);
  if (dryRun || nextCursor === null) return { exitCode: 0, result };
  const isSure = !matching || !question || (await confirm(context, question(countText(matching))));
  if (!isSure) throw new CancelledError();
  // The first cursor stays valid, because repeated calls do nothing twice.
  context.ui.note(`If this is interrupted, repeat it with ${result.continueWith}`);
  await applyBatches(call, result, context);
  result.continueWith = flagsFor(result.nextCursor);
  return { exitCode: result.nextCursor === null ? 0 : 1, result };
}

async function applyBatches<Reply extends Batch>(
  call: (fields: { cursor: string }) => Promise<Reply>,
  result: BulkResult<Reply>,
  { ui }: CommandContext,
): Promise<void> {
  for (let waitedMs = 0; result.nextCursor !== null; ) {
    const reply = await call({ cursor: result.nextCursor });
    result.items = [...result.items, ...reply.items];
    result.refused = [...result.refused, ...reply.refused];
    result.skipped += reply.skipped ?? 0;
    result.nextCursor = reply.nextCursor;
    result.paused = reply.paused ?? null;
    if (result.nextCursor !== null) ui.note(`${result.items.length} done so far`);
    if (result.paused === null) continue;
    waitedMs = reply.items.length > 0 ? 0 : waitedMs + PAUSE_MS;
    if (result.paused.code === 'QUOTA_EXCEEDED' || waitedMs > MAX_PAUSE_MS) return;
    await pause(PAUSE_MS);
  }
}

export function countText({ count, isComplete }: { count: number; isComplete: boolean }): string {
  return isComplete ? String(count) : `at least ${count}`;
}

/** Returns the text of a bulk action. `done` is what happened to an object, such as `cancelled`. */
export function bulkText<Reply extends Batch>(
  { matching, items, refused, skipped, paused, continueWith }: BulkResult<Reply>,
  { noun, done }: { noun: string; done: string },
  style: Style,
): string {
  const isUntouched = items.length + refused.length + skipped === 0 && paused === null;
  if (matching && isUntouched && (continueWith !== null || matching.count === 0))
    return `${countText(matching)} ${noun} match.`;
  const problems = refused.map(({ error }) => `${style.red('refused')} ${error.message}`);
  const stopped = continueWith === null ? [] : [paused?.message ?? '', `To continue, add ${continueWith}`];
  const skippedText = skipped > 0 ? ` ${skipped} were skipped.` : '';
  return [`${items.length} ${noun} ${done}.${skippedText}`, ...problems, ...stopped].join('\n');
}
