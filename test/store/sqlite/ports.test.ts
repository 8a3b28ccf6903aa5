import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import type { GatewayStore } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore, sqliteStateStore } from '../../../src/store/sqlite/index.ts';
import { describeClients } from '../suites/clients.ts';
import type { OpenDriver } from '../suites/driver.ts';
import { describeHosts } from '../suites/hosts.ts';
import { describeKeyValue } from '../suites/key-value.ts';
import { describeMembers } from '../suites/members.ts';
import { describeRefreshTokens } from '../suites/refresh-tokens.ts';
import { describeWebhookInbox } from '../suites/webhook-inbox.ts';
import { describeWebhookSecrets } from '../suites/webhook-secrets.ts';

/** One part of `svc.db`. */
function gatewayPart<Part extends Exclude<keyof GatewayStore, 'close'>>(
  part: Part,
  shared = true,
): OpenDriver<GatewayStore[Part]> {
  return async ({ dataDir, clock }) => {
    const store = await sqliteGatewayStore({ dataDir, clock, logger: silentLogger, shared });
    return { port: store[part], close: () => store.close() };
  };
}

describeKeyValue('sqlite svc.db', gatewayPart('cache'));
describeKeyValue('sqlite state.db', async ({ dataDir, clock }) => {
  const store = await sqliteStateStore({ dataDir, clock, logger: silentLogger });
  return { port: store.entries, close: () => store.close() };
});
describeWebhookSecrets('sqlite', gatewayPart('secrets'));
describeWebhookInbox('sqlite', gatewayPart('inbox'), { shared: true });
describeWebhookInbox('sqlite, journalled', gatewayPart('inbox', false), { shared: false });
describeClients('sqlite', gatewayPart('clients'));
describeMembers('sqlite', gatewayPart('members'));
describeRefreshTokens('sqlite', gatewayPart('refreshTokens'));
describeHosts('sqlite', async ({ dataDir, clock }) => {
  const store = await sqliteGatewayStore({ dataDir, clock, logger: silentLogger });
  return { port: store, close: () => store.close() };
});
