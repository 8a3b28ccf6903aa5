import type { Style } from './style.ts';

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
  out: Style;
  err: Style;
}

export function createUi({ stdout, stderr, quiet, out, err }: UiOptions): Ui {
  return {
    note(text) {
      if (!quiet) stderr.write(`${text}\n`);
    },
    warn: (text) => void stderr.write(`${err.yellow('!')} ${text}\n`),
    line: (text) => void stdout.write(`${text}\n`),
    raw: (text) => void stdout.write(text),
    interactive: stdout.isTTY === true,
    out,
    err,
  };
}
