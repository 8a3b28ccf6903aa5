import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { days } from '../../../src/kit/time/duration.ts';
import {
  PostgresDatabase,
  postgresGatewayStore,
  postgresTelemetryStore,
  postgresWorkflowStore,
} from '../../../src/store/postgres/index.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { delivery } from '../../support/new-delivery.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';

const NOW = Date.now();
const OLD = NOW - days(60);
/** Tables whose size depends on the load. A sequential scan of such a table would read all of it. */
const LARGE = [
  ...[
    'delivery',
    'delivery_body',
    'delivery_marker',
    'run',
    'job',
    'step',
    'attempt',
    'run_event',
    'run_log',
  ],
  ...[
    'run_inbox',
    'run_usage',
    'idempotency_key',
    'event_count',
    'telemetry_dropped',
    'cache_entry',
    'state_entry',
  ],
  ...['refresh_token', 'minted_token', 'revocation', 'feed', 'rate_count', 'definition'],
];

/** Half of the rows are expired. */
const fill = (): string => `
  insert into svc.delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source,
    request_id, trace_id, mode, origin, status, steps, body_bytes, headers)
  select n, gen_random_uuid(), 'tenant' || n % 20, 'p', 'e', '', case when n <= ${rows} then ${OLD} else ${NOW} end + n, '', '', '',
    'async', 'http', case when n % 1000 = 0 then 'accepted' when n % 10 = 0 then 'failed' else 'succeeded' end, '', 20, '{}'
  from generate_series(1, ${rows * 2}) n;
  insert into svc.delivery_body (position, body) select n, 'body' from generate_series(1, ${rows * 2}) n;
  insert into svc.delivery_usage (records, unhandled, bytes) values (${rows * 2}, 0, ${rows * 2 * 720});
  insert into svc.delivery_marker (digest, state, expires_at)
    select decode(md5(n::text), 'hex'), 'done', case when n <= ${rows} then 1 else ${NOW + days(9)} end
    from generate_series(1, ${rows * 2}) n;
  insert into svc.run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, rank, priority, resume_count,
    crashes, kills, in_flight, trigger_kind, depth, host_id, request_id, trace_id, created_at, finished_at, input)
  select 'run' || n, 'workflow', 'tenant' || n % 20, 'w', 'h' || n % 50,
    case when n <= ${rows} or n % 10 > 0 then 'succeeded' else 'queued' end, n > ${rows} and n % 10 = 0,
    0, 0, 0, 0, 0, false, 'api', 0, '', '', '', t, case when n <= ${rows} or n % 10 > 0 then t end, '{}'
  from generate_series(1, ${rows * 1.2}) n, lateral (select case when n <= ${rows} then ${OLD} else ${NOW} end + n as t) times;
  insert into svc.job (run_seq, key, job_id, status) select seq, 'main', 'main', 'succeeded' from svc.run;
  insert into svc.step (run_seq, job_key, idx, status, attempts, failures) select seq, 'main', 0, 'succeeded', 1, 0 from svc.run;
  insert into svc.attempt (run_seq, job_key, idx, attempt, status, finished_at) select seq, 'main', 0, 1, 'succeeded', 1 from svc.run;
  insert into svc.run_event (run_seq, body) select seq, '{}' from svc.run;
  insert into svc.run_log (run_seq, body) select seq, '{}' from svc.run;
  insert into svc.run_inbox (run_seq, n, kind, name, payload, at) select seq, 1, 'signal', 's', '{}', 1 from svc.run;
  insert into svc.definition (hash, workflow_id, body, used_at) select 'h' || n, 'w', '{}', ${NOW} from generate_series(1, 5000) n;
  insert into svc.idempotency_key (tenant_id, key, digest, run_id, expires_at)
    select 't', n::text, '', '', ${OLD} + n * 60000::bigint from generate_series(1, 100000) n;
  insert into svc.run_usage (tenant_id, day, runs)
    select 't' || n, to_char(now() - n % 60 * interval '1 day', 'YYYY-MM-DD'), 1 from generate_series(1, 100000) n;
  insert into svc.event_count (span, start, tenant_id, type, product, actor, occurrences, kept)
    select 3600000, ${OLD} + n % 1440 * 3600000::bigint, 't' || n, 'x', 'p', 'a', 1, 1 from generate_series(1, 100000) n;
  insert into svc.telemetry_dropped (minute, service, tenant_id, kind, count)
    select ${OLD} + n * 60000::bigint, 'gateway', '', 'logs', 1 from generate_series(1, 100000) n;
  insert into svc.cache_entry (scope, key, value, expires_at) select 's', n::text, '1', ${OLD} + n * 60000::bigint from generate_series(1, 100000) n;
  insert into svc.state_entry (scope, key, value, expires_at) select 's' || n, n::text, '1', ${OLD} + n * 60000::bigint from generate_series(1, 20000) n;
  insert into svc.refresh_token select n::text, '', '', 1, ${OLD} + n * 60000::bigint, null from generate_series(1, 100000) n;
  insert into svc.minted_token select n::text, '', '', '', 1, ${OLD} + n * 60000::bigint, null from generate_series(1, 100000) n;
  insert into svc.revocation (kind, subject, expires_at) select 'token', n::text, ${OLD} + n * 60000::bigint from generate_series(1, 100000) n;
  insert into svc.feed (xact, topic, key, added_at) select n, 'secrets', n::text, ${OLD} + n * 60000::bigint from generate_series(1, 100000) n;
  insert into svc.rate_count (key, slices, calls, ends_at) select n::text, '{1}', '{1}', ${OLD} + n * 60000::bigint from generate_series(1, 100000) n;`;

let server: PostgresServer;
let url: string;
let rows: number;

/** Connects with settings of the session. */
function connect(applicationName: string, settings: Record<string, string> = {}): PostgresDatabase {
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  return new PostgresDatabase({
    url: `${url}?options=${encodeURIComponent(options.join(' '))}`,
    ...{ logger: silentLogger, applicationName },
  });
}

/** Settings with which a session sends the plan of each statement to its client. */
const SHOW_PLANS = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_level': 'notice',
};

/** Adds the plans of all statements of the database to `plans`. */
function collectPlans(database: PostgresDatabase, plans: string[]): PostgresDatabase {
  for (const { pool } of [database, database.reserved])
    pool.on('connect', (client) => client.on('notice', ({ message }) => plans.push(message ?? '')));
  return database;
}

function openStores(open: () => PostgresDatabase) {
  const gateway = postgresGatewayStore(open(), { clock: systemClock, logger: silentLogger });
  const workflow = postgresWorkflowStore(open());
  return {
    gateway,
    workflow,
    async close() {
      await gateway.close();
      await workflow.close();
    },
  };
}

/** Runs all statements of retention until nothing expired is left, or once. */
async function deleteExpired(
  { gateway, workflow }: ReturnType<typeof openStores>,
  rounds = Infinity,
): Promise<void> {
  const now = Date.now();
  const limit = 500;
  const drain = async (sweep: () => Promise<number>, least = limit): Promise<void> => {
    for (let round = 0; round < rounds && (await sweep()) >= least; round++);
  };
  await drain(() => gateway.cache.sweep(limit));
  await drain(() => gateway.inbox.prune({ receivedBefore: NOW - days(30), now, limit }));
  await drain(() => gateway.inbox.shrink({ maxBytes: rows * 719, limit }), 1);
  for (const store of [gateway.refreshTokens, gateway.mintedTokens, gateway.revocations, gateway.feed])
    await drain(() => store.prune(now - days(30), limit));
  let after: number | null = 0;
  for (let round = 0; round < rounds && after !== null; round++)
    after = (await workflow.prune({ finishedBefore: NOW - days(30), after, limit: 200 })).next;
  await drain(() => workflow.pruneKeys({ now, limit: 1000 }), 1000);
  await workflow.pruneDefinitions({ usedBefore: NOW - days(30), inUse: new Set(['h1']) });
}

/** Tests retention with `count` expired deliveries and runs. */
export function describeRetention(count: number): void {
  rows = count;
  describe.skipIf(!POSTGRES_PROGRAMS)(
    POSTGRES_PROGRAMS ? 'retention on PostgreSQL' : POSTGRES_MISSING,
    () => {
      beforeAll(async () => {
        server = await PostgresServer.start();
        url = server.url();
        await migrateDatabase(url);
        await server.run(fill());
        await server.run('vacuum analyze');
      }, 240_000);
      afterAll(() => server.remove());

      test('no statement scans a large table', { timeout: 120_000 }, async () => {
        const notices: string[] = [];
        const open = () => collectPlans(connect('svc-plans', SHOW_PLANS), notices);
        const stores = openStores(open);
        await deleteExpired(stores, 2);
        await stores.close();
        const telemetry = postgresTelemetryStore(open());
        await telemetry.prune({ logsBefore: NOW - days(30), eventsBefore: NOW - days(30), maxBytes: 1e12 });
        await telemetry.close();
        const plans = notices.join('\n');
        expect(plans).toContain('Index Scan using delivery_by_time on delivery');
        expect(plans.match(/Delete on \w+/g)?.length).toBeGreaterThan(15);
        const scans = [...plans.matchAll(/Seq Scan on (\w+)/g)].map(([, table]) => table!);
        expect(scans.filter((table) => LARGE.includes(table))).toEqual([]);
      });

      test(`deliveries are accepted and runs claimed while ${count} old ones are deleted`, {
        timeout: 300_000,
      }, async () => {
        // A statement of the load fails if it waits for a lock.
        const node = openStores(() => connect('svc-load', { lock_timeout: '500ms' }));
        const [one, two] = [
          openStores(() => connect('svc-retention')),
          openStores(() => connect('svc-retention')),
        ];
        const fence = await node.workflow.boots.begin({
          ...{
            bootId: 'b',
            pid: 1,
            now: Date.now(),
            leaseMs: 600_000,
            oomKills: null,
            hadFault: false,
            exclusive: false,
          },
        });
        const deletion = Promise.all([deleteExpired(one), deleteExpired(two)]);
        let isOver = false;
        void deletion.finally(() => {
          isOver = true;
        });
        const waits: string[] = [];
        const watcher = new pg.Client(url);
        await watcher.connect();
        let accepted = 0;
        let claimed = 0;
        let [acceptedDuring, claimedDuring] = [0, 0];
        while (!isOver) {
          await Promise.all(
            Array.from({ length: 8 }, () =>
              node.gateway.inbox.accept(
                delivery(),
                { key: `new${accepted++}`, expiresAt: NOW + days(9) },
                '[]',
              ),
            ),
          );
          const shares = [{ tenantId: `tenant${accepted % 20}`, limit: 4 }];
          const suspects = { crashes: 5, killsPerCrash: 10 };
          const runs = await node.workflow.shared!.claim(fence, 'ready', {
            ...{ shares, limit: 4, now: Date.now(), suspects },
          });
          claimed += runs.length;
          if (!isOver) [acceptedDuring, claimedDuring] = [accepted, claimed];
          const { rows } = await watcher.query(
            `select query from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'svc-load'`,
          );
          waits.push(...rows.map(({ query }) => query));
        }
        await deletion;
        expect(acceptedDuring).toBeGreaterThan(100);
        expect(claimedDuring).toBeGreaterThan(50);
        expect(waits).toEqual([]);
        const left = await watcher.query(
          `select (select count(*)::integer from svc.delivery where received_at < ${NOW - days(30)}) as deliveries,
         (select count(*)::integer from svc.delivery where received_at < ${NOW - days(30)} and status <> 'accepted') as ended,
         (select count(*)::integer from svc.run where finished_at < ${NOW - days(30)}) as runs,
         (select count(*)::integer from svc.step s where not exists (select from svc.run r where r.seq = s.run_seq)) as steps`,
        );
        expect(left.rows).toEqual([{ deliveries: rows / 1000, ended: 0, runs: 0, steps: 0 }]);
        await watcher.end();
        await Promise.all([node, one, two].map((stores) => stores.close()));
      });
    },
  );
}
