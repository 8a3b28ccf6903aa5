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

test('the line of a request does not say twice what its message says', () => {
  const meta = { method: 'GET', route: '/health', status: 200, durationMs: 1.5 };
  const line = (message: string) =>
    formatRecord(JSON.stringify({ level: 'info', time: 0, serviceId: 'rest', message, meta }), plain);
  expect(line('GET /health 200')).toMatch(/rest {8}GET \/health 200 {2}durationMs=1.5$/);
  expect(line('another')).toContain('method=GET route=/health status=200 durationMs=1.5');
});

test("the stack of a plugin's error stands below its line, in the lines it has", () => {
  const meta = { code: 'EXECUTION_ERROR', at: 'main.ts:4:9', stack: 'Error: no\n    at go (main.ts:4:9)' };
  const record = { level: 'error', time: 0, serviceId: 'rest', message: '"main.ts#go" failed: no', meta };
  expect(formatRecord(JSON.stringify(record), plain).split('\n')).toEqual([
    expect.stringMatching(/code=EXECUTION_ERROR at=main\.ts:4:9$/),
    '    Error: no',
    '        at go (main.ts:4:9)',
  ]);
});
