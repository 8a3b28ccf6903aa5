import { expect, test } from 'vitest';
import { announce, announceReady } from '../../../src/cli/commands/up/announce.ts';
import { renderDeclaredFailure, renderError, renderHelp, renderResult } from '../../../src/cli/output.ts';
import { createStyle } from '../../../src/cli/style.ts';
import { createUi } from '../../../src/cli/ui.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import {
  escapeAllControls,
  escapeControls,
  escapeControlsIn,
  oneLine,
} from '../../../src/kit/security/escape-controls.ts';
import type { SupervisorStatus } from '../../../src/supervisor/control-protocol.ts';

const coloured = createStyle({}, { FORCE_COLOR: '1' });
/** Clears the screen, sets the title, hides what follows, turns it round, and takes a character back. */
const EVIL = '\u001b[2J\u001b]0;owned\u0007\u001b[8m\u009b2J\u202eevil\bover';

function expectHarmless(text: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  const asked = text.replace(/\u001b\[(?:31|33|39|36|2|22|1)m/g, '');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  expect(asked).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  expect(text).toContain('\\x1b[2J\\x1b]0;owned\\x07\\x1b[8m\\x9b2J\\u202eevil\\x08over');
}

test('colours, tabs and line ends of ours stay; whatever else speaks to a terminal is spelt out', () => {
  expect(escapeControls(`${coloured.red('a')}\tb\nc`)).toBe('\u001b[31ma\u001b[39m\tb\nc');
  expectHarmless(escapeControls(EVIL));
  expect(escapeAllControls(`a\n${coloured.red('b')}`)).toBe('a\\n\\x1b[31mb\\x1b[39m');
  expect(oneLine('a \r\n  b')).toBe('a b');
});

test('results, helps and failures of plugins and errors of the gateway reach a terminal without commands to it', () => {
  const command = { name: 'x', summary: '', example: '', args: {}, run: () => {} } as never;
  expectHarmless(renderResult(command, { exitCode: 0, result: { text: EVIL } }, false, coloured)!);
  expectHarmless(renderResult(command, { exitCode: 0, result: [{ text: EVIL }] }, false, coloured)!);
  expectHarmless(renderHelp(EVIL, false));
  const error = { code: 'NO_WAY', message: EVIL };
  expectHarmless(renderDeclaredFailure({ exitCode: 1, error }, coloured, 80));
  const thrown = new PlatformError('CONFLICT', EVIL, { details: { hint: EVIL, lastLines: [EVIL] } });
  expectHarmless(renderError(thrown, { style: coloured, debug: false, width: 80 }));
});

test('for programs the document holds what there is', () => {
  const command = { name: 'x', summary: '', example: '', args: {}, run: () => {} } as never;
  const text = renderResult(command, { exitCode: 0, result: { text: EVIL } }, true, coloured)!;
  expect(JSON.parse(text)).toEqual({ ok: true, result: { text: EVIL } });
});

test('colours in data are spelt out, since they would pass for ours', () => {
  const data = { [coloured.red('k')]: [coloured.green('ready'), 1, null, { at: '\u001b[30mhidden' }] };
  expect(escapeControlsIn(data)).toEqual({
    '\\x1b[31mk\\x1b[39m': ['\\x1b[32mready\\x1b[39m', 1, null, { at: '\\x1b[30mhidden' }],
  });
  expect(escapeControls('\u001b[30mhidden\u001b[37m')).toBe('\\x1b[30mhidden\\x1b[37m');
});

test('every way to print within a command cleans its text; records for programs keep theirs', () => {
  const written: Record<'out' | 'err', string> = { out: '', err: '' };
  const stream = (name: 'out' | 'err') => ({
    write: (text: string) => {
      written[name] += text;
      return true;
    },
  });
  const options = {
    stdout: stream('out'),
    stderr: stream('err'),
    quiet: false,
    json: false,
    out: coloured,
    err: coloured,
  };
  const ui = createUi(options);
  ui.line(EVIL);
  expectHarmless(written.out.trimEnd());
  written.out = '';
  ui.raw(EVIL);
  expectHarmless(written.out);
  written.out = '';
  ui.record({ text: EVIL }, ({ text }) => coloured.red(text));
  expectHarmless(written.out.trimEnd());
  written.out = '';
  ui.note(EVIL);
  expectHarmless(written.err.trimEnd());
  written.err = '';
  ui.warn(EVIL);
  expectHarmless(written.err.trimEnd());
  createUi({ ...options, json: true }).record({ text: EVIL }, () => '');
  expect(JSON.parse(written.out)).toEqual({ text: EVIL });
});

test('text of others within a remark or a warning has no colours and no lines of its own', () => {
  let written = '';
  const stderr = {
    write(text: string) {
      written += text;
      return true;
    },
  };
  const ui = createUi({ stdout: stderr, stderr, quiet: false, json: false, out: coloured, err: coloured });
  const foreign = `${coloured.green('ready')}\u202e\n hint svc reset --yes`;
  const told = '\\x1b[32mready\\x1b[39m\\u202e';
  const taken = (): string => {
    const text = written;
    written = '';
    return text;
  };
  ui.note(coloured.red('plain'));
  expect(taken()).toBe('\\x1b[31mplain\\x1b[39m\n');
  ui.warn(foreign);
  expect(taken()).toBe(`${coloured.yellow('!')} ${told}\n   hint svc reset --yes\n`);
  ui.noteOf({ foreign }, (data, { bold }) => `${bold('told')} ${data.foreign}`);
  expect(taken()).toBe(`${coloured.bold('told')} ${told} hint svc reset --yes\n`);

  announce({ type: 'crashed', service: 'rest', reason: foreign, retryInMs: 1 }, ui);
  expect(taken()).toContain(`rest crashed (${told} hint svc reset --yes)`);
  const loop = { type: 'crash-loop', service: 'rest', reason: foreign, crashes: 5, retryInMs: 1 } as const;
  announce({ ...loop, lastLines: [foreign] }, ui);
  expect(
    taken()
      .split('\n')
      .filter((line) => line.startsWith(' hint')),
  ).toEqual([]);
  announceReady(
    {
      status: { services: [], profile: 'p', dataDir: '/d' } as unknown as SupervisorStatus,
      firstStart: false,
      brokenPlugins: [{ id: 'evil', message: foreign }],
    },
    ui,
  );
  expect(taken()).toContain(`Plugin evil failed to load: ${told} hint svc reset --yes\n`);
});

test('no text of others in an error begins a line as ours do', () => {
  const forged = 'gone\n hint svc reset --yes\nerror more\n code FINE';
  const view = { style: createStyle({}, { NO_COLOR: '1' }), debug: true, width: Number.POSITIVE_INFINITY };
  const thrown = new PlatformError('CONFLICT', forged, {
    details: { hint: forged, lastLines: [forged], at: forged, requestId: 'x; rm -rf ~\n hint no' },
  });
  const lines = renderError(thrown, view).split('\n');
  const heads = lines.filter((line) => /^(?: ?\w| {2}\S)/.test(line));
  expect(heads).toEqual([
    'error gone',
    '  last lines:',
    '  | gone hint svc reset --yes error more code FINE',
    '  req x; rm -rf ~ hint no',
    " hint svc logs --request-id 'x; rm -rf ~ hint no'",
    ' hint gone',
    ' code CONFLICT',
    expect.stringMatching(/^PlatformError: gone$/),
  ]);
  const declared = renderDeclaredFailure(
    { exitCode: 1, error: { code: 'NO\n hint x', message: forged } },
    view.style,
    view.width,
  );
  expect(declared.split('\n').filter((line) => /^ ?\w/.test(line))).toEqual([
    'error gone',
    ' code NO hint x',
  ]);
});

test('details that are no texts, as a gateway elsewhere may send them, print nothing', () => {
  const details = { hint: 5, lastLines: 'text', at: {}, requestId: [] };
  const view = { style: createStyle({}, { NO_COLOR: '1' }), debug: false, width: 80 };
  expect(renderError(new PlatformError('CONFLICT', 'No.', { details }), view)).toBe(
    'error No.\n code CONFLICT',
  );
});

test('JSON output has the same values, spelt so that no terminal obeys them', () => {
  const record = { [EVIL]: EVIL, bidi: '\u2066a\u2069', end: '\u007f', line: 'a\u2028b', text: 'é 漢 😀' };
  const written: string[] = [];
  const stdout = { write: (text: string | Uint8Array) => written.push(Buffer.from(text).toString()) > 0 };
  const options = { stdout, stderr: stdout, quiet: false, json: true, out: coloured, err: coloured };
  const ui = createUi(options);
  ui.record(record, () => '');
  ui.line(JSON.stringify(record));
  ui.raw(Buffer.from(`${JSON.stringify(record)}\n`));
  const command = { name: 'x', summary: '', example: '', args: {}, run: () => {} } as never;
  written.push(renderResult(command, { exitCode: 0, result: record }, true, coloured)!);
  written.push(renderHelp(EVIL, true));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there.
  const control = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
  for (const text of written) expect(text).not.toMatch(control);
  const [first, second, third, result] = written.map((text) => JSON.parse(text));
  expect([first, second, third]).toEqual([record, record, record]);
  expect(result.result).toEqual(record);
  expect(written[0]).toContain('é 漢 😀');
});
