import { test } from 'vitest';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { registerTestHost } from '../support/host-agent.ts';
import { LIBRARY_PROJECT, libraryConfig, useEachAdapter } from '../support/library.ts';
import { startHostGateway, startTestAgent } from './support.ts';

test('a plugin on a host reaches storage, models and vectors through the gateway', async () => {
  const gateway = await startHostGateway({
    projectDir: LIBRARY_PROJECT,
    config: { execution: { plugins: { library: { backend: 'host' } } }, adapters: await libraryConfig() },
  });
  for (const namespaceId of ['acme', 'other'])
    await startTestAgent(gateway, { host: await registerTestHost(gateway, ADMIN_TOKEN, { namespaceId }) });
  await useEachAdapter(gateway);
});
