import { z } from 'zod';
import { type CallInput, listRuns, type ReplyOf, RunStatus, WaitReason } from '../../../contracts/index.ts';
import type { Client } from '../../../http/client.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { labelsOf } from '../../label-flag.ts';
import { pageShort } from '../../list-page.ts';
import { parseSince } from '../logs/filter.ts';
import { runsTable } from './views.ts';

type RunsPage = ReplyOf<typeof listRuns>;
/** Maximum number of runs with a pending decision. These runs are listed above all other runs, regardless of age. */
const MAX_DECISIONS_SHOWN = 100;
const MAY_WAIT = new Set(['waiting', 'cancelling']);

export const runs = defineCommand({
  name: 'workflows runs',
  summary: 'List runs, newest first, with pending decisions on top',
  example: 'svc workflows runs --status failed',
  args: z.object({
    status: RunStatus.optional().describe('only with this status'),
    waitingFor: WaitReason.optional().describe('only runs waiting for this'),
    workflow: z.string().optional().describe('only runs of this workflow'),
    label: z.array(z.string()).default([]).describe('only runs with this label: k=v, repeatable'),
    since: z.string().optional().describe('created since: 30s, 10m, 2h, 1d ago, or a time'),
    until: z.string().optional().describe('created before: like --since'),
    search: z.string().min(1).optional().describe('text in the input, or the id of a run'),
    limit: z.coerce.number().int().min(1).max(1000).default(20).describe('number of runs'),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  }),
  short: pageShort,
  async run(flags, { client, clock }) {
    const { status, waitingFor, workflow, limit, cursor } = flags;
    const query = { ...filterOf(flags, clock.now()), status, waitingReason: waitingFor };
    const page = await fullPage(client, query, { limit, cursor });
    const isFirst = cursor === undefined && waitingFor === undefined && !isNarrow(flags);
    if (!isFirst || (status !== undefined && !MAY_WAIT.has(status))) return ok({ ...page, decisions: [] });
    const { items } = await client.call(listRuns, {
      query: { waitingReason: 'decision', workflowId: workflow, limit: MAX_DECISIONS_SHOWN },
    });
    return ok({ ...page, decisions: items });
  },
  text({ items, nextCursor, decisions }: RunsPage & { decisions: RunsPage['items'] }, style) {
    const more = nextCursor === null ? '' : `\n${style.dim(`more: --cursor ${nextCursor}`)}`;
    if (decisions.length === 0) return runsTable(items, style) + more;
    const shown = new Set(decisions.map(({ id }) => id));
    return [
      `Waiting for a decision (svc workflows decide <run> <step> retry, or "all" for both):`,
      runsTable(decisions, style),
      '',
      `${runsTable(
        items.filter(({ id }) => !shown.has(id)),
        style,
      )}${more}`,
    ].join('\n');
  },
});

type RunsQuery = NonNullable<CallInput<typeof listRuns>['query']>;

interface FilterFlags {
  workflow?: string | undefined;
  label: string[];
  since?: string | undefined;
  until?: string | undefined;
  search?: string | undefined;
}

/** Returns whether the list shows only some runs. Pending decisions of other runs are then not shown. */
function isNarrow({ label, since, until, search }: FilterFlags): boolean {
  return label.length > 0 || [since, until, search].some((flag) => flag !== undefined);
}

function filterOf({ workflow, label, since, until, search }: FilterFlags, now: number): Partial<RunsQuery> {
  const labels = label.flatMap((flag) =>
    Object.entries(labelsOf([flag])).map(([key, value]) => `${key}:${value}`),
  );
  return {
    workflowId: workflow,
    search,
    ...(labels.length === 0 ? {} : { label: labels }),
    ...(since === undefined ? {} : { from: parseSince(since, now) }),
    ...(until === undefined ? {} : { to: parseSince(until, now, '--until') }),
  };
}

/** Reads pages until there are `limit` runs. A page of a search can be short although more runs match. */
async function fullPage(
  client: Client,
  query: Partial<RunsQuery>,
  { limit, cursor }: { limit: number; cursor: string | undefined },
): Promise<RunsPage> {
  const items: RunsPage['items'] = [];
  let next: string | null = cursor ?? null;
  do {
    const asked = { ...query, limit: limit - items.length, cursor: next ?? undefined };
    const page: RunsPage = await client.call(listRuns, { query: asked });
    items.push(...page.items);
    next = page.nextCursor;
  } while (next !== null && items.length < limit);
  return { items, nextCursor: next };
}
