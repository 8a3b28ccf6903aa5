import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../../../src/store/sqlite/index.ts';
import { delivery } from '../../../support/new-delivery.ts';
import { print } from './print.ts';

/**
 * end.ts <data folder> leave|fail: opens a store and leaves it as it is; or has its database refuse an accepted delivery,
 * and closes it when it was told so. Then it has nothing more to do.
 */
const [dataDir, how] = process.argv.slice(2) as [string, string];
const { promise: refused, resolve: refuse } = Promise.withResolvers<void>();
const store = await sqliteGatewayStore({
  dataDir,
  clock: systemClock,
  logger: { ...silentLogger, diagnostic: () => refuse() },
  shared: false,
});
print('opened\n');
if (how === 'fail') {
  const disk = new Sqlite(join(dataDir, 'svc.db'));
  disk.exec("create trigger no_room before insert on delivery begin select raise(abort, 'no room'); end");
  disk.close();
  await store.inbox.accept(delivery(), undefined, '');
  // The store itself keeps nobody alive until it has tried.
  const awake = setInterval(() => {}, 1000);
  await refused;
  clearInterval(awake);
  await store.close();
  print('closed\n');
}
