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
export function table(
  headings: string[],
  rows: string[][],
  style: Style,
  width: number = terminalWidth(),
): string {
  const all = headings.map((_, column) => column);
  const widths = all.map((column) =>
    Math.max(...[headings, ...rows].map((row) => visible(row[column] ?? '').length)),
  );
  const told = (column: number): boolean => rows.some((row) => !isBlank(row[column]));
  const columns = fits(all, widths, width) ? all : all.filter(told);
  let beside = columns.length;
  while (beside > 1 && !fits(columns.slice(0, beside), widths, width)) beside--;
  const below = columns.slice(beside);
  const line = (row: string[]): string =>
    columns
      .slice(0, beside)
      .map((column) => (row[column] ?? '') + ' '.repeat(widths[column]! - visible(row[column] ?? '').length))
      .join('  ')
      .trimEnd();
  return [
    style.dim(line(headings)),
    ...rows.flatMap((row) => [line(row), ...rest(row, below, headings, style, width)]),
  ].join('\n');
}

/** Where a terminal is too narrow, what has no room beside the rest stands below it, whole, so that it can be copied. */
function rest(row: string[], columns: number[], headings: string[], style: Style, width: number): string[] {
  const lines: string[] = [];
  for (const column of columns) {
    if (isBlank(row[column])) continue;
    const part = `${headings[column] ? `${style.dim(headings[column])} ` : ''}${row[column]}`;
    const last = lines.at(-1);
    if (last !== undefined && visible(last).length + 2 + visible(part).length <= width)
      lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(`    ${part}`);
  }
  return lines;
}

function fits(columns: number[], widths: number[], width: number): boolean {
  return columns.reduce((sum, column) => sum + widths[column]! + 2, -2) <= width;
}

const isBlank = (cell: string | undefined): boolean => cell === undefined || cell === '' || cell === '-';

/** Programs that read a table find every row on one line. */
function terminalWidth(): number {
  const { isTTY, columns } = process.stdout;
  return isTTY ? columns : Number.POSITIVE_INFINITY;
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
