import { join } from 'node:path';
import { z } from 'zod';
import { SERVICE_NAMES } from '../../contracts/index.ts';
import { nearest } from '../../kit/nearest.ts';
import { defineCommand, streamed } from '../define-command.ts';
import { formatRecord } from '../log-format.ts';
import { followLogs, lastRecords } from '../log-reader.ts';
import { UsageError } from '../parse-args.ts';

const SOURCES = [...SERVICE_NAMES, 'supervisor'];

/** Readable lines, in the order of time; `--json` prints the records as they are. @spec docs/operations.md "svc logs" */
export const logs = defineCommand({
  name: 'logs',
  summary: 'Show the latest log lines of the services, or follow them',
  example: 'svc logs -f gateway workflow',
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
  }),
  positionals: ['service'],
  short: { follow: 'f', lines: 'n' },
  async run({ service, follow, lines }, { folder, ui, globals }) {
    for (const name of service) requireSource(name);
    const chosen = service.length > 0 ? service : SOURCES;
    const files = chosen.map((name) => join(folder().logs, `${name}.log`));
    const show = (record: string): void => ui.line(globals.json ? record : formatRecord(record, ui.out));
    const { records, ends } = lastRecords(files, lines);
    for (const record of records) show(record);
    if (follow) await followLogs(ends, show);
    else if (records.length === 0) ui.note(`No log lines in ${folder().logs} yet.`);
    return streamed(0);
  },
});

function requireSource(name: string): void {
  if (SOURCES.includes(name)) return;
  const meant = nearest(name, SOURCES);
  throw new UsageError(
    `There are no logs of "${name}".${meant ? ` Did you mean ${meant}?` : ''} Services: ${SOURCES.join(', ')}.`,
  );
}
