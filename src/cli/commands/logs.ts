import { join } from 'node:path';
import { z } from 'zod';
import { queryLogs, SERVICE_NAMES } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors.ts';
import { isRecord } from '../../kit/is-record.ts';
import { LOG_LEVELS } from '../../kit/logger.ts';
import { nearest } from '../../kit/nearest.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, streamed } from '../define-command.ts';
import { followKept } from '../kept-stream.ts';
import { formatRecord } from '../log-format.ts';
import { followLogs, lastRecords } from '../log-reader.ts';
import { namedGateway } from '../named-gateway.ts';
import { UsageError } from '../parse-args.ts';
import { type LogChoice, parseSince, toFilter, toQuery } from './logs/filter.ts';
import { latestKept } from './logs/kept-logs.ts';

const SOURCES = [...SERVICE_NAMES, 'supervisor'];
/** Lines of the files that are looked through for those that fit. */
const LOOKED_THROUGH = 50_000;
/** Whoever runs the platform can read its files all the same. */
const FALL_BACK_ON = ['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'SERVICE_UNAVAILABLE', 'STORE_ERROR'];

/** Readable lines, in the order of time; `--json` prints the records as they are. @spec docs/observability.md "Logs" */
export const logs = defineCommand({
  name: 'logs',
  summary: 'Show the latest log lines of the services, or follow them',
  example: 'svc logs -f gateway workflow',
  streams: 'always',
  args: z.object({
    service: z
      .array(z.string())
      .default([])
      .describe(`of ${SOURCES.join(', ')}; default: all`),
    follow: z.boolean().default(false).describe('go on with new lines until Ctrl-C'),
    lines: z.coerce
      .number()
      .int()
      .min(0)
      .default(100)
      .describe('how many earlier lines to show; default 100'),
    since: z.string().optional().describe('only lines since then: 30s, 10m, 2h, 1d ago, or a time'),
    level: z.enum(LOG_LEVELS).optional().describe('this level and those above it'),
    requestId: z.string().optional().describe('lines of one request'),
    traceId: z.string().optional().describe('lines of one trace'),
    run: z.string().optional().describe('lines of one workflow run'),
    plugin: z.string().optional().describe('lines of one plugin'),
    search: z.string().optional().describe('words of the message; the last may be a beginning'),
    raw: z.boolean().default(false).describe('read the log files themselves, which have every line'),
  }),
  positionals: ['service'],
  short: { follow: 'f', lines: 'n' },
  async run({ service, follow, lines, raw, since, run, plugin, ...rest }, context) {
    for (const name of service) requireSource(name);
    const { ui, globals, clock } = context;
    const choice: LogChoice = {
      ...rest,
      services: service,
      runId: run,
      pluginId: plugin,
      since: since === undefined ? undefined : parseSince(since, clock.now()),
      tenantId: globals.namespace,
    };
    const show = (line: string): void => {
      const record = globals.json ? parsed(line) : undefined;
      if (record) ui.record(record, () => line);
      else ui.line(globals.json ? line : formatRecord(line, ui.out));
    };
    if (raw) await showFiles(choice, { follow, lines }, context, show);
    else {
      try {
        await showKept(choice, { follow, lines }, context, show);
      } catch (error) {
        if (!canFallBack(error, context)) throw error;
        await showFiles(choice, { follow, lines }, context, show);
      }
    }
    return streamed(0);
  },
});

/** Undefined for a line that is no record, such as what a crash of the runtime itself prints. */
function parsed(line: string): object | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

interface Extent {
  follow: boolean;
  lines: number;
}

async function showKept(
  choice: LogChoice,
  { follow, lines }: Extent,
  context: CommandContext,
  show: (line: string) => void,
): Promise<void> {
  const query = toQuery(choice);
  if (follow)
    return followKept(context, { path: queryLogs.path, query: { ...query }, count: lines, take: show });
  if (lines === 0) return;
  const records = await latestKept(context, query, lines);
  for (const record of records) show(record);
  if (records.length === 0) context.ui.note('No log lines fit.');
}

/** A platform that is down, or has yet to be started: its files are what there is. Not for one elsewhere. */
function canFallBack(error: unknown, context: CommandContext): boolean {
  const { globals } = context;
  if (namedGateway(context)) return false;
  if (!(error instanceof PlatformError)) return false;
  return FALL_BACK_ON.includes(error.code) || (error.code === 'UNAUTHORIZED' && !globals.token);
}

async function showFiles(
  choice: LogChoice,
  { follow, lines }: Extent,
  { folder, ui }: CommandContext,
  show: (line: string) => void,
): Promise<void> {
  const { logs: logFolder } = folder();
  const chosen = choice.services.length > 0 ? choice.services : SOURCES;
  const files = chosen.map((name) => join(logFolder, `${name}.log`));
  const filter = toFilter(choice);
  const isFiltered = Object.entries(choice).some(
    ([name, value]) => name !== 'services' && value !== undefined,
  );
  const { records, ends } = lastRecords(files, isFiltered && lines > 0 ? LOOKED_THROUGH : lines);
  const fitting = records.filter(filter).slice(-lines);
  if (lines > 0) for (const record of fitting) show(record);
  if (follow) await followLogs(ends, (record) => filter(record) && show(record));
  else if (records.length === 0 && lines > 0) ui.note(`No log lines in ${logFolder} yet.`);
}

function requireSource(name: string): void {
  if (SOURCES.includes(name)) return;
  const meant = nearest(name, SOURCES);
  throw new UsageError(
    `There are no logs of "${name}".${meant ? ` Did you mean ${meant}?` : ''} Services: ${SOURCES.join(', ')}.`,
  );
}
