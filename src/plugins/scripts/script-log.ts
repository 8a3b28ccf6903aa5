import { redactText } from '../../kit/telemetry/redact.ts';

const MAX_LINES = 5000;
const MAX_MB = 16;
const MAX_BYTES = MAX_MB * 1024 * 1024;
const TAIL_LINES = 10;
const TAIL_LINE_CHARS = 300;

export interface ScriptLog {
  readonly maxMb: number;
  /** Counts output of the script, with what its lines leave out. */
  count(bytes: number): void;
  take(stream: 'stdout' | 'stderr', line: string): void;
  /** Returns the last lines of stderr, masked and shortened. */
  lastErrors(): string[];
}

/**
 * Forwards the lines of a script to the log of its run, up to a number of lines. `onFlood` is called when the script
 * has written too much.
 */
export function createScriptLog(
  { tenantId, log }: { tenantId: string; log(level: 'info' | 'warn', line: string): void },
  onFlood: () => void,
): ScriptLog {
  let lines = 0;
  let bytes = 0;
  let isFlooded = false;
  const errors: string[] = [];
  return {
    maxMb: MAX_MB,
    count(more) {
      bytes += more;
      if (bytes <= MAX_BYTES || isFlooded) return;
      isFlooded = true;
      onFlood();
    },
    take(stream, line) {
      if (isFlooded) return;
      if (stream === 'stderr') {
        errors.push(line);
        if (errors.length > TAIL_LINES) errors.shift();
      }
      lines++;
      if (lines <= MAX_LINES) log(stream === 'stderr' ? 'warn' : 'info', line);
      else if (lines === MAX_LINES + 1) log('warn', `Only the first ${MAX_LINES} lines are kept.`);
    },
    // Masking comes first, because a part of a secret would not be recognized.
    lastErrors: () => errors.map((line) => redactText(line, tenantId).slice(0, TAIL_LINE_CHARS)),
  };
}
