import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { commandHelp } from '../../src/cli/command-help.ts';
import { described } from '../../src/cli/command-table/command-entry-text.ts';
import { COMMANDS, findCommand } from '../../src/cli/command-table/command-table.ts';
import { NOUNS } from '../../src/cli/command-table/nouns.ts';
import { splitWords } from '../../src/cli/globals.ts';
import { nounHelp } from '../../src/cli/help.ts';
import { loadRecordFormat } from '../../src/cli/log-format.ts';
import { createStyle } from '../../src/cli/style.ts';
import { table } from '../../src/cli/table.ts';
import { entryFile, version } from '../../src/kit/files/paths.ts';
import { tempDir } from '../support/daemon.ts';
import { userEnvironment } from '../support/user-environment.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-cli-'));
  return () => rm(folder, { recursive: true, force: true });
});

function svc(args: string[], env: Record<string, string> = {}, cwd = folder) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entryFile('cli'), ...args], {
    cwd,
    env: { ...userEnvironment(), ...env },
    encoding: 'utf8',
  });
  return { code: status, stdout, stderr };
}

const json = (args: string[], env?: Record<string, string>) => {
  const { code, stdout, stderr } = svc([...args, '--json'], env);
  return { code, stderr, envelope: JSON.parse(stdout) };
};

const HELP_COLUMNS = 80;
const tooWide = (text: string): string[] => text.split('\n').filter((line) => line.length > HELP_COLUMNS);

test('help lists every visible command by group within 80 columns', () => {
  const { code, stdout } = svc(['--help']);
  expect(code).toBe(0);
  expect(tooWide(stdout)).toEqual([]);
  for (const { name, hidden } of COMMANDS) {
    const [first, verb] = name.split(' ');
    const lines = stdout.split('\n');
    const at = lines.findIndex((line) => line.startsWith(`  ${first} `));
    expect(at !== -1, name).toBe(!hidden);
    if (verb) expect(lines.slice(at + 1, at + 4).join(' '), name).toMatch(new RegExp(`\\b${verb}\\b`));
  }
  expect(svc([]).stdout).toBe(stdout);
  expect(svc(['help']).stdout).toBe(stdout);
});

test('svc commands lists each command with its example; so does the help of its noun', () => {
  const { stdout } = svc(['commands']);
  expect(tooWide(stdout)).toEqual([]);
  for (const entry of COMMANDS.filter(({ hidden }) => !hidden)) {
    const block = described(entry, HELP_COLUMNS).join('\n');
    expect(stdout).toContain(block);
    const noun = entry.name.includes(' ') ? entry.name.split(' ')[0]! : null;
    if (noun) expect(nounHelp(noun, HELP_COLUMNS)).toContain(block);
  }
});

test('the help of each noun describes it', () => {
  const nouns = new Set(
    COMMANDS.filter(({ name }) => name.includes(' ')).map(({ name }) => name.split(' ')[0]!),
  );
  expect([...nouns].filter((noun) => !Object.hasOwn(NOUNS, noun))).toEqual([]);
});

test('the help of every command fits 80 columns and ends with an example', async () => {
  for (const entry of COMMANDS) {
    const help = commandHelp(await entry.load(), HELP_COLUMNS);
    expect(tooWide(help), entry.name).toEqual([]);
    expect(help).toContain(`Usage: svc ${entry.name}`);
    expect(help).toContain(`Example:\n  $ ${entry.example.slice(0, 20)}`);
  }
});

test('the help of each command shows the summary and example of the command table', async () => {
  for (const entry of COMMANDS) {
    const command = await entry.load();
    expect(command).toMatchObject({ name: entry.name, summary: entry.summary, example: entry.example });
  }
  expect(svc(['webhooks', 'provision', '--help']).stdout).toContain('$ svc webhooks provision github push');
  expect(svc(['webhooks', '--help']).stdout).toContain('webhooks revoke');
});

test('the version equals that of the package', () => {
  expect(svc(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  expect(json(['--version']).envelope).toMatchObject({ ok: true, result: { version } });
});

test.each([
  [['sttus'], 'Did you mean "svc status"?'],
  [['webhook', 'provison', 'a', 'b'], 'Did you mean "svc webhooks provision"?'],
  [['webhooks'], 'needs a verb: provision, expect-secret, rotation, list, revoke'],
  [['hosts', 'ls'], 'Did you mean "svc hosts list"?'],
  [['agents', 'start'], 'Did you mean "svc agent run"?'],
  [['plugins', 'frobnicate'], 'Verbs: list, show, install'],
  [['ps'], 'Did you mean "svc status"?'],
  [['explain', 'UNAUTHORISED'], 'Did you mean UNAUTHORIZED?'],
  [['openapi', 'gatway'], '<service>'],
  [['up', '--detatch'], '--detach'],
  [['up', '--port', 'gatway=1'], 'Did you mean gateway?'],
  [['up', '--port', 'gateway=99999'], 'from 0 to 65535'],
  [['restart', 'gatewy'], 'Did you mean gateway?'],
  [['logs', 'superviser'], 'Did you mean supervisor?'],
  [['logs', '--lines', 'many'], '--lines'],
  [['logs', '--since', 'lately'], '--since lately'],
  [['webhooks', 'provision', 'github'], '<event> is missing: event declared by the plugin'],
  [['webhooks', 'provision', 'Git Hub', 'push'], '<plugin>'],
  [['status', 'extra'], 'too many arguments'],
])('%j is a usage error: exit code 2 with a suggestion', (args, words) => {
  const { code, stdout, stderr } = svc(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr.toLowerCase()).toContain(words.toLowerCase());
  const { code: jsonCode, envelope, stderr: jsonStderr } = json(args);
  expect([jsonCode, jsonStderr]).toEqual([2, '']);
  expect(envelope).toMatchObject({ ok: false, error: { code: 'VALIDATION_ERROR' }, result: null, meta: {} });
});

test('global flags are accepted before and after the command', () => {
  expect(splitWords(['--profile', 'webhooks', 'webhooks', '--json', 'list'], () => 2)).toEqual({
    words: ['webhooks', 'list'],
    rest: ['--profile', 'webhooks', '--json'],
  });
  expect(findCommand(['webhook', 'list'])?.name).toBe('webhooks list');
  expect(JSON.parse(svc(['--json', 'status']).stdout).ok).toBe(true);
});

test('status of a stopped platform lists every service as stopped', () => {
  const { code, envelope } = json(['status']);
  expect([code, envelope.ok, envelope.result.running]).toEqual([0, true, false]);
  expect(envelope.result.services.map(({ state }: { state: string }) => state)).toEqual(
    Array(5).fill('stopped'),
  );
  expect(svc(['status']).stdout).toContain('svc init');
  expect(json(['down']).envelope.result).toEqual({ stopped: false, pid: null });
});

test('exit codes distinguish forbidden, unreachable and failed', async () => {
  expect(json(['webhooks', 'list']).envelope.error.code).toBe('UNAUTHORIZED');
  expect(json(['webhooks', 'list']).code).toBe(4);
  const nobody = ['--url', 'http://127.0.0.1:1', '--token', 'x'];
  expect(json(['webhooks', 'list', ...nobody])).toMatchObject({
    code: 5,
    envelope: { error: { code: 'UPSTREAM_UNAVAILABLE' } },
  });
  expect(json(['restart'])).toMatchObject({ code: 5, envelope: { error: { code: 'UPSTREAM_UNAVAILABLE' } } });
  expect(json(['status', '--config', 'absent.json'])).toMatchObject({
    code: 1,
    envelope: { error: { code: 'CONFIG_NOT_FOUND' } },
  });
});

test('configuration faults are printed one per line, and as problems in JSON', async () => {
  const project = await tempDir();
  await writeFile(join(project, 'svc.config.json'), '{"gateway": {"prot": 1}, "rest": {"port": -1}}');
  const { code, stderr } = svc(['up'], {}, project);
  expect(code).toBe(1);
  expect(stderr).toContain(
    '  gateway.prot: is not a known key; did you mean gateway.port?\n  rest.port: must be at least 0',
  );
});

test('colours follow NO_COLOR, FORCE_COLOR and the terminal', () => {
  const level = (isTTY: boolean, env: Record<string, string>) => createStyle({ isTTY }, env).level;
  expect(level(true, {})).toBe(1);
  expect(level(false, {})).toBe(0);
  expect(level(true, { NO_COLOR: '1' })).toBe(0);
  expect(level(true, { TERM: 'dumb' })).toBe(0);
  expect(level(false, { FORCE_COLOR: '1' })).toBe(1);
  expect(level(true, { FORCE_COLOR: '0' })).toBe(0);
});

test('a log record prints as one line with its fields, an error with its stack; other text is unchanged', async () => {
  const format = await loadRecordFormat(createStyle({}, {}));
  const record = {
    level: 'warn',
    time: new Date(2030, 0, 2, 3, 4, 5, 6).getTime(),
    serviceId: 'gateway',
    logsSource: 'platform',
    layer: 'service',
    message: 'Slow',
    requestId: 'r1',
    meta: { ms: 12, note: 'a b', error: { message: 'x', stack: 'Error: x\n  at y' } },
  };
  expect(format(JSON.stringify(record))).toBe(
    '[03:04:05.006] WARN (gateway): Slow  requestId=r1 ms=12 note="a b"\n    Error: x\n      at y',
  );
  expect(format('plain text')).toBe('plain text');
});

test('a table fits the terminal width, and has one line per row when piped to a program', () => {
  const style = createStyle({}, {});
  const headings = ['received', 'status', 'instance', 'id', 'reason'];
  const rows = [
    ['2026-11-21 04:15:42Z', 'refused', '', '01a1fc51-337d-75d0-9718-c6099b5c9d42', 'wrong_secret'],
    ['2026-11-21 04:15:41Z', 'succeeded', '', '01a1fc51-337d-75d0-9718-c6099b5c9d41', ''],
  ];
  const at = (width?: number): string[] => table(headings, rows, style, width).split('\n');
  expect(at(90)).toEqual([
    'received              status     id                                    reason',
    '2026-11-21 04:15:42Z  refused    01a1fc51-337d-75d0-9718-c6099b5c9d42  wrong_secret',
    '2026-11-21 04:15:41Z  succeeded  01a1fc51-337d-75d0-9718-c6099b5c9d41',
  ]);
  expect(at(60)).toEqual([
    'received              status',
    '2026-11-21 04:15:42Z  refused',
    '    id 01a1fc51-337d-75d0-9718-c6099b5c9d42',
    '    reason wrong_secret',
    '2026-11-21 04:15:41Z  succeeded',
    '    id 01a1fc51-337d-75d0-9718-c6099b5c9d41',
  ]);
  expect(at(Number.POSITIVE_INFINITY)).toHaveLength(3);
  expect(at(Number.POSITIVE_INFINITY)[0]).toContain('instance');
});

test('compiled code is cached in the cache folder of the user; an unusable folder has no effect', async () => {
  const home = await tempDir();
  const show = (XDG_CACHE_HOME: string) =>
    svc(['config', 'show'], { HOME: home, XDG_CACHE_HOME, NODE_COMPILE_CACHE: '' });
  const first = show('');
  expect((await readdir(join(home, '.cache/svc/compiled'))).length).toBe(1);
  const file = join(home, 'file');
  await writeFile(file, '');
  expect(show(file)).toEqual(first);
});
