import { mkdir } from 'node:fs/promises';
import { firstIdAt } from '../../src/daemons/gateway/domain/messages/sortable-ids.ts';
import { createSeal } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { newWebhookSecret } from '../../src/kit/security/standard-webhooks.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import type { AlertRecord, GatewayStore } from '../../src/store/ports/index.ts';
import { sealedColumns } from '../../src/store/ports/sealed-columns.ts';
import { sqliteGatewayStore } from '../../src/store/sqlite/index.ts';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import { loadSecrets } from '../../src/supervisor/keys-file.ts';

const SPACING_MS = 400;
const NAMESPACE = 'default';
const BATCH = 1000;

/** One endpoint in this many is disabled, one message is a dead letter, and one alert is of the rule `rare`. */
export const RARE_EVERY = 2000;

/** Number of a row, and its time in epoch ms. Higher rows are newer. */
interface Row {
  n: number;
  at: number;
  isRare: boolean;
}

/**
 * Writes endpoints, messages and ended alerts, `count` of each, into the store of a data folder that no service uses.
 * Message n went to the endpoint n.
 */
export async function seedOutgoing(dataDir: string, count: number): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const { keys } = loadSecrets(dataFolder(dataDir), {}, systemRandom());
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  const begin = Date.now() - count * SPACING_MS;
  for (let from = 0; from < count; from += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, count - from) }, (_, index): Row => {
      const n = from + index;
      return { n, at: begin + n * SPACING_MS, isRare: n % RARE_EVERY === 77 };
    });
    await addEndpoints(store, rows, keys.masterKey);
    await addMessages(store, rows);
    await store.alerts.commit({ alerts: rows.map(alertOf) });
  }
  await store.close();
}

async function addEndpoints({ endpoints }: GatewayStore, rows: Row[], masterKey: string): Promise<void> {
  const seal = createSeal(masterKey);
  const secret = newWebhookSecret(systemRandom());
  const added = rows.map(({ n, at, isRare }) => {
    const id = firstIdAt('ep', at);
    return endpoints.add(
      {
        ...{ id, namespaceId: NAMESPACE, application: `customer-${n % 50}`, publicOnly: false },
        ...{ url: `https://receiver-${n}.example.com/hooks`, types: [`order.event-${n % 20}`] },
        ...{ description: null, rateLimitPerSecond: null, headers: null, previousSecretExpiresAt: null },
        secret: seal.seal(secret, sealedColumns('outgoing_endpoint').context({ id }, 'secret')),
        ...{ previousSecret: null, ordered: false, retrySchedule: null, timeoutMs: null, failingSince: null },
        ...{ disabledReason: isRare ? ('operator' as const) : null, disabledAt: isRare ? at : null },
        ...{ createdAt: at, updatedAt: at },
      },
      Number.MAX_SAFE_INTEGER,
    );
  });
  await Promise.all(added);
}

async function addMessages({ messages }: GatewayStore, rows: Row[]): Promise<void> {
  const published = rows.map(({ n, at }) =>
    messages.publish({
      ...{ id: firstIdAt('msg', at), namespaceId: NAMESPACE, application: null, type: `order.number-${n}` },
      ...{ timestamp: at, createdAt: at, traceId: n.toString(16).padStart(32, '0'), key: null },
      body: Buffer.from(JSON.stringify({ n })),
      endpointIds: [firstIdAt('ep', at)],
    }),
  );
  await Promise.all(published);
  const ends = rows.map(({ at, isRare }) => ({
    ...{
      messageId: firstIdAt('msg', at),
      endpointId: firstIdAt('ep', at),
      number: 1,
      trigger: 'first' as const,
    },
    ...{
      startedAt: at,
      durationMs: 12,
      succeeded: !isRare,
      responseStatus: isRare ? 500 : 200,
      excerpt: null,
    },
    ...{ error: null, nextAttemptAt: null, tries: 1, endedAt: at + 12 },
    status: isRare ? ('dead' as const) : ('succeeded' as const),
  }));
  await messages.endAttempts(ends, []);
}

function alertOf({ n, at, isRare }: Row): AlertRecord {
  const object = { type: 'run', id: `run-${n}`, namespaceId: NAMESPACE, labels: {} };
  const body = {
    ...{ severity: 'warning', object, title: `Run ${n} failed`, message: 'The carrier did not answer.' },
    ...{ path: null, count: 1, n, fact: null, acknowledgedAt: null, acknowledgedBy: null, silenceId: null },
  };
  return {
    // Ids of alerts are UUIDs of version 7, which begin with their time.
    id: `alert_${at
      .toString(16)
      .padStart(12, '0')
      .replace(/^(.{8})/, '$1-')}-7000-8000-${String(n).padStart(12, '0')}`,
    ...{ version: 1, namespaceId: NAMESPACE, rule: isRare ? 'rare' : 'runs', objectKey: `run-${n}` },
    kind: 'run.failed',
    state: 'resolved',
    ...{ groupKey: 'runs', firstAt: at, lastAt: at, resolvedAt: at + 1000, body: JSON.stringify(body) },
  };
}
