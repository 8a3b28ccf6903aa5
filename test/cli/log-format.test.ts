import { expect, test } from 'vitest';
import { loadRecordFormat } from '../../src/cli/log-format.ts';
import { createStyle } from '../../src/cli/style.ts';
import { escapeControls } from '../../src/kit/security/escape-controls.ts';
import { LOG_LEVELS } from '../../src/kit/telemetry/logger.ts';

const format = await loadRecordFormat(createStyle({}, { NO_COLOR: '1' }));

test('plugin output can neither move the cursor nor forge a line', () => {
  const record = {
    level: 'error',
    time: 0,
    serviceId: 'rest',
    message: 'first\nsecond \u001b[2J\u009b1m\u2028',
    meta: { title: '\u001b]0;x\u0007', error: { stack: 'Error: a\n  at \u001b[31mb' } },
  };
  const text = format(JSON.stringify(record));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/);
  expect(text).toContain('first\\nsecond \\x1b[2J\\x9b1m');
  expect(text.split('\n')).toHaveLength(3);
});

test('the log line of a request does not repeat fields that its message contains', () => {
  const meta = { method: 'GET', route: '/health', status: 200, durationMs: 1.5 };
  const line = (message: string) =>
    format(JSON.stringify({ level: 'info', time: 0, serviceId: 'rest', message, meta }));
  expect(line('GET /health 200')).toMatch(/INFO \(rest\): GET \/health 200 {2}durationMs=1.5$/);
  expect(line('another')).toContain('method=GET route=/health status=200 durationMs=1.5');
});

test('the stack of a plugin error is printed below its line, with its line breaks', () => {
  const meta = { code: 'EXECUTION_ERROR', at: 'main.ts:4:9', stack: 'Error: no\n    at go (main.ts:4:9)' };
  const record = { level: 'error', time: 0, serviceId: 'rest', message: '"main.ts#go" failed: no', meta };
  expect(format(JSON.stringify(record)).split('\n')).toEqual([
    expect.stringMatching(/code=EXECUTION_ERROR at=main\.ts:4:9$/),
    '    Error: no',
    '        at go (main.ts:4:9)',
  ]);
});

test('a terminal gets the colours of the log format, but no colours that a plugin printed', async () => {
  const coloured = await loadRecordFormat(createStyle({ isTTY: true }, {}));
  for (const level of LOG_LEVELS) {
    const record = { level, time: 0, serviceId: 'rest', message: '\u001b[31mred', meta: { a: 1 } };
    const text = coloured(JSON.stringify(record));
    expect(text).toContain('\\x1b[31mred');
    expect(escapeControls(text)).toBe(text);
  }
});
