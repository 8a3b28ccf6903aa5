import { expect, onTestFinished, test } from 'vitest';
import { createTestHost } from '../../src/testing/index.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const PLUGIN = {
  'package.json': { name: 'vaulted', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'vaulted',
    version: '1.0.0',
    permissions: { secrets: ['API_KEY'] },
    commands: [
      { id: 'use', handler: 'h.js#use' },
      { id: 'fail', handler: 'h.js#fail' },
      { id: 'other', handler: 'h.js#use', permissions: { secrets: ['OTHER'] } },
      { id: 'recall', handler: 'h.js#recall' },
    ],
  },
  'h.js': `
    export async function use(ctx, name) {
      const value = await ctx.secrets.get(name);
      console.log('printed', value);
      ctx.log.info('logged ' + value, { deep: [{ value, encoded: Buffer.from(value).toString('hex') }] });
      await ctx.state.set('kept', value);
      return { value, length: value.length, [value]: 1, basic: btoa('user:' + value) };
    }
    export async function fail(ctx, name) {
      const value = await ctx.secrets.get(name);
      throw Object.assign(new Error('rejected ' + value), { code: value });
    }
    export const recall = (ctx) => ctx.state.get('kept');`,
};

async function host() {
  const started = await createTestHost({
    plugin: await writeFiles(await tempDir(), PLUGIN),
    secrets: { API_KEY: 'k$1-^secret.*' },
  });
  onTestFinished(() => started.close());
  return started;
}

test('a handler reads its secrets, and results, errors and logs mask them', async () => {
  const vaulted = await host();
  const { result } = await vaulted.command<Record<string, unknown>>('use', 'API_KEY');
  expect(result).toMatchObject({ value: '[redacted]', length: 13, '[redacted]': 1 });
  expect((await vaulted.command('recall')).result).toBe('[redacted]');
  const failure = await vaulted.command('fail', 'API_KEY').catch((error: unknown) => error);
  expect(failure).toMatchObject({ message: 'rejected [redacted]' });
  const logs = JSON.stringify(vaulted.logs);
  expect(logs).toContain('printed [redacted]');
  for (const text of ['k$1-^secret', Buffer.from('k$1-^secret.*').toString('hex')])
    expect(logs + JSON.stringify([result, failure])).not.toContain(text);
});

test('only listed names are readable, and a missing secret names the command that sets it', async () => {
  const vaulted = await host();
  await vaulted.setSecret('OTHER', 'other-value');
  await vaulted.setSecret('API_KEY', 'of another tenant', 'acme');
  await expect(vaulted.command('use', 'OTHER')).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
    details: { permission: 'permissions.secrets OTHER' },
  });
  // The permissions of a command replace those of the plugin.
  await expect(vaulted.command('other', 'API_KEY')).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  expect((await vaulted.command('other', 'OTHER')).exitCode).toBe(0);
  for (const name of ['__proto__', 'constructor', 'api_key', '', null, { toString: 'API_KEY' }, ['API_KEY']])
    await expect(vaulted.command('use', name)).rejects.toThrow(/name of the secret|PERMISSION|may not read/i);
  expect((await vaulted.command('use', 'API_KEY', { tenantId: 'acme' })).result).toMatchObject({
    length: 17,
    value: '[redacted]',
  });
  await expect(vaulted.command('use', 'API_KEY', { tenantId: 'nobody' })).rejects.toThrow(
    'The namespace nobody has no secret API_KEY.',
  );
});
