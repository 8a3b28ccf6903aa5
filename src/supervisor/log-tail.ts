import { EVENT_LINE } from '../kit/telemetry/analytics.ts';

const MAX_LINES = 20;
const MAX_BYTES = 64 * 1024;

/** Keeps the last lines of a log. The lines are parsed only after a crash. */
export interface LogTail {
  push(lines: Buffer): void;
  lines(): string[];
  /**
   * Returns the message of the last fatal record. If there is no fatal record, returns the message of the last error
   * record.
   */
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
      // Access log records are skipped, because a failed request does not crash the service.
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
