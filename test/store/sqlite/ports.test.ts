import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { GatewayStore } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore, sqliteStateStore } from '../../../src/store/sqlite/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { describeAccessAndAudit } from '../suites/access-and-audit.ts';
import { describeAlerts } from '../suites/alerts.ts';
import { describeClients } from '../suites/clients.ts';
import { describeConnections } from '../suites/connections.ts';
import { describeDeliveryHours } from '../suites/delivery-hours.ts';
import type { OpenDriver } from '../suites/driver.ts';
import { type AddUncommitted, describeFeed } from '../suites/feed.ts';
import { describeHosts } from '../suites/hosts.ts';
import { describeKeyValue } from '../suites/key-value.ts';
import { describeMembers } from '../suites/members.ts';
import { describeMessages } from '../suites/messages.ts';
import { describeQueues } from '../suites/queues.ts';
import { describeRecoveryFacts } from '../suites/recovery-facts.ts';
import { describeRefreshTokens } from '../suites/refresh-tokens.ts';
import { describeRefusedReplays, describeRefusedRequests } from '../suites/refused-requests.ts';
import { describeVault } from '../suites/vault.ts';
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
describeVault('sqlite', gatewayPart('vault'));
/** Returns the size of an empty `svc.db`. */
async function emptyBytes(): Promise<number> {
  const dataDir = await tempDir();
  const store = await sqliteGatewayStore({ dataDir, clock: manualClock(), logger: silentLogger });
  await store.close();
  return (await stat(join(dataDir, 'svc.db'))).size;
}
describeWebhookInbox('sqlite', gatewayPart('inbox'), { shared: true, emptyBytes });
describeWebhookInbox('sqlite, journalled', gatewayPart('inbox', false), { shared: false, emptyBytes });
describeDeliveryHours('sqlite', gatewayPart('inbox'));
describeDeliveryHours('sqlite, journalled', gatewayPart('inbox', false));
describeRefusedRequests('sqlite', gatewayPart('refusedRequests'));
describeRefusedReplays('sqlite', gatewayPart('inbox'));
describeRefusedReplays('sqlite, journalled', gatewayPart('inbox', false));
describeClients('sqlite', gatewayPart('clients'));
describeQueues('sqlite', gatewayPart('queues'));
describeAlerts('sqlite', gatewayPart('alerts'));
describeConnections('sqlite', gatewayPart('connections'));
describeMembers('sqlite', gatewayPart('members'));
describeRefreshTokens('sqlite', gatewayPart('refreshTokens'));
const wholeStore: OpenDriver<GatewayStore> = async ({ dataDir, clock }) => {
  const store = await sqliteGatewayStore({ dataDir, clock, logger: silentLogger });
  return { port: store, close: () => store.close() };
};
describeHosts('sqlite', wholeStore);
describeAccessAndAudit('sqlite', wholeStore);
describeMessages('sqlite', wholeStore);
describeRecoveryFacts('sqlite', wholeStore);

/** In another process: POSIX locks do not exclude connections of one process through two SQLite libraries. */
const addUncommitted: AddUncommitted = async ({ dataDir, clock }, { topic, key }) => {
  const program = `
    const db = new (require('node:sqlite').DatabaseSync)(process.argv[1]);
    db.exec('begin immediate');
    db.prepare('insert into feed (topic, key, added_at) values (?, ?, ?)').run(...process.argv.slice(2, 4), +process.argv[4]);
    process.send('added');
    process.once('message', () => { db.exec('commit'); process.disconnect(); });`;
  const values = [join(dataDir, 'svc.db'), topic, key, String(clock.now())];
  const child = spawn(process.execPath, ['-e', program, ...values], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill());
  await once(child, 'message');
  return {
    async commit() {
      child.send('commit');
      await once(child, 'exit');
    },
  };
};
describeFeed('sqlite', wholeStore, addUncommitted);
