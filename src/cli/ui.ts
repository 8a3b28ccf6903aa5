import { harmless, harmlessData, harmlessJson, harmlessLines, jsonText } from './harmless.ts';
import { completeRecords, type RecordShape } from './json-records.ts';
import type { Style } from './style.ts';
import { lineWidth, wrapProse } from './wrap.ts';

/** What a command tells beside its result. Everything goes to stderr except `line`, the stream of a streaming command. */
export interface Ui {
  /** A remark in plain text; `--quiet` silences it. */
  note(text: string): void;
  /** Something to act on, in plain text. */
  warn(text: string): void;
  /** A remark with colours: `text` formats a copy of `data` whose texts hold neither control characters nor line ends. */
  noteOf<Data>(data: Data, text: (data: Data, style: Style) => string): void;
  /** The same for something to act on. */
  warnOf<Data>(data: Data, text: (data: Data, style: Style) => string): void;
  /** One line of a stream, on stdout. */
  line(text: string): void;
  /** One record of a stream, on stdout: a JSON document with `--json`, else what `text` makes of it. */
  record<Record extends object>(record: Record, text: (record: Record) => string): void;
  /** Many lines of a stream at once, on stdout; bytes are whole lines of NDJSON, whose values stay as they are. */
  raw(lines: string | Buffer): void;
  /** Whether a person reads stdout as it comes. */
  readonly interactive: boolean;
  readonly out: Style;
  readonly err: Style;
}

/** What is used of `process.stdout` and `process.stderr`. */
interface OutputStream {
  write(text: string | Uint8Array): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface UiOptions {
  stdout: OutputStream;
  stderr: OutputStream;
  quiet: boolean;
  /** Lines are JSON documents: their values stay as they are. */
  json: boolean;
  out: Style;
  err: Style;
  /** That of the command's records. */
  shape?: RecordShape;
}

export function createUi({ stdout, stderr, quiet, json, out, err, shape = {} }: UiOptions): Ui {
  const tell = (text: string): void => void stderr.write(`${wrapProse(harmless(text), lineWidth(stderr))}\n`);
  const note = (text: string): void => {
    if (!quiet) tell(text);
  };
  // Lines below the first are indented, so that none passes for a line of its own.
  const warn = (text: string): void => tell(`${err.yellow('!')} ${text.replaceAll('\n', '\n  ')}`);
  return {
    note: (text) => note(harmlessData(text)),
    warn: (text) => warn(harmlessData(text)),
    noteOf: (data, text) => note(text(harmlessLines(data), err)),
    warnOf: (data, text) => warn(text(harmlessLines(data), err)),
    line: (text) => void stdout.write(`${json ? harmlessJson(text) : harmless(text)}\n`),
    record(record, text) {
      const line = json ? jsonText(completeRecords(record, shape)) : harmless(text(harmlessData(record)));
      stdout.write(`${line}\n`);
    },
    raw: (lines) => void stdout.write(typeof lines === 'string' ? harmless(lines) : harmlessBytes(lines)),
    interactive: stdout.isTTY === true,
    out,
    err,
  };
}

/** A service writes plain ASCII nearly always: only other lines are decoded. */
function harmlessBytes(lines: Buffer): string | Buffer {
  return lines.every((byte) => byte < 0x7f) ? lines : harmlessJson(lines.toString());
}
