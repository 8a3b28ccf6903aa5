import { expect, test } from 'vitest';
import { readCommands } from '../../scripts/command-table.ts';
import { COMMANDS } from '../../src/cli/command-table/command-table.ts';

test('the command table is generated from the command files; update it with `npm run generate`', async () => {
  const groups = await readCommands();
  const expected = [...groups].flatMap(([group, found]) =>
    found.map(({ command: { name, summary, example, hidden } }) => ({
      ...{ name, summary, group, example },
      ...(hidden ? { hidden } : {}),
    })),
  );
  expect(COMMANDS.map(({ load: _load, ...entry }) => entry)).toEqual(expected);
  const loaded = await Promise.all(COMMANDS.map(({ load }) => load()));
  expect(loaded.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
});
