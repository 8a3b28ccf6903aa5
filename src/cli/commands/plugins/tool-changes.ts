import type { PlanChange } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import type { Style } from '../../style.ts';
import { wrap } from '../../wrap.ts';

const WIDTH = 80;
const INDENT = '      ';
const FIELDS = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'];

/**
 * Prints how a tool of an MCP server changes, with whole texts: agents act on descriptions and schemas, so the
 * administrator must see each word.
 */
export function toolChangeLines({ change, name, before, after }: PlanChange, style: Style): string[] {
  const mark = { added: style.green('+'), removed: style.red('-'), changed: style.yellow('~') }[change];
  const [old, next] = [isRecord(before) ? before : {}, isRecord(after) ? after : {}];
  const fields =
    change === 'removed' ? [] : FIELDS.filter((field) => textOf(old[field]) !== textOf(next[field]));
  return [
    `  ${mark} tool ${name}`,
    ...fields.flatMap((field) => [
      ...(change === 'changed' ? fieldLines(field, old[field], style.red('-')) : []),
      ...fieldLines(field, next[field], style.green('+')),
    ]),
  ];
}

function fieldLines(field: string, value: unknown, mark: string): string[] {
  if (value === undefined) return [];
  const [first = '', ...others] = textOf(value)
    .split('\n')
    .flatMap((line) => wrap(line, WIDTH - INDENT.length - 2))
    .flatMap((line) => line.match(new RegExp(`.{1,${WIDTH - INDENT.length - 2}}`, 'gu')) ?? []);
  return [`    ${mark} ${field}`, ...[first, ...others].map((line) => `${INDENT}  ${line}`.trimEnd())];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
