import { join } from 'node:path';
import { expect, test } from 'vitest';
import { getCommand, listCommands, runCommand } from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { asCaller, startRest, type TestRest, untilLoad } from './support.ts';

const projectDir = join(import.meta.dirname, '../../fixtures/projects/commands');

let rest: TestRest;
async function started(): Promise<TestRest> {
  rest = await startRest({ projectDir });
  return rest;
}

const run = async (pluginId: string, commandId: string, input: unknown, hostId = 'operator') =>
  createClient({ url: rest.url, peer: 'rest' }).call(
    runCommand,
    { params: { pluginId: pluginId as never, commandId }, body: { input } },
    { headers: asCaller(hostId, 'acme') },
  );

test('commands are listed with their schemas', async () => {
  await started();
  const { items } = await rest.call(listCommands);
  expect(items).toContainEqual({ pluginId: 'greeter', id: 'greet', description: 'Greet somebody' });
  expect(items).toContainEqual({ pluginId: '@acme/counter', id: 'count', description: null });
  const greet = await rest.call(getCommand, {
    params: { pluginId: 'greeter' as never, commandId: 'greet' },
  });
  expect(greet).toMatchObject({
    input: { properties: { name: { type: 'string', description: 'who is greeted' } }, required: ['name'] },
    output: { required: ['text', 'tags', 'city'] },
  });
});

test('a command runs under the cli host, checked by its schemas', async () => {
  await started();
  expect(await run('greeter', 'greet', { name: 'Ada', times: 2 })).toEqual({
    exitCode: 0,
    result: { text: 'Hello Ada, Hello Ada', tags: [], city: null },
    meta: { by: 'cli' },
  });
  await expect(run('greeter', 'greet', { name: 7 })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    details: { issues: [expect.objectContaining({ path: 'name' })] },
  });
  expect(await run('greeter', 'fails', {})).toEqual({
    exitCode: 1,
    error: { code: 'TOO_LATE', message: 'Everybody has gone.', details: { hour: 23 } },
  });
  await expect(run('greeter', 'webhook', {})).rejects.toMatchObject({ code: 'HOST_MISMATCH' });
});

test('an unknown plugin or command is named; only operators run commands', async () => {
  await started();
  await expect(run('greeter', 'gret', {})).rejects.toMatchObject({
    code: 'NOT_FOUND',
    message: expect.stringContaining('did you mean "greet"'),
  });
  await expect(run('greter', 'greet', {})).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
  await expect(run('greeter', 'greet', { name: 'Ada' }, 'ci')).rejects.toMatchObject({ code: 'FORBIDDEN' });
});

test('ctx.invoke runs another plugin for the same tenant and user, by permission alone', async () => {
  await started();
  expect(await run('greeter', 'count-greetings', { add: 4 })).toEqual({
    exitCode: 0,
    result: {
      total: {
        counted: 5,
        from: 'greeter',
        tenant: 'acme',
        user: { hostId: 'operator', namespaceId: 'acme' },
      },
      tenant: 'acme',
      user: { hostId: 'operator', namespaceId: 'acme' },
    },
  });
  const caught = async (command: unknown, input: unknown = {}) =>
    (await run('greeter', 'invoke', { command, input })).result;
  expect(await caught('@acme/counter/refuse')).toMatchObject({
    code: 'PERMISSION_DENIED',
    details: { permission: 'permissions.invoke', command: '@acme/counter/refuse' },
  });
  expect(await caught('absent/anything')).toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
  expect(await caught('greeter/absent')).toMatchObject({ code: 'NOT_FOUND' });
  expect(await caught('nothing')).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect(await caught(7)).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect(await caught('@acme/counter/count', { add: 'x' })).toMatchObject({ code: 'VALIDATION_ERROR' });
  expect(await caught('@acme/counter/count', { add: -1 })).toMatchObject({
    code: 'EXECUTION_ERROR',
    message: 'Only upwards.',
    details: { add: -1, code: 'NEGATIVE' },
  });
});

test('a cycle of plugins that invoke each other ends', async () => {
  await started();
  rest.clock.advance(0);
  const running = run('greeter', 'again', {});
  // Two processes serve a plugin: the third level waits for one that never comes free.
  const outcome = running.catch((error) => error);
  await untilLoad(rest, 'greeter', 'running', 2);
  await untilLoad(rest, 'greeter', 'queued');
  rest.clock.advance(120_000);
  expect(await outcome).toMatchObject({ code: expect.stringMatching(/EXECUTION_TIMEOUT|EXECUTION_ERROR/) });
  expect(await run('greeter', 'greet', { name: 'Ada' })).toMatchObject({ exitCode: 0 });
});
