import { z } from 'zod';
import {
  getRun,
  listRunLogs,
  listRunSteps,
  listRuns,
  listWorkflows,
  type ReplyOf,
  type RunLogLine,
  RunStatus,
  WaitReason,
} from '../../../contracts/index.ts';
import { defineCommand, ok, streamed } from '../../define-command.ts';
import { moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../style.ts';
import { followLogs, logLine } from './follow.ts';
import { attemptsTable, runPairs, runsTable, stepsTable } from './views.ts';

export const RunArg = z.string().min(1).max(128).describe('run id');

export const list = defineCommand({
  name: 'workflows list',
  summary: 'List registered workflows, and the problems of invalid ones',
  example: 'svc workflows list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listWorkflows);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ id }) => id) });
  },
  text({ items, faults, nextCursor }: ReplyOf<typeof listWorkflows>, style) {
    const rows = items.map(({ id, version, source, jobs, name }) => [
      id,
      version,
      source,
      jobs.join(', '),
      name ?? '',
    ]);
    const parts = [
      rows.length === 0
        ? 'There are no workflows. Add a definition to ./workflows.'
        : table(['workflow', 'version', 'source', 'jobs', 'name'], rows, style),
    ];
    for (const { source, path, message, text, unresolved } of faults) {
      const state = unresolved ? style.yellow('cannot run') : style.red('refused');
      parts.push(`${state} ${source}${path === '' ? '' : ` ${path}`}: ${message}`);
      if (text) parts.push(style.dim(`    | ${text}`));
    }
    return parts.join('\n') + moreLine(nextCursor, style);
  },
});

type RunsPage = ReplyOf<typeof listRuns>;
/** Runs that wait for a decision are listed first, regardless of age. */
const MAX_DECISIONS_SHOWN = 100;
const MAY_WAIT = new Set(['waiting', 'cancelling']);

export const runs = defineCommand({
  name: 'workflows runs',
  summary: 'List runs, newest first, with pending decisions on top',
  example: 'svc workflows runs --status failed',
  args: z.object({
    status: RunStatus.optional().describe('only runs with this status'),
    waitingFor: WaitReason.optional().describe('only runs waiting for this'),
    workflow: z.string().optional().describe('only runs of this workflow'),
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

interface Shown {
  run: ReplyOf<typeof getRun>;
  steps: ReplyOf<typeof listRunSteps>['items'];
}

export const show = defineCommand({
  name: 'workflows show',
  summary: 'Show a run with its jobs and steps',
  example: 'svc workflows show run_01b8dac5',
  args: z.object({ run: RunArg }),
  async run({ run }, { client }) {
    const params = { runId: run as never };
    const [found, steps] = await Promise.all([
      client.call(getRun, { params }),
      client.call(listRunSteps, { params }),
    ]);
    return ok<Shown>({ run: found, steps: steps.items });
  },
  text({ run, steps }: Shown, style) {
    const next = steps.flatMap((step) => nextStep(run.id, step));
    const attempts = attemptsTable(steps, style);
    return [
      `${runPairs(run, style)}\n\n${stepsTable(steps, style)}`,
      ...(attempts === null ? [] : ['', attempts]),
      ...(next.length > 0 ? ['', 'Waiting for your action:', ...next.map((line) => `  ${line}`)] : []),
    ].join('\n');
  },
});

/** Command that continues a waiting step. */
function nextStep(runId: string, { id, waitingFor }: Shown['steps'][number]): string[] {
  if (waitingFor?.for === 'approval') return [`svc workflows approve ${runId} ${id}`];
  if (waitingFor?.for === 'signal') return [`svc workflows signal ${runId} ${waitingFor.name ?? '<name>'}`];
  if (waitingFor?.for === 'decision') return [`svc workflows decide ${runId} ${id} retry`];
  return [];
}

export const logs = defineCommand({
  name: 'workflows logs',
  summary: "Show a run's log lines, or follow them until it ends",
  example: 'svc workflows logs run_01b8dac5 -f',
  streams: 'always',
  args: z.object({
    run: RunArg,
    step: z.string().optional().describe('only lines of this step: <job>.<step>'),
    follow: z.boolean().default(false).describe('follow until the run ends'),
  }),
  short: { follow: 'f' },
  async run({ run, step, follow }, context) {
    if (follow) return streamed(await followLogs(context, run, step));
    let count = 0;
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { items: RunLogLine[]; nextCursor: string | null } = await context.client.call(
        listRunLogs,
        {
          params: { runId: run as never },
          query: { limit: 1000, cursor, stepId: step },
        },
      );
      for (const line of page.items) context.ui.record(line, (shown) => logLine(shown, context));
      count += page.items.length;
      cursor = page.nextCursor;
    }
    if (count === 0) context.ui.note('No log lines.');
    return streamed(0);
  },
});
