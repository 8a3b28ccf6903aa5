import { z } from 'zod';
import { listRuns, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pageShort } from '../../list-page.ts';
import { runFilterFlags } from './run-filter.ts';
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
  async run({ status, waitingFor, workflow, limit, cursor }, { client }) {
    const query = { status, workflowId: workflow, limit, cursor };
    const page = await client.call(listRuns, { query: { ...query, waitingReason: waitingFor } });
    const isFirst = cursor === undefined && waitingFor === undefined;
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
