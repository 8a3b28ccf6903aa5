import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { flagsOf, inputOf } from '../../src/cli/commands/run/flags.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { type CliRun, runCli } from '../support/cli.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../support/gateway.ts';

const projectDir = join(import.meta.dirname, '../fixtures/projects/commands');

/** `svc run <args>`, as the operator, against a gateway and a REST service of its own. */
async function svcRun(...calls: string[][]): Promise<CliRun[]> {
  const peers = createPeers({ rest: (await startTestDaemon(rest, { projectDir })).url });
  const { url } = await startGateway({ projectDir, peers });
  const cwd = await tempDir();
  const flags = ['--url', url, '--token', ADMIN_TOKEN];
  const finished: CliRun[] = [];
  for (const args of calls) finished.push(await runCli([...flags, 'run', ...args], { cwd }));
  return finished;
}

test('a throw in a handler shows the error, its source position, and the request id for the log', async () => {
  const [text, json] = await svcRun(['greeter', 'throws'], ['greeter', 'throws', '--json']);
  expect([text!.code, text!.stderr]).toEqual([
    1,
    expect.stringMatching(
      /error thrown on purpose\n {3}at .*\.[jt]s:\d+:\d+\n {2}req [\w-]+\n hint svc logs --request-id [\w-]+\n/,
    ),
  ]);
  expect(JSON.parse(json!.stdout).error).toMatchObject({
    code: 'EXECUTION_ERROR',
    details: { at: expect.stringMatching(/:\d+:\d+$/), requestId: expect.any(String) },
  });
});

test('svc run says that a plugin without commands is not in the list', async () => {
  const [run, help] = await svcRun(['nosuch'], ['nosuch', '--help']);
  const text = 'No loaded plugin nosuch has commands. "svc plugins list" shows all plugins.';
  expect([run!.code, run!.stderr]).toEqual([2, expect.stringContaining(text)]);
  expect([help!.code, help!.stdout]).toEqual([0, expect.stringContaining(text)]);
});

test('svc run derives its flags, help and envelope from the command', async () => {
  const [help, greet, whole, fault, low, declared, person, none, list] = await svcRun(
    ['greeter', 'greet', '--help'],
    ['greeter', 'greet', '--name', 'Ada', '--times', '2', '--loud', '--tags', 'a', '--tags', 'b', '--json'],
    [
      'greeter',
      'greet',
      '--input',
      '{"name":"Ada","times":3}',
      '--times',
      '1',
      '--address',
      '{"city":"Rome"}',
      '--json',
    ],
    ['greeter', 'greet', '--times', '0', '--json'],
    ['greeter', 'greet', '--name', 'Ada', '--times', '0'],
    ['greeter', 'fails', '--json'],
    ['greeter', 'fails'],
    ['greeter', 'gret', '--json'],
    ['greeter'],
  );
  expect(help!.stdout).toMatch(/Greet somebody/);
  expect(help!.stdout).toMatch(/--name <text>\s+who is greeted; required/);
  expect(help!.stdout).toMatch(/--times <n>\s+default: 1/);
  expect(help!.stdout).toMatch(/\$ svc run greeter greet --name <text>/);
  expect([greet!.code, JSON.parse(greet!.stdout)]).toEqual([
    0,
    {
      ok: true,
      result: { text: 'HELLO ADA, HELLO ADA', tags: ['a', 'b'], city: null },
      meta: { by: 'cli' },
    },
  ]);
  expect(JSON.parse(whole!.stdout).result).toEqual({ text: 'Hello Ada', tags: [], city: 'Rome' });
  expect([fault!.code, JSON.parse(fault!.stdout)]).toMatchObject([
    1,
    {
      ok: false,
      error: { code: 'VALIDATION_ERROR', message: '--name is missing: who is greeted.' },
      result: null,
      meta: {},
    },
  ]);
  expect(low!.stderr).toContain('error --times: must be at least 1');
  expect([declared!.code, JSON.parse(declared!.stdout)]).toEqual([
    1,
    {
      ok: false,
      error: { code: 'TOO_LATE', message: 'Everybody has gone.', details: { hour: 23 } },
      result: null,
      meta: {},
    },
  ]);
  expect(person!.stdout).toBe('');
  expect(person!.stderr).toMatch(/Everybody has gone\.[\s\S]*TOO_LATE/);
  expect(JSON.parse(none!.stdout).error.message).toMatch(/did you mean "greet"/);
  expect([list!.code, list!.stderr]).toEqual([2, expect.stringMatching(/greet {2}Greet somebody/)]);
});

test('flags are accepted before and after the arguments, and after --', async () => {
  const [before, between, after] = await svcRun(
    ['--json', 'greeter', 'greet', '--name', 'Ada'],
    ['greeter', '--json', 'greet', '--name', 'Ada'],
    ['greeter', 'greet', '--json', '--', '--name', 'Ada'],
  );
  for (const { stdout } of [before!, between!, after!])
    expect(JSON.parse(stdout).result).toMatchObject({ text: 'Hello Ada' });
});

test('properties without a flag are passed by --input, also from a file', async () => {
  const cwd = await tempDir();
  const flags = flagsOf({
    $ref: '#/$defs/In',
    $defs: {
      In: {
        type: 'object',
        properties: { json: { type: 'string' }, 'odd name': {}, when: { $ref: '#/$defs/When' }, any: {} },
      },
      When: { type: ['integer', 'null'], enum: [1, 2] },
    },
  });
  expect(Object.keys(flags.args.shape)).toEqual(['when', 'any', 'input']);
  expect(flags.kinds).toEqual({ when: 'number', any: 'json' });
  expect(await inputOf({ input: '{"odd name":1}', when: 2, any: '[1]' }, flags, cwd)).toEqual({
    'odd name': 1,
    when: 2,
    any: [1],
  });
  await writeFile(join(cwd, 'input.json'), '[1,2]');
  for (const input of ['[1,2]', '@input.json']) expect(await inputOf({ input }, flags, cwd)).toEqual([1, 2]);
  await expect(inputOf({ input: '@none.json' }, flags, cwd)).rejects.toThrow(
    /^--input: none\.json is not valid JSON: .*ENOENT/,
  );
  await expect(inputOf({ input: '[1]', when: 1 }, flags, cwd)).rejects.toThrow(/must be a JSON object/);
  await expect(inputOf({ any: '{' }, flags, cwd)).rejects.toThrow(/--any: must be JSON/);
  expect(flagsOf(null).example).toBe('');
});
