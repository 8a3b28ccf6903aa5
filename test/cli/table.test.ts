import { expect, test } from 'vitest';
import { createStyle } from '../../src/cli/style.ts';
import { pairs, table } from '../../src/cli/table.ts';
import { columnsOf, helpWidth, lineWidth, widthOf, wrap, wrapProse } from '../../src/cli/wrap.ts';

const plain = createStyle({}, { NO_COLOR: '1' });

test('a terminal shows whole cells: a column or a last cell that does not fit is printed below its row', () => {
  const rows = [
    ['a', 'default', 'short'],
    ['b', 'file', 'longer than there is room for'],
    ['c', 'file', 'short'],
  ];
  expect(table(['value', 'from', 'is'], rows, plain, 30).split('\n')).toEqual([
    'value  from     is',
    'a      default  short',
    'b      file',
    '    is longer than there is',
    '    room for',
    'c      file     short',
  ]);
  expect(table(['value', 'from', 'is'], rows, plain, Number.POSITIVE_INFINITY).split('\n')).toHaveLength(4);
});

test('a cell is one line, whatever its content; a first cell that is too long is not moved', () => {
  expect(table(['a'], [['first\nsecond']], plain, 5).split('\n')).toEqual(['a', 'first second']);
});

test('a long value wraps within its column, and each of several values has its own line', () => {
  expect(
    pairs(
      [
        ['name', 'one two three'],
        ['x', 'a\nb'],
      ],
      plain,
      14,
    ).split('\n'),
  ).toEqual(['name  one two', '      three', 'x     a', '      b']);
});

test('lines wrap at spaces, keep their indentation, and are measured by visible width', () => {
  expect(wrap('  one two three', 9)).toEqual(['  one two', '  three']);
  const red = createStyle({}, { FORCE_COLOR: '1' }).red('three');
  expect([widthOf(red), wrap(`one ${red}`, 9)]).toEqual([5, [`one ${red}`]]);
  expect(wrapProse('one two three\n  svc status --json', 9)).toBe('one two\nthree\n  svc status --json');
});

test('a terminal of unknown width counts as 80 columns', () => {
  const unsized = { isTTY: true, columns: 0 };
  expect([columnsOf(unsized), helpWidth(unsized), lineWidth(unsized), columnsOf({ columns: 132 })]).toEqual([
    80, 80, 80, 132,
  ]);
});
