import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonProblem } from '../../src/studio/ui/json-field/json-problem.ts';

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON texts with an inserted or a removed part, of which many are JSON by chance. */
const almostJson = fc
  .tuple(
    fc.jsonValue().map((value) => JSON.stringify(value, null, 1)),
    fc.nat(),
    fc.nat(2),
    fc.constantFrom(
      '',
      ...'{}[],:"\\0-.eEu \n\r\tt',
      '\u0001',
      '\u007f',
      '\u2028',
      '\ud800',
      '😀',
      'null',
      '1.',
      '\\u00',
      '""',
    ),
  )
  .map(([json, at, removed, inserted]) => {
    const start = at % (json.length + 1);
    return json.slice(0, start) + inserted + json.slice(start + removed);
  });

test('a text has a problem exactly if it is not JSON', () => {
  fc.assert(
    fc.property(fc.oneof(almostJson, fc.string({ unit: 'binary' })), (text) => {
      const problem = jsonProblem(text);
      expect(problem === undefined).toBe(parses(text));
      if (problem) expect(problem.offset + problem.length).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 5000 },
  );
});

test.each([
  ['', 'Line 1, column 1: expected a value.'],
  ['{"a": [1,\n  ]}', 'Line 2, column 3: expected a value.'],
  ['{"a" 1}', 'Line 1, column 6: expected a colon after the name.'],
  ['{"a": 1,}', 'Line 1, column 9: expected a name in double quotes.'],
  ["{'a': 1}", 'Line 1, column 2: expected a name in double quotes or a closing brace }.'],
  ['{"a": 1 "b": 2}', 'Line 1, column 9: expected a comma or a closing brace }.'],
  ['[1 2]', 'Line 1, column 4: expected a comma or a closing bracket ].'],
  ['[,]', 'Line 1, column 2: expected a value or a closing bracket ].'],
  ['1\r\n2', 'Line 2, column 1: expected the end of the text.'],
  ['["a\n"]', 'Line 1, column 4: expected a double quote at the end of the string.'],
  ['["\\x"]', expect.stringMatching(/^Line 1, column 3: a backslash must be followed by /)],
  ['["\t"]', expect.stringMatching(/^Line 1, column 3: a control character must be written as /)],
])('the first mistake in %j is named with its place', (text, message) => {
  expect(jsonProblem(text)?.message).toEqual(message);
});

test('the wrong part is a whole word', () => {
  const text = '{"a": undefined}';
  const { offset, length } = jsonProblem(text)!;
  expect(text.slice(offset, offset + length)).toBe('undefined');
});

test('long strings and deep values are checked', () => {
  expect(jsonProblem(`"${'é\\n'.repeat(1e6)}"`)).toBeUndefined();
  expect(jsonProblem(`${'['.repeat(1e5)}1${']'.repeat(1e5)}`)).toBeUndefined();
});
