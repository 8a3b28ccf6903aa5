import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testPlatform } from '../cli/platform.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';

const CONFIG_SCHEMA = {
  type: 'object',
  properties: {
    greeting: { type: 'string', default: 'Hello' },
    retries: { type: 'integer', default: 3 },
    format: {
      type: 'object',
      properties: { upper: { type: 'boolean', default: false }, suffix: { type: 'string', default: '!' } },
    },
  },
};

test('handlers of a running platform find the defaults of configSchema where nothing is configured', async () => {
  const pluginConfig = { greeter: { retries: 5, format: { upper: true } } };
  const { folder, svc } = await testPlatform({ pluginConfig });
  for (const id of ['greeter', 'plain'])
    await writeFiles(join(folder, 'plugins', id), {
      'package.json': { type: 'module' },
      'svc.plugin.json': {
        schema: 'svc.plugin/3',
        id,
        version: '1.0.0',
        configSchema: CONFIG_SCHEMA,
        commands: [{ id: `${id}-settings`, handler: 'h.js#settings' }],
        rest: {
          basePath: `/v1/plugins/${id}`,
          routes: [{ method: 'GET', path: '/settings', handler: 'h.js#settings' }],
        },
      },
      'h.js': 'export const settings = (ctx) => ctx.config;',
    });
  expect((await svc('up', '-d')).code).toBe(0);
  const { SVC_GATEWAY_URL, SVC_TOKEN } = (await svc('status', '--env')).json.result.env;
  const settingsOf = async (id: string) => {
    const ofCommand = (await svc('run', id, `${id}-settings`)).json.result;
    const reply = await fetch(`${SVC_GATEWAY_URL}/api/v1/plugins/${id}/settings`, {
      headers: { authorization: `Bearer ${SVC_TOKEN}` },
    });
    expect(await reply.json()).toEqual(ofCommand);
    return ofCommand;
  };
  expect(await settingsOf('greeter')).toEqual({
    greeting: 'Hello',
    retries: 5,
    format: { upper: true, suffix: '!' },
  });
  expect(await settingsOf('plain')).toEqual({ greeting: 'Hello', retries: 3 });
});
