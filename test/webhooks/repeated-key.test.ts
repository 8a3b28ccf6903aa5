import { expect, test } from 'vitest';
import { repeatsKey } from '../../src/webhooks/schemes/repeated-key.ts';

test.each([
  ['value.0.state', '{"value":[{"state":"a"}]}', false],
  ['value.0.state', '{"value":[{"state":"a","state":"b"}]}', true],
  ['value.0.state', '{"value":[{"state":"a","st\\u0061te":"b"}]}', true],
  ['value.0.state', '{"value":[{"state":"a"},{"state":"b"}]}', false],
  ['value.0.state', '{"value":[{"state":"a"},{"state":"b","state":"c"}]}', false],
  ['value.1.state', '{"value":[[1,{"state":0}],{"state":"b","state":"c"}]}', true],
  ['value.0.state', '{"value":[],"value":[{"state":"a"}]}', true],
  ['0.id', '[{"id":1,"data":{"id":1}}]', false],
  ['0.id', '[{"id":1,"data":[1,2],"id":2}]', true],
  ['1.id', '[{"id":1,"id":2},{"id":3}]', false],
])('whether %s is repeated in %s: %s', (path, body, isRepeated) => {
  expect(repeatsKey(Buffer.from(body), path.split('.'))).toBe(isRepeated);
});

test('strings of many megabytes are read, and a string that is not closed ends the text', () => {
  const long = 'x'.repeat(20_000_000);
  expect(repeatsKey(Buffer.from(`{"long":"${long}","id":1,"id":2}`), ['id'])).toBe(true);
  expect(repeatsKey(Buffer.from(`{"long":"${long}","id":1}`), ['id'])).toBe(false);
  expect(repeatsKey(Buffer.from('{"id":1,"a\\'), ['id'])).toBe(false);
});
