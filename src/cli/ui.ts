import { harmless } from './harmless.ts';
import type { Style } from './style.ts';
import { lineWidth, wrapProse } from './wrap.ts';

/** What a command tells beside its result. Everything goes to stderr except `line`, the stream of a streaming command. */
export interface Ui {
  /** A remark; `--quiet` silences it. */
  note(text: string): void;
  /** Something to act on. */
  warn(text: string): void;
  /** One line of a stream, on stdout. */
  line(text: string): void;
  /** Text as it is, on stdout: many lines of a stream at once. */
  raw(text: string | Buffer): void;
  /** Whether a person reads stdout as it comes. */
  readonly interactive: boolean;
  readonly out: Style;
  readonly err: Style;
}

export interface UiOptions {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  quiet: boolean;
  /** Lines are JSON documents, which stay as they are. */
  json: boolean;
  out: Style;
  err: Style;
}

export function createUi({ stdout, stderr, quiet, json, out, err }: UiOptions): Ui {
  const tell = (text: string): void => void stderr.write(`${wrapProse(harmless(text), lineWidth(stderr))}\n`);
  return {
    note(text) {
      if (!quiet) tell(text);
    },
    warn: (text) => tell(`${err.yellow('!')} ${text}`),
    line: (text) => void stdout.write(`${json ? text : harmless(text)}\n`),
    raw: (text) => void stdout.write(text),
    interactive: stdout.isTTY === true,
    out,
    err,
  };
}
