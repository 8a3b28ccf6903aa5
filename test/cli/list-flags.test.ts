import { expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table/command-table.ts';
import { pageOf } from '../../src/cli/list-page.ts';
import { parseArgs } from '../../src/cli/parse-args.ts';

const LISTS = COMMANDS.map(({ name }) => name).filter((name) => / (?:list|runs|deliveries)$/.test(name));

test('the command table contains the list commands that these tests cover', () => {
  expect(LISTS.length).toBeGreaterThanOrEqual(10);
});

test.each(LISTS)('%s takes -n, --limit and --cursor', async (name) => {
  const command = await COMMANDS.find((entry) => entry.name === name)!.load();
  const parse = (...argv: string[]): object => {
    const parsed = parseArgs(command, argv);
    if ('help' in parsed) throw new Error(`${name} printed its help`);
    return parsed.args;
  };
  expect(parse('-n', '2')).toMatchObject({ limit: 2 });
  expect(parse('--limit', '2')).toMatchObject({ limit: 2 });
  expect(String((parse('--cursor', '7') as { cursor: unknown }).cursor)).toBe('7');
  expect(() => parse('-n', '0')).toThrow();
});

test('consecutive pages by cursor contain each item once, and the last has no cursor', () => {
  const all = ['a', 'b', 'c', 'd', 'e'];
  const seen: string[] = [];
  let cursor: string | undefined;
  for (let pages = 1; ; pages++) {
    const page = pageOf(all, { limit: 2, cursor }, (item) => item);
    seen.push(...page.items);
    if (page.nextCursor === null) {
      expect(pages).toBe(3);
      break;
    }
    cursor = page.nextCursor;
  }
  expect(seen).toEqual(all);
  expect(() => pageOf(all, { cursor: 'gone' }, (item) => item)).toThrow('no longer contains "gone"');
});
