import { Chalk, type ChalkInstance } from 'chalk';
import type { Environment } from '../kit/config.ts';

export type Style = ChalkInstance;

/** Colours for one stream: FORCE_COLOR and NO_COLOR decide, else whether it is a terminal. */
export function createStyle(stream: { isTTY?: boolean }, env: Environment): Style {
  return new Chalk({ level: wantsColour(stream, env) ? 1 : 0 });
}

function wantsColour(stream: { isTTY?: boolean }, env: Environment): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false';
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Rows under their headings, two blanks apart; widths count visible characters. */
export function table(headings: string[], rows: string[][], style: Style): string {
  const all = [headings, ...rows];
  const widths = headings.map((_, column) =>
    Math.max(...all.map((row) => visible(row[column] ?? '').length)),
  );
  const line = (row: string[]): string =>
    row
      .map((cell, column) => cell + ' '.repeat(widths[column]! - visible(cell).length))
      .join('  ')
      .trimEnd();
  return [style.dim(line(headings)), ...rows.map(line)].join('\n');
}

/** `name  value` lines, aligned. */
export function pairs(entries: Array<[string, string]>, style: Style): string {
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${style.dim(name.padEnd(width))}  ${value}`).join('\n');
}

function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape character starts a colour
  return text.replace(/\u001b\[[\d;]*m/g, '');
}
