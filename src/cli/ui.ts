import {
  escapeControls,
  escapeControlsIn,
  escapeControlsInJson,
  escapeToSingleLines,
  jsonText,
} from '../kit/security/escape-controls.ts';
import { completeRecords, type RecordShape } from './json-records.ts';
import type { Style } from './style.ts';
import { lineWidth, wrapProse } from './wrap.ts';

/** Prints everything except the result of a command: notes and warnings to stderr, streams to stdout. */
export interface Ui {
  /** Prints a note in plain text. `--quiet` suppresses notes. */
  note(text: string): void;
  warn(text: string): void;
  /** Prints a coloured note. `text` formats a copy of `data` without control characters and newlines. */
  noteOf<Data>(data: Data, text: (data: Data, style: Style) => string): void;
  /** Prints a coloured warning in the same way as `noteOf`. */
  warnOf<Data>(data: Data, text: (data: Data, style: Style) => string): void;
  /** Prints one line of a stream to stdout. */
  line(text: string): void;
  /** Prints one record of a stream to stdout. The output is JSON with `--json`, and the result of `text` otherwise. */
  record<Record extends object>(record: Record, text: (record: Record) => string): void;
  /** Prints whole lines of a stream to stdout. A buffer must contain NDJSON, whose values stay unchanged. */
  raw(lines: string | Buffer): void;
  readonly interactive: boolean;
  readonly out: Style;
  readonly err: Style;
}

/** The members of `process.stdout` and `process.stderr` that the CLI uses. */
export interface OutputStream {
  write(text: string | Uint8Array): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface UiOptions {
  stdout: OutputStream;
  stderr: OutputStream;
  quiet: boolean;
  /**
   * Whether each output line is a JSON document. If so, control characters are written as JSON escapes, which preserve
   * the values.
   */
  json: boolean;
  out: Style;
  err: Style;
  shape?: RecordShape;
}

export function createUi({ stdout, stderr, quiet, json, out, err, shape = {} }: UiOptions): Ui {
  const print = (text: string): void =>
    void stderr.write(`${wrapProse(escapeControls(text), lineWidth(stderr))}\n`);
  const note = (text: string): void => {
    if (!quiet) print(text);
  };
  // Continuation lines are indented, so that no line looks like a separate message.
  const warn = (text: string): void => print(`${err.yellow('!')} ${text.replaceAll('\n', '\n  ')}`);
  return {
    note: (text) => note(escapeControlsIn(text)),
    warn: (text) => warn(escapeControlsIn(text)),
    noteOf: (data, text) => note(text(escapeToSingleLines(data), err)),
    warnOf: (data, text) => warn(text(escapeToSingleLines(data), err)),
    line: (text) => void stdout.write(`${json ? escapeControlsInJson(text) : escapeControls(text)}\n`),
    record(record, text) {
      const line = json
        ? jsonText(completeRecords(record, shape))
        : escapeControls(text(escapeControlsIn(record)));
      stdout.write(`${line}\n`);
    },
    raw: (lines) =>
      void stdout.write(typeof lines === 'string' ? escapeControls(lines) : escapedBytes(lines)),
    interactive: stdout.isTTY === true,
    out,
    err,
  };
}

/**
 * Escapes control characters in NDJSON. Skips pure ASCII text, because decoding is slow and JSON already escapes ASCII
 * control characters.
 */
function escapedBytes(lines: Buffer): string | Buffer {
  return lines.every((byte) => byte < 0x7f) ? lines : escapeControlsInJson(lines.toString());
}
