import { expect, test } from 'vitest';
import { portableSchema } from '../../../src/plugins/index.ts';
import { toolSchemaFault } from '../../../src/plugins/mcp/tool-schemas.ts';

const SELF = { $ref: '#' };
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });

test.each([
  ['a list of children', object({ children: { type: 'array', items: SELF } })],
  ['two children', object({ left: SELF, right: SELF })],
  ['a next node or null', object({ next: { anyOf: [SELF, { type: 'null' }] } })],
  [
    'any JSON value',
    object(
      { value: { $ref: '#/$defs/json' } },
      {
        $defs: {
          json: {
            anyOf: [
              { type: ['string', 'number', 'boolean', 'null'] },
              { type: 'array', items: { $ref: '#/$defs/json' } },
              { type: 'object', additionalProperties: { $ref: '#/$defs/json' } },
            ],
          },
        },
      },
    ),
  ],
  [
    'alternatives with different properties',
    { type: 'object', anyOf: [object({ all: SELF }), object({ any: SELF })] },
  ],
  ['a name with an escaped slash', object({ a: { $ref: '#/$defs/a~1b%25' } }, { $defs: { 'a/b%': {} } })],
])('a schema may be recursive: %s', (_name, schema) => {
  expect(toolSchemaFault(schema)).toBeUndefined();
});

test.each([
  ['twice in one property', object({ a: { anyOf: [SELF, SELF] } })],
  [
    'in alternatives with the same property',
    { type: 'object', oneOf: [object({ a: SELF }), object({ a: SELF })] },
  ],
  ['by a name and for any name', object({ a: SELF }, { patternProperties: { '^a': SELF } })],
  [
    'for items in two ways',
    { type: 'object', properties: { a: { type: 'array', items: SELF, contains: SELF } } },
  ],
  ['in a condition', object({ a: { if: SELF, else: SELF } })],
  [
    'by an encoded name, over several levels',
    object(
      { a: { $ref: '#/$defs/n%6Fde' } },
      {
        $defs: {
          node: object({
            b: object({ c: { allOf: [{ $ref: '#/$defs/node' }, { not: { $ref: '#/$defs/node' } }] } }),
          }),
        },
      },
    ),
  ],
  [
    'in a chain',
    object(
      { a: { $ref: '#/$defs/d0' } },
      {
        $defs: Object.fromEntries(
          Array.from({ length: 12 }, (_, n) => [
            `d${n}`,
            object({
              a: { allOf: [{ $ref: `#/$defs/d${n}` }, { $ref: `#/$defs/d${Math.min(n + 1, 11)}` }] },
            }),
          ]),
        ),
      },
    ),
  ],
])('a schema that multiplies with each level of a value is refused: %s', (_name, schema) => {
  expect(toolSchemaFault(schema)).toContain('more than 2000 checks of one value');
});

test('names in references are decoded before the parts are counted', () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [
      `level${n}`,
      n === 19
        ? {}
        : { properties: { a: { $ref: `#/$defs/leve%6C${n + 1}` }, b: { $ref: `#/$defs/leve%6C${n + 1}` } } },
    ]),
  );
  const schema = object({ a: { $ref: '#/$defs/level0' } }, { $defs });
  expect(toolSchemaFault(schema)).toContain('more than 20000 parts');
});

test.each(['#/$defs/%', '#/$defs/a%ff', '#/$defs/b', '#/properties/a'])(
  'the reference %s has no target',
  ($ref) => {
    expect(toolSchemaFault(object({ a: { $ref } }, { $defs: { a: {} } }))).toContain('has no target');
  },
);

test('a cycle of conditions is refused', () => {
  expect(toolSchemaFault({ type: 'object', not: { if: { $ref: '#' } } })).toContain(
    'refers to itself without an end',
  );
});

test('no schema makes its check asynchronous', () => {
  const schema = { $async: true, type: 'object', properties: { $async: { type: 'string' } } };
  expect(portableSchema(schema)).toEqual({ type: 'object', properties: { $async: { type: 'string' } } });
});
