import { expect, test } from 'vitest';
import { getPlugin, installPlugin, planPlugin, updatePlugin } from '../../../src/contracts/index.ts';
import { startRegistry } from './registry.ts';
import { greeter, startMarketplace } from './support.ts';

const NAME = '@acme/greeter';
const params = { pluginId: NAME as never };

test('a plugin is installed by name, range and tag; an update follows its range', async () => {
  const registry = await startRegistry();
  for (const version of ['1.0.0', '1.2.0', '2.0.0']) await registry.publish(NAME, version, greeter(version));
  registry.tag(NAME, 'old', '1.0.0');

  const daemon = await startMarketplace();
  const installed = await daemon.call(installPlugin, { body: { source: `${NAME}@^1.0.0` } });
  expect(installed).toMatchObject({ version: '1.2.0', source: `${NAME}@^1.0.0`, status: 'loaded' });
  expect(installed.resolved).toMatch(/^@acme\/greeter@1\.2\.0 sha512-/);

  const network = { permissions: { network: ['api.example.com'] } };
  await registry.publish(NAME, '1.3.0', greeter('1.3.0', network));
  const plan = await daemon.call(planPlugin, { body: { pluginId: NAME as never } });
  expect(plan).toMatchObject({
    installed: '1.2.0',
    version: '1.3.0',
    changes: [{ change: 'added', what: 'permission', name: 'network api.example.com' }],
  });
  const { manifestDigest } = plan;
  await daemon.call(updatePlugin, { params, body: { manifestDigest } });
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ version: '1.3.0', status: 'loaded' });

  const latest = await startMarketplace();
  expect(await latest.call(installPlugin, { body: { source: NAME } })).toMatchObject({ version: '1.3.0' });
  const tagged = await startMarketplace();
  expect(await tagged.call(installPlugin, { body: { source: `${NAME}@old` } })).toMatchObject({
    version: '1.0.0',
  });
}, 120_000);

test('an archive that differs from the registry metadata is refused', async () => {
  const registry = await startRegistry();
  await registry.publish(NAME, '1.0.0', greeter());
  await registry.forge(NAME, '1.0.0', greeter('1.0.0', { display: { name: 'forged' } }));
  const daemon = await startMarketplace();
  await expect(daemon.call(installPlugin, { body: { source: NAME } })).rejects.toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: expect.stringMatching(/integrity|EINTEGRITY/i),
  });
  await expect(daemon.call(getPlugin, { params })).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
}, 120_000);
