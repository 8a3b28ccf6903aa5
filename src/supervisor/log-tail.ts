import { EVENT_LINE } from '../kit/telemetry/analytics.ts';

const MAX_LINES = 20;
const MAX_BYTES = 64 * 1024;

/** The last lines of a log. They are kept unparsed, because they are needed only after a crash. */
export interface LogTail {
  push(lines: Buffer): void;
  lines(): string[];
  /** Returns the message of the last fatal or error record, if any. */
  lastErrorMessage(): string | undefined;
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
      .slice(-MAX_LINES);
  }
  return {
    push(block) {
      blocks.push(block);
      size += block.length;
      while (blocks.length > 1 && size - blocks[0]!.length >= MAX_BYTES) size -= blocks.shift()!.length;
    },
    lines,
    lastErrorMessage() {
      // A failed request is not the cause of a crash.
      const records = lines()
        .map(parseRecord)
        .filter(({ layer }) => layer !== 'http');
      const lastMessage = (levels: string[]) =>
        records.findLast((record) => levels.includes(record.level))?.message;
      return lastMessage(['fatal']) ?? lastMessage(['error']);
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
