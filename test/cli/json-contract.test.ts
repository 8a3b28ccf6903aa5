import { execFile } from 'node:child_process';
import { cp, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table/command-table.ts';
import { tempDir } from '../support/daemon.ts';
import { type CliRun, PROGRAM, type TestPlatform, testPlatform } from './platform.ts';
import { type Made, NOBODY, STEPS, STREAMS, type Step } from './walk-steps.ts';

const WALK = join(import.meta.dirname, '../fixtures/projects/walk');
/** Its run is over before the signal comes; the agent and a single service finish what runs, which is a success. */
const ENDS_WELL = new Set(['workflows logs', 'agent run', 'start']);
/** A service that a closed log does not end before it has something to log. */
const SERVES = new Set(['agent run']);

/** @spec Command result; Errors: Shapes */
function expectEnvelope({ code, stdout, json }: CliRun, what: string): void {
  expect(
    stdout.endsWith('\n') && stdout.trimEnd().split('\n').length,
    `${what}: ${stdout.slice(0, 300)}`,
  ).toBe(1);
  if (json.ok) {
    expect(
      Object.keys(json).filter((key) => !['ok', 'result', 'meta'].includes(key)),
      what,
    ).toEqual([]);
    expect(code, what).toBe(0);
    return;
  }
  expect(json, what).toEqual({
    ok: false,
    error: {
      code: expect.stringMatching(/^[A-Z][A-Z0-9_]+$/),
      message: expect.any(String),
      details: expect.any(Object),
    },
    result: json.result === null ? null : expect.anything(),
    meta: expect.any(Object),
  });
  expect(code, what).toBeGreaterThan(0);
}

/** The id fields of commands whose records have an older name for their id. */
const ID_FIELDS: Record<string, string> = {
  'webhooks deliveries': 'webhookId',
  'webhooks show': 'webhookId',
  'webhooks send': 'webhookId',
  'webhooks replay': 'webhookId',
  'hosts list': 'hostId',
  'hosts show': 'hostId',
  'agent register': 'hostId',
  'clients list': 'clientId',
  'clients create': 'clientId',
  'tokens list': 'jti',
  'tokens mint': 'jti',
};
/** Lists of what has ids; the walk leaves at least one record in each. */
const WITH_IDS = [
  'workflows runs',
  'workflows list',
  'schedules list',
  'jobs list',
  'plugins list',
  'events list',
];
const LATEST_IN_SECONDS = 1e11;

/** @spec docs/cli.md "Output" */
function expectCompleteRecords(name: string, result: { items?: object[] }): void {
  const idField = ID_FIELDS[name];
  if (idField || WITH_IDS.includes(name)) {
    const records = (result.items ?? [result]) as Array<Record<string, unknown>>;
    expect(records.length, name).toBeGreaterThan(0);
    for (const record of records)
      expect(record.id, name).toEqual(idField ? record[idField] : expect.anything());
  }
  expectIsoTimes(result, name);
}

function expectIsoTimes(value: unknown, what: string): void {
  if (typeof value !== 'object' || value === null) return;
  const fields = value as Record<string, unknown>;
  for (const [key, item] of Object.entries(fields)) {
    if (/(?:At|^at|^time)$/.test(key) && typeof item === 'number' && item > LATEST_IN_SECONDS)
      expect(fields[`${key}Iso`], `${what}: ${key}`).toBe(new Date(item).toISOString());
    if (!['input', 'output', 'outcome', 'details', 'meta', 'body', 'claims'].includes(key))
      expectIsoTimes(item, what);
  }
}

async function call({ svc, start }: TestPlatform, { args, stdin }: Step, made: Made): Promise<CliRun> {
  if (!stdin) return svc(...args(made));
  const { child, done } = start(...args(made), '--json');
  child.stdin!.end(stdin(made));
  return done;
}

/** Runs a line in bash, since a pipe that closes early is a shell's. */
function shell(
  line: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) =>
    execFile('bash', ['-c', line], { cwd, env }, (_error, stdout, stderr) => resolve({ stdout, stderr })),
  );
}

async function project(): Promise<TestPlatform> {
  const platform = await testPlatform(
    { plugins: ['./plugins/*'], workflows: ['./workflows/*.yaml'] },
    {
      ...{ HOME: await tempDir(), XDG_CONFIG_HOME: '', SVC_AGENT_HOME: '' },
      GATEWAY_INTERNAL_SECRET: 'i'.repeat(40),
    },
    PROGRAM,
  );
  await cp(WALK, platform.folder, { recursive: true });
  return platform;
}

test('the JSON test calls every command', () => {
  const shown = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name);
  expect([...new Set([...Object.keys(STEPS), ...Object.keys(STREAMS)])].toSorted()).toEqual(shown.toSorted());
});

test('the command table marks each command that streams', async () => {
  const loaded = await Promise.all(
    COMMANDS.map(async ({ name, load }) => [name, (await load()).streams] as const),
  );
  const streaming = loaded.filter(([name, streams]) => streams !== undefined && name !== 'supervise');
  // `mcp stdio` speaks its protocol instead of printing documents; test/cli/mcp.test.ts runs it.
  const expected = [...Object.keys(STREAMS), 'mcp stdio'];
  expect(streaming.map(([name]) => name).toSorted()).toEqual(expected.toSorted());
});

test('with every service running, each command prints one envelope that agrees with its exit code', {
  timeout: 240_000,
}, async () => {
  const platform = await project();
  const made = {} as Made;
  for (const [name, steps] of Object.entries(STEPS)) {
    for (const each of steps) {
      const what = `svc ${each.args(made).join(' ')} (${name})`;
      const run = await call(platform, each, made);
      expectEnvelope(run, what);
      if (each.code !== -1)
        expect(run.code, `${what}: ${run.stdout.slice(0, 500)} ${run.stderr}`).toBe(each.code ?? 0);
      if (run.json.ok) {
        Object.assign(made, each.take?.(run.json.result));
        expectCompleteRecords(name, run.json.result ?? {});
      }
    }
  }
});

test('with no service running, each command still prints one envelope and exits', {
  timeout: 240_000,
}, async () => {
  const platform = await project();
  const made: Made = {
    endpoint: 'ep_00000000000000000000000000',
    message: 'msg_00000000000000000000000000',
    delivery: NOBODY,
    trace: '',
    run: `run_${NOBODY}`,
    schedule: 'hold:0',
    job: `job_${NOBODY}`,
    lease: 'none',
    jti: NOBODY,
    token: 'x.y.z',
    client: 'client_1',
    clientSecret: 'secret',
    invitation: 'invitation',
    host: 'host_1',
    gateway: 'http://127.0.0.1:1',
  };
  const { up: _up, ...others } = STEPS;
  for (const [name, [first]] of Object.entries(others)) {
    if (!first) continue;
    const run = await call(platform, first, made);
    expectEnvelope(run, `svc ${first.args(made).join(' ')} (${name})`);
    expect(run.json.error?.code, name).not.toBe('INTERNAL_ERROR');
  }
  const unreachable = Object.entries(STREAMS).filter(([name]) => !['up', 'start', 'logs'].includes(name));
  for (const [name, argsOf] of unreachable) {
    const run = await platform.start(...argsOf(made), '--json').done;
    expectEnvelope(run, `svc ${argsOf(made).join(' ')}`);
    expect(run.json.error?.code, name).not.toBe('INTERNAL_ERROR');
  }
});

test('streams print one JSON document per line, end on a signal, and tolerate a closed reader', {
  timeout: 240_000,
}, async () => {
  const platform = await project();
  const { svc, start, folder } = platform;
  const made = {} as Made;
  await svc('up', '-d');
  await svc('webhooks', 'provision', 'toy', 'ping');
  await svc('webhooks', 'send', 'toy', 'ping', '--data', '{"n":1}');
  made.run = (await svc('workflows', 'run', 'chat')).json.result.id;
  await svc('plugins', 'create', 'extra', '--folder', 'made/extra');
  const { token } = (await svc('hosts', 'invite')).json.result;
  const { SVC_GATEWAY_URL: gateway, SVC_TOKEN: bearer } = (await svc('status', '--env')).json.result.env;
  await svc('agent', 'register', '--gateway', gateway, '--token', token);
  const { up: foreground, start: single, ...others } = STREAMS;

  async function follow(name: string, args: string[]): Promise<void> {
    const started = start(...args, '--json');
    const nudge = setInterval(touch, 500);
    await expect.poll(() => started.stdout().includes('\n')).toBe(true);
    clearInterval(nudge);
    started.child.kill('SIGINT');
    const { code, signal, stdout, stderr } = await started.done;
    // A shell tells 130 either way.
    expect(signal === 'SIGINT' ? 130 : code, `${name}: ${stderr}`).toBe(ENDS_WELL.has(name) ? 0 : 130);
    for (const line of stdout.split('\n').slice(0, -1)) expect(typeof JSON.parse(line), name).toBe('object');
    expect(stderr, name).not.toMatch(/EPIPE|\n {4}at /);
  }
  /** Makes something happen: a closed pipe is noticed at the next write. */
  async function touch(): Promise<void> {
    const post = (path: string, body: object): Promise<unknown> =>
      fetch(gateway + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }).catch(() => {});
    await utimes(join(folder, 'made/extra/svc.plugin.json'), new Date(), new Date());
    await post('/api/v1/webhooks/send', { pluginId: 'toy', event: 'ping', data: { n: 2 } });
    await post('/api/v1/commands/toy/greet', {});
  }
  for (const [name, argsOf] of Object.entries(others)) {
    await follow(name, argsOf(made));
    if (SERVES.has(name)) continue;
    // A run that waits for somebody would say nothing that could meet the closed pipe.
    const words = argsOf(made).map((word) => (word === 'hold' ? 'chat' : word));
    const command = [...PROGRAM, ...words, '--json'].map((word) => `'${word}'`).join(' ');
    const nudge = setInterval(touch, 500);
    const piped = await shell(`${command} | head -n 1; echo "codes $\{PIPESTATUS[*]}"`, folder, platform.env);
    clearInterval(nudge);
    const [line, codes] = piped.stdout.trimEnd().split('\n');
    expect(typeof JSON.parse(line!), name).toBe('object');
    expect([codes, piped.stderr.includes('EPIPE')], `${name}: ${piped.stderr}`).toEqual(['codes 0 0', false]);
  }
  await svc('down');
  await follow('up', foreground!(made));
  await follow('start', single!(made));
});
