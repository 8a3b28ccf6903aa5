import { z } from 'zod';
import { type CallInput, listRuns, type ReplyOf } from '../../../contracts/index.ts';
import type { Client } from '../../../http/client.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pageShort } from '../../list-page.ts';
import { runFilterFlags, runFilterOf } from './run-filter.ts';
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
    ...runFilterFlags,
    limit: z.coerce.number().int().min(1).max(1000).default(20).describe('number of runs'),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  }),
  short: pageShort,
  async run(flags, { client, clock }) {
    const { status, waitingFor, workflow, limit, cursor } = flags;
    const page = await fullPage(client, runFilterOf(flags, clock.now()), { limit, cursor });
    const isFirst = cursor === undefined && waitingFor === undefined && !isNarrow(flags);
    if (!isFirst || (status.length > 0 && !status.some((each) => MAY_WAIT.has(each))))
      return ok({ ...page, decisions: [] });
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

/** Returns whether the list shows only some runs. Pending decisions of other runs are then not shown. */
function isNarrow({
  paused,
  label,
  since,
  until,
  search,
}: z.output<z.ZodObject<typeof runFilterFlags>>): boolean {
  return paused || label.length > 0 || [since, until, search].some((flag) => flag !== undefined);
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
