import { expect, test } from 'vitest';
import { formatRecord } from '../../src/cli/log-format.ts';
import { createStyle } from '../../src/cli/style.ts';

const plain = createStyle({}, { NO_COLOR: '1' });

test('what a plugin writes cannot move the cursor or forge a line', () => {
  const record = {
    level: 'error',
    time: 0,
    serviceId: 'rest',
    message: 'first\nsecond \u001b[2J\u009b1m\u2028',
    meta: { title: '\u001b]0;x\u0007', error: { stack: 'Error: a\n  at \u001b[31mb' } },
  };
  const text = formatRecord(JSON.stringify(record), plain);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/);
  expect(text).toContain('first\\nsecond \\x1b[2J\\x9b1m');
  expect(text.split('\n')).toHaveLength(3);
});
