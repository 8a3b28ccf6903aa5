import { EVENT_LINE } from '../../kit/analytics.ts';

const KEPT_LINES = 20;
const KEPT_BYTES = 64 * 1024;

/** The last lines of a log, kept as they came: they are only looked at after a crash. */
export interface LogTail {
  push(lines: Buffer): void;
  lines(): string[];
  /** The message of the last fatal or error record; undefined when there is none. */
  lastComplaint(): string | undefined;
  clear(): void;
}

export function createLogTail(): LogTail {
  let blocks: Buffer[] = [];
  let size = 0;

  function lines(): string[] {
    const text = Buffer.concat(blocks).toString('utf8');
    return text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith(EVENT_LINE))
      .slice(-KEPT_LINES);
  }
  return {
    push(block) {
      blocks.push(block);
      size += block.length;
      while (blocks.length > 1 && size - blocks[0]!.length >= KEPT_BYTES) size -= blocks.shift()!.length;
    },
    lines,
    lastComplaint() {
      // A request that failed earlier is not why the process ended.
      const records = lines()
        .map(parseRecord)
        .filter(({ layer }) => layer !== 'http');
      const said = (levels: string[]) => records.findLast((record) => levels.includes(record.level))?.message;
      return said(['fatal']) ?? said(['error']);
    },
    clear() {
      blocks = [];
      size = 0;
    },
  };
}

function parseRecord(line: string): { level: string; message: string; layer?: unknown } {
  try {
    const { level, message, layer } = JSON.parse(line) as Record<string, unknown>;
    return { level: String(level), message: String(message), layer };
  } catch {
    return { level: 'error', message: line };
  }
}
