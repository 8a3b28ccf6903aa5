import { withoutEvents } from '../../../kit/telemetry/analytics.ts';
import { BufferedOutput, type LineOutput } from '../../../kit/telemetry/output.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import type { CommandContext } from '../../context.ts';
import { loadRecordFormat } from '../../log-format.ts';

/** Writes log records to stdout: as JSON lines, or formatted on a terminal. Analytics events are left out. */
export async function serviceOutput(
  { ui, globals }: Pick<CommandContext, 'ui' | 'globals'>,
  onDropped: (count: number) => void,
): Promise<LineOutput> {
  const format = ui.interactive && !globals.json ? await loadRecordFormat(ui.out) : null;
  if (format)
    return {
      write(block) {
        for (const line of recordsOf(block).trimEnd().split('\n')) if (line !== '') ui.line(format(line));
      },
      flush() {},
    };
  const stdout = new BufferedOutput(1, systemClock, onDropped);
  return {
    write(block) {
      const records = recordsOf(block);
      if (records !== '') stdout.write(records);
    },
    flush: () => stdout.flush(),
  };
}

/** Returns the log records of a block of lines. Other processes of the service write several lines at a time. */
const recordsOf = (block: string): string => withoutEvents(Buffer.from(block)).toString('utf8');
