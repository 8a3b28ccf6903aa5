import { expect, test } from 'vitest';
import { createStyle, pairs, table } from '../../src/cli/style.ts';
import { columnsOf, helpWidth, lineWidth, widthOf, wrap, wrapProse } from '../../src/cli/wrap.ts';

const plain = createStyle({}, { NO_COLOR: '1' });

test('a terminal gets whole cells: a column that fits nowhere stands below, one long cell of the last as well', () => {
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

test('a cell is one line, whatever it holds; a first cell that is too long stays where it is', () => {
  expect(table(['a'], [['first\nsecond']], plain, 5).split('\n')).toEqual(['a', 'first second']);
});

test('a long value goes on in its column, and each of several stands on its own line', () => {
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

test('lines are broken at blanks, keep their indent, and count what is seen', () => {
  expect(wrap('  one two three', 9)).toEqual(['  one two', '  three']);
  const red = createStyle({}, { FORCE_COLOR: '1' }).red('three');
  expect([widthOf(red), wrap(`one ${red}`, 9)]).toEqual([5, [`one ${red}`]]);
  expect(wrapProse('one two three\n  svc status --json', 9)).toBe('one two\nthree\n  svc status --json');
});

test('a terminal that does not say how wide it is counts as one of 80', () => {
  const unsized = { isTTY: true, columns: 0 };
  expect([columnsOf(unsized), helpWidth(unsized), lineWidth(unsized), columnsOf({ columns: 132 })]).toEqual([
    80, 80, 80, 132,
  ]);
});
