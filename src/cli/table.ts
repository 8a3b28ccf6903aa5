import { oneLine } from '../kit/security/escape-controls.ts';
import type { Style } from './style.ts';
import { columnsOf, widthOf, wrap } from './wrap.ts';

/**
 * Renders a table. On a narrow terminal, columns that do not fit are printed below their row, so that long values can
 * be copied.
 */
export function table(
  headings: string[],
  rows: string[][],
  style: Style,
  width: number = terminalWidth(),
): string {
  const cells = rows.map((row) => headings.map((_, column) => oneLine(row[column] ?? '')));
  const all = headings.map((_, column) => column);
  const widths = all.map((column) => Math.max(...[headings, ...cells].map((row) => widthOf(row[column]!))));
  const hasValues = (column: number): boolean => cells.some((row) => !isBlank(row[column]));
  const columns = fits(all, widths, width) ? all : all.filter(hasValues);
  const mostly = (column: number, start: number): boolean => {
    const filled = cells.map((row) => row[column]!).filter((cell) => !isBlank(cell));
    return filled.filter((cell) => start + widthOf(cell) <= width).length * 2 > filled.length;
  };
  let inline = columns.length;
  const isTight = (): boolean => {
    const last = columns[inline - 1]!;
    return (
      fits(columns.slice(0, inline), widths, width) || mostly(last, offsetOf(columns, inline - 1, widths))
    );
  };
  while (inline > 1 && !isTight()) inline--;
  const line = (row: string[], count: number): string =>
    columns
      .slice(0, count)
      .map((column) => row[column]! + ' '.repeat(widths[column]! - widthOf(row[column]!)))
      .join('  ')
      .trimEnd();
  return [
    style.dim(line(headings, inline)),
    ...cells.flatMap((row) => {
      const count = widthOf(line(row, inline)) > width ? Math.max(1, inline - 1) : inline;
      return [line(row, count), ...rest(row, columns.slice(count), headings, style, width)];
    }),
  ].join('\n');
}

function offsetOf(columns: number[], index: number, widths: number[]): number {
  return columns.slice(0, index).reduce((sum, column) => sum + widths[column]! + 2, 0);
}

function rest(row: string[], columns: number[], headings: string[], style: Style, width: number): string[] {
  const lines: string[] = [];
  for (const column of columns) {
    if (isBlank(row[column])) continue;
    const part = `${headings[column] ? `${style.dim(headings[column])} ` : ''}${row[column]}`;
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last) + 2 + widthOf(part) <= width)
      lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(...wrap(`    ${part}`, width));
  }
  return lines;
}

function fits(columns: number[], widths: number[], width: number): boolean {
  return offsetOf(columns, columns.length, widths) - 2 <= width;
}

const isBlank = (cell: string | undefined): boolean => cell === undefined || cell === '' || cell === '-';

/** Returns the terminal width. The width is infinite for pipes, so that each row stays on one line. */
function terminalWidth(): number {
  return process.stdout.isTTY ? columnsOf(process.stdout) : Number.POSITIVE_INFINITY;
}

/** Formats names and values in two aligned columns. Long values wrap within their column. */
export function pairs(
  entries: Array<[string, string]>,
  style: Style,
  width: number = terminalWidth(),
): string {
  const left = Math.max(...entries.map(([name]) => name.length));
  return entries
    .map(([name, value]) => {
      const lines = value.split('\n').flatMap((line) => wrap(line, width - left - 2));
      return `${style.dim(name.padEnd(left))}  ${lines.join(`\n${' '.repeat(left + 2)}`)}`;
    })
    .join('\n');
}
