import { join } from 'node:path';
import { expect, test } from 'vitest';
import { disablePlugin, linkPlugin, listWebhooks } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway } from '../../support/gateway.ts';
import { greeter, pluginFolder, startMarketplace } from '../marketplace/support.ts';

test('webhooks are added and removed with their plugins, also when the marketplace cannot reach the gateway', async () => {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc') };
  const marketplace = await startMarketplace(options);
  const gateway = await startGateway(options);
  const declared = async () => (await gateway.call(listWebhooks)).items.map(({ event }) => event);
  const deliver = async () =>
    (
      await gateway.fetch('/webhooks/%40acme%2Fgreeter/made', {
        method: 'POST',
        headers: { 'x-svc-namespace': 'default' },
        body: '{}',
      })
    ).status;
  expect([await declared(), await deliver()]).toEqual([[], 404]);

  const auth = { type: 'secret', header: 'x-secret' };
  const folder = await pluginFolder(
    greeter('1.0.0', { webhooks: [{ event: 'made', handler: 'h.js#greet', auth }] }),
  );
  await marketplace.call(linkPlugin, { body: { folder } });
  await expect.poll(declared).toEqual(['made']);
  expect(await deliver()).toBe(401);

  await marketplace.call(disablePlugin, { params: { pluginId: '@acme/greeter' as never } });
  await expect.poll(deliver).toBe(404);
});
