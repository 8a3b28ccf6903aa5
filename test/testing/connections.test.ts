import { expect, onTestFinished, test } from 'vitest';
import { createTestHost } from '../../src/testing/index.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const TOKEN = 'an-access-token-of-the-crm';
const PLUGIN = {
  'package.json': { name: 'caller', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'caller',
    version: '1.0.0',
    permissions: { connections: ['crm', 'missing'], network: ['api.crm.example'] },
    commands: [
      { id: 'token', handler: 'h.js#token' },
      { id: 'fetch', handler: 'h.js#fetched' },
    ],
  },
  'h.js': `
    export async function token(ctx, name) {
      const value = await ctx.connections.token(name);
      ctx.log.info('logged ' + value);
      return { value, length: value.length };
    }
    export async function fetched(ctx) {
      const reply = await ctx.connections.fetch('crm', 'https://api.crm.example/items', { method: 'POST', body: 'x' });
      return reply.json();
    }`,
};

test('a handler gets the tokens of listed connections, and logs and results mask them', async () => {
  const host = await createTestHost({
    plugin: await writeFiles(await tempDir(), PLUGIN),
    connections: { crm: TOKEN, other: TOKEN },
    fetch: async (request) =>
      Response.json({
        method: request.method,
        isAuthorized: request.headers.get('authorization') === `Bearer ${TOKEN}`,
      }),
  });
  onTestFinished(() => host.close());
  expect((await host.command('token', 'crm')).result).toEqual({ value: '[redacted]', length: TOKEN.length });
  expect((await host.command('fetch')).result).toEqual({ method: 'POST', isAuthorized: true });
  await expect(host.command('token', 'other')).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
    details: { permission: 'permissions.connections other' },
  });
  await expect(host.command('token', 'missing')).rejects.toMatchObject({
    details: { code: 'NOT_FOUND' },
    message: expect.stringContaining('svc connections create missing'),
  });
  await expect(host.command('token', 'crm', { tenantId: 'acme' })).rejects.toMatchObject({
    details: { code: 'NOT_FOUND' },
  });
  for (const name of ['__proto__', '', null, ['crm']])
    await expect(host.command('token', name)).rejects.toThrow(/name of the connection|may not use/);
  const logs = JSON.stringify(host.logs);
  expect([logs.includes('logged [redacted]'), logs.includes(TOKEN)]).toEqual([true, false]);
});
