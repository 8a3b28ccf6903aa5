import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonFaultOffset } from '../../../src/kit/data/json-fault.ts';
import { LiteralPositions, positionAt } from '../../../src/kit/data/literal-positions.ts';

const JSON_TEXT = `{
  "id": "shop",
  "a.b": { "c": [1, { "d": "x, }" }] },
  "webhooks": [
    { "event": "one" },
    { "event": "two", "auth": { "type": "none" } }
  ]
}`;

test.each([
  ['id', 2, 3],
  ['a.b.c[1].d', 3, 23],
  ['webhooks[1]', 6, 5],
  ['webhooks[1].auth.type', 6, 33],
  // A missing key has the position of the value that lacks the key.
  ['webhooks[1].auth.secret', 6, 23],
  ['webhooks[7].auth', 4, 3],
  ['commands', 1, 1],
  ['', 1, 1],
])('%s is at line %i, column %i of the JSON text', (path, line, column) => {
  expect(positionAt(JSON_TEXT, new LiteralPositions(JSON_TEXT).find(path, 0))).toEqual({ line, column });
});

const MODULE = `import { defineManifest } from 'svc-platform/sdk';

// export default { wrong: true }
const jobs = [
  { id: 'clean', cron: \`0 \${'}'} * * *\` },
  { id: 'tidy' /* , not: a key */ },
];
const webhooks: Hook[] = [{ event: 'paid', auth: { type: 'none' } }];

export default defineManifest({
  schema: 'svc.plugin/3',
  'id': 'shop',
  jobs,
  webhooks: webhooks,
  commands: [...more, { id: 'sell' }] as const,
});
`;

test.each([
  ['id', 12, 3],
  ['jobs[1].id', 6, 5],
  ['webhooks[0].auth.type', 8, 52],
  ['commands[1].id', 15, 25],
  ['version', 10, 16],
])('%s is at line %i, column %i of the manifest module', (path, line, column) => {
  const positions = new LiteralPositions(MODULE);
  expect(positionAt(MODULE, positions.find(path, positions.defaultExport()!))).toEqual({ line, column });
});

test('a module without a default export has no position; one that exports itself ends the search', () => {
  expect(new LiteralPositions('export const a = 1;').defaultExport()).toBeUndefined();
  const circular = 'const a = b;\nconst b = a;\nexport default a;\n';
  const positions = new LiteralPositions(circular);
  expect(positions.find('id', positions.defaultExport()!)).toBe(circular.lastIndexOf('a;'));
});

test.each([
  ['{"a": 1,}', 8],
  ['{"a": }', 6],
  ['{"a" 1}', 5],
  ['{a: 1}', 1],
  ['[1 2]', 3],
  ['[1, 2', 5],
  ['{"a": [1}', 8],
  ['{"a": tru}', 6],
  ['{"a": 01}', 6],
  ['{"a": "x\ny"}', 6],
  ['{} // done', 3],
  ['', 0],
  ['  \n', 3],
])('the first syntax error of %j is at offset %i', (text, offset) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(jsonFaultOffset(text)).toBe(offset);
});

test('exactly the texts that JSON.parse accepts have no syntax error', () => {
  const valid = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  const part = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '1',
    '-',
    '0',
    'true',
    ' ',
    '\n',
    '.5',
    'e1',
    '"',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.array(part, { maxLength: 8 }).map((all) => all.join('')),
      ),
      (text) => {
        expect([text, jsonFaultOffset(text) === undefined]).toEqual([text, valid(text)]);
      },
    ),
    { numRuns: 2000 },
  );
});

test('values that fast-check makes are found at their key, whatever the key', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ minLength: 1 }).filter((key) => !/[.[]/.test(key)),
        { minLength: 1, maxLength: 5 },
      ),
      (keys) => {
        const text = keys.reduceRight(
          (inner, key) => `{ "z": [1], ${JSON.stringify(key)}: ${inner} }`,
          '"end"',
        );
        const last = keys.at(-1)!;
        const at = new LiteralPositions(text).find(keys.join('.'), 0);
        expect(text.slice(at).startsWith(JSON.stringify(last))).toBe(true);
      },
    ),
    { examples: [[['z', ' ']]] },
  );
});
