import { join } from 'node:path';
import { z } from 'zod';
import { queryLogs, SERVICE_NAMES } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { nearest } from '../../../kit/data/nearest.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { LOG_LEVELS } from '../../../kit/telemetry/logger.ts';
import type { CommandContext } from '../../context.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { followStored } from '../../follow-stored.ts';
import { loadRecordFormat } from '../../log-format.ts';
import { followLogs, lastRecords } from '../../log-reader.ts';
import { UsageError } from '../../parse-args.ts';
import { selectedGateway } from '../../selected-gateway.ts';
import { type LogChoice, parseSince, toFilter, toQuery } from './filter.ts';
import { latestStored } from './latest-stored.ts';

const SOURCES = [...SERVICE_NAMES, 'supervisor'];
const MAX_SEARCHED_LINES = 50_000;
/** Error codes after which the local log files are read instead of the stored records. */
const FALLBACK_CODES = ['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'SERVICE_UNAVAILABLE', 'STORE_ERROR'];

/** Prints log lines in order of time. `--json` prints the unchanged records. @spec docs/observability.md "Logs" */
export const logs = defineCommand({
  name: 'logs',
  summary: 'Show the latest log lines of the services, or follow them',
  example: 'svc logs -f gateway workflow',
  streams: 'always',
  args: z.object({
    service: z
      .array(z.string())
      .default([])
      .describe(`one or more of ${SOURCES.join(', ')}; default: all`),
    follow: z.boolean().default(false).describe('follow new lines until Ctrl-C'),
    lines: z.coerce.number().int().min(0).default(100).describe('number of earlier lines; default 100'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    level: z.enum(LOG_LEVELS).optional().describe('this level and above'),
    requestId: z.string().optional().describe('lines of one request'),
    traceId: z.string().optional().describe('lines of one trace'),
    run: z.string().optional().describe('lines of one workflow run'),
    plugin: z.string().optional().describe('lines of one plugin'),
    search: z.string().optional().describe('words of the message; the last one may be a prefix'),
    raw: z.boolean().default(false).describe('read the log files, which contain all lines'),
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
    const format = globals.json ? String : await loadRecordFormat(ui.out);
    const show = (line: string): void => {
      const record = globals.json ? parsed(line) : undefined;
      if (record) ui.record(record, () => line);
      else ui.line(format(line));
    };
    if (raw) await showFiles(choice, { follow, lines }, context, show);
    else {
      try {
        await showStored(choice, { follow, lines }, context, show);
      } catch (error) {
        if (!canFallBack(error, context)) throw error;
        await showFiles(choice, { follow, lines }, context, show);
      }
    }
    return streamed(0);
  },
});

/** Parses a log record. Returns undefined for any other line, such as a crash message of the runtime. */
function parsed(line: string): object | undefined {
  try {
    const record: unknown = JSON.parse(line);
    return isRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

interface Range {
  follow: boolean;
  lines: number;
}

async function showStored(
  choice: LogChoice,
  { follow, lines }: Range,
  context: CommandContext,
  show: (line: string) => void,
): Promise<void> {
  const query = toQuery(choice);
  if (follow)
    return followStored(context, { path: queryLogs.path, query: { ...query }, count: lines, take: show });
  if (lines === 0) return;
  const records = await latestStored(context, query, lines);
  for (const record of records) show(record);
  if (records.length === 0) context.ui.note('No matching log lines.');
}

/**
 * Returns whether the local log files are read after a failed query. The fallback applies only to the local platform,
 * not to a selected gateway.
 */
function canFallBack(error: unknown, context: CommandContext): boolean {
  const { globals } = context;
  if (selectedGateway(context)) return false;
  if (!(error instanceof PlatformError)) return false;
  return FALLBACK_CODES.includes(error.code) || (error.code === 'UNAUTHORIZED' && !globals.token);
}

async function showFiles(
  choice: LogChoice,
  { follow, lines }: Range,
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
  const { records, ends } = lastRecords(files, isFiltered && lines > 0 ? MAX_SEARCHED_LINES : lines);
  const matching = records.filter(filter).slice(-lines);
  if (lines > 0) for (const record of matching) show(record);
  if (follow) await followLogs(ends, (record) => filter(record) && show(record));
  else if (records.length === 0 && lines > 0) ui.note(`No log lines in ${logFolder} yet.`);
}

function requireSource(name: string): void {
  if (SOURCES.includes(name)) return;
  const suggestion = nearest(name, SOURCES);
  throw new UsageError(
    `Unknown log source "${name}".${suggestion ? ` Did you mean ${suggestion}?` : ''} Sources: ${SOURCES.join(', ')}.`,
  );
}
