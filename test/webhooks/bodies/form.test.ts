import fc from 'fast-check';
import qs from 'qs';
import { expect, test } from 'vitest';
import { parseForm } from '../../../src/webhooks/bodies/form.ts';

const formOf = (text: string, jsonField?: string) => parseForm(Buffer.from(text), jsonField);

/** Groups pairs as a webhook's payload does. */
function grouped(pairs: Iterable<readonly [string, string]>): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of pairs) {
    const before = fields[name];
    fields[name] = before === undefined ? value : [before, value].flat();
  }
  return fields;
}

/** Characters that matter to the parsers, beside any others. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom('&', '=', '+', '%', '%2', '%26', '%3D', '%C3%A9', '[', ']', '__proto__', ';', '?', '#'),
    fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 2 }),
  ),
  maxLength: 40,
});

test('a form is parsed as URLSearchParams parses it, unless a value is not UTF-8', () => {
  fc.assert(
    fc.property(text, (body) => {
      const parsed = formOf(body);
      // A leading "?" is removed by the constructor.
      const expected = grouped(new URLSearchParams(`&${body}`));
      // Node decodes some texts with a lone "%" to U+FFFD, which the URL standard leaves as it is. For the same reason,
      // other characters than ASCII occur only encoded.
      if (JSON.stringify(expected).includes('\uFFFD')) return;
      expect(parsed.value).toEqual(expected);
    }),
    { numRuns: 3000 },
  );
});

test('a form that was encoded by qs has the same fields as qs reads', () => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1 })
    // qs drops fields named `__proto__`.
    .filter((each) => each.isWellFormed() && each !== '__proto__');
  const value = fc.string({ unit: 'grapheme' }).filter((each) => each.isWellFormed());
  const options = { depth: 0, parseArrays: true, arrayLimit: 2000, parameterLimit: 2000, plainObjects: true };
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 20 }), (pairs) => {
      const encoded = pairs.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
      const expected = qs.parse(encoded, { ...options, allowPrototypes: true, allowEmptyArrays: false });
      const brackets = pairs.some(([each]) => /[[\]]/.test(each));
      if (!brackets) expect({ ...(formOf(encoded).value as object) }).toEqual({ ...expected });
      expect(formOf(encoded).value).toEqual(grouped(pairs));
    }),
    { numRuns: 1000 },
  );
});

test('a form with 10,000 fields is refused before all are decoded', () => {
  expect(formOf('a=1&'.repeat(10_000)).fault).toBe('it has more than 1000 fields');
  expect(formOf('a=1&'.repeat(1000)).fault).toBeUndefined();
});

test('prototype keys are ordinary fields', () => {
  const { value, text } = formOf('__proto__=1&constructor=2&hasOwnProperty=3') as {
    value: object;
    text: string;
  };
  expect(Object.entries(value)).toEqual([
    ['__proto__', '1'],
    ['constructor', '2'],
    ['hasOwnProperty', '3'],
  ]);
  expect(text).toBe('{"__proto__":"1","constructor":"2","hasOwnProperty":"3"}');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test('values that are not UTF-8, or long names, are refused', () => {
  expect(parseForm(Buffer.from('a=\xff', 'latin1')).fault).toBe('it is not UTF-8');
  expect(formOf('a=%ff').fault).toBe('a field is not UTF-8');
  expect(formOf('a=%ED%A0%80').fault).toBe('a field is not UTF-8');
  expect(formOf('+ADw-script+AD4-=1').value).toEqual({ ' ADw-script AD4-': '1' });
  expect(formOf(`${'n'.repeat(1025)}=1`).fault).toBe('the name of a field is longer than 1024 bytes');
});

test('the JSON field becomes its value, and the other fields stay', () => {
  const payload = encodeURIComponent('{"type":"block_actions","user":{"id":"U1"}}');
  expect(formOf(`payload=${payload}&token=t`, 'payload').value).toEqual({
    payload: { type: 'block_actions', user: { id: 'U1' } },
    token: 't',
  });
  expect(formOf('command=%2Fdeploy', 'payload').value).toEqual({ command: '/deploy' });
  expect(formOf('payload={', 'payload').fault).toMatch(/^its field "payload" is not valid JSON: /);
  const deep = `${'['.repeat(512)}${']'.repeat(512)}`;
  expect(formOf(`payload=${deep}`, 'payload').fault).toBe('it nests deeper than 512 levels');
});
