import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { alertSql } from '../../../src/store/alert-sql.ts';
import { sqliteAlerts } from '../../../src/store/sqlite/svc/alerts/alerts.ts';
import { sqliteConnections } from '../../../src/store/sqlite/svc/connections.ts';
import { DELIVERY_STATEMENTS } from '../../../src/store/sqlite/svc/deliveries/statements.ts';
import { sqliteOutgoingEndpoints } from '../../../src/store/sqlite/svc/messages/endpoints.ts';
import { MessageLists } from '../../../src/store/sqlite/svc/messages/lists.ts';
import { sqliteMessages } from '../../../src/store/sqlite/svc/messages/messages.ts';
import { MESSAGE_STATEMENTS } from '../../../src/store/sqlite/svc/messages/writes.ts';
import { GATEWAY_MIGRATIONS } from '../../../src/store/sqlite/svc/schema.ts';
import { TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS } from '../../../src/store/sqlite/svc/text-index/schema.ts';
import { TextCandidates } from '../../../src/store/sqlite/svc/text-index/search.ts';
import { sqliteVault } from '../../../src/store/sqlite/svc/vault.ts';
import { sqliteWebhookInbox } from '../../../src/store/sqlite/svc/webhook-inbox.ts';
import { RunLists } from '../../../src/store/sqlite/workflow/run-lists.ts';
import { WORKFLOW_MIGRATIONS } from '../../../src/store/sqlite/workflow/schema.ts';
import { planOf, recorded } from './support/recorded.ts';

/** Tables of one row, or of one a table, a process or a queue (at most 1,000 a namespace); arrays of JSON; the few deliveries that are open. */
const SMALL =
  /^SCAN (member|queue\b|delivery_journal|delivery_progress|sqlite_sequence|CONSTANT ROW|json_each)|delivery_open/;
const isLarge = (line: string): boolean =>
  (line.startsWith('SCAN') && !SMALL.test(line)) || line.startsWith('USE TEMP B-TREE');

/** Read a table or an index from its start, and no further than asked. */
const FIRST_ROWS = /limit 1$/;
/** Retention keeps these few: a tenth of the bytes of all, at 4 KB each. */
const UNHANDLED = 'select count(*) as count from delivery_unhandled';

test('no statement of the main thread reads a table of deliveries or markers from end to end', async () => {
  const { db, prepared, recorder } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  const inbox = await sqliteWebhookInbox(recorder, {
    clock: manualClock(),
    logger: silentLogger,
    shared: false,
  });
  onTestFinished(() => inbox.close());
  expect(prepared.filter((source) => /from delivery_by_(time|status)/.test(source)).length).toBeGreaterThan(
    4,
  );
  const scans = prepared
    .filter((source) => !FIRST_ROWS.test(source.trim()) && source !== UNHANDLED)
    .map((source) => ({ source, scans: planOf(db, source).filter(isLarge) }))
    .filter(({ scans }) => scans.length > 0);
  expect(scans).toEqual([]);
});

test('lists seek to each row that they show', async () => {
  const { db, prepared, recorder } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  const inbox = await sqliteWebhookInbox(recorder, {
    clock: manualClock(),
    logger: silentLogger,
    shared: false,
  });
  onTestFinished(() => inbox.close());
  const lists = prepared.filter((source) => /from delivery_by_(time|status)/.test(source));
  for (const source of lists)
    expect(planOf(db, source)).toEqual([expect.stringMatching(/^SEARCH delivery_by_\w+ USING PRIMARY KEY/)]);
});

test('searches seek to the postings of a segment', async () => {
  const { db, prepared, recorder } = await recorded(TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS);
  new TextCandidates(recorder, 'acme', { search: 'some text' });
  const postings = prepared.filter((source) => source.includes('from posting'));
  expect(postings).toHaveLength(1);
  expect(planOf(db, postings[0]!)).toEqual([expect.stringMatching(/^SEARCH posting USING PRIMARY KEY/)]);
});

/** Written by former versions alone, or when one of several processes or nodes died. */
const UNBOUNDED = new Set(['releasePending', 'releasePendingOf', 'releasePendingOfEnded']);

test('statements of the committer thread read no more rows than they change', async () => {
  const { db } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  const scans = Object.entries({ ...DELIVERY_STATEMENTS, ...MESSAGE_STATEMENTS })
    .filter(([name]) => !UNBOUNDED.has(name))
    .filter(([, source]) => !/order by (position|id) limit \?/.test(source))
    .map(([name, source]) => ({ name, scans: planOf(db, source).filter(isLarge) }))
    .filter(({ scans }) => scans.length > 0);
  expect(scans).toEqual([]);
});

test('messages of a trace and the newest attempts of endpoints are read from indexes', async () => {
  const { db, prepared, recorder } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  new MessageLists(recorder);
  const plans = (text: string) =>
    prepared.filter((source) => source.includes(text)).map((source) => planOf(db, source));
  expect(plans('trace_id = :traceId')).toEqual([
    [expect.stringMatching(/^SEARCH message USING (COVERING )?INDEX message_trace/)],
  ]);
  const [attempts] = plans('as attempts');
  const read = attempts!.filter((line) => /message_attempt/.test(line));
  expect(read.length).toBeGreaterThan(2);
  for (const line of read)
    expect(line).toMatch(/^SEARCH message_attempt USING COVERING INDEX message_attempt_(endpoint|failed)/);
});

test('alerts of an object are read from their index', async () => {
  const { db } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  const { list } = alertSql(
    (table) => table,
    (column) => column,
  );
  const plan = planOf(db, list({ namespaceId: 'acme', object: 'r1', limit: 10 }));
  const read = plan.filter((line) => /^(SEARCH|SCAN) alert/.test(line));
  expect(read).toEqual([
    expect.stringMatching(/^SEARCH alert USING INDEX alert_namespace \(namespace_id=\? AND id=\?\)/),
    expect.stringMatching(/^SEARCH alert USING (COVERING )?INDEX alert_of_object/),
    expect.stringMatching(/^SEARCH alert USING (COVERING )?INDEX alert_of_object/),
  ]);
});

test('lists of runs seek to their rows in the order of the list', async () => {
  const { db, prepared, recorder } = await recorded('workflow.db', WORKFLOW_MIGRATIONS);
  new RunLists(recorder);
  const plans = prepared
    .filter((source) => /order by seq desc/.test(source))
    .map((source) => planOf(db, source));
  expect(plans.length).toBeGreaterThan(6);
  const seek = expect.stringMatching(/^SEARCH run USING INDEX/);
  const merge = ['MERGE (UNION ALL)', 'LEFT', seek, 'RIGHT', seek];
  for (const plan of plans) expect(plan).toEqual(plan.length === 1 ? [seek] : merge);
  expect(plans.filter(({ length }) => length > 1)).toHaveLength(1);
  expect(plans.flat().filter((line) => /run_workflow|run_job/.test(line))).toHaveLength(2);
});

test('statements of messages, endpoints, alerts, secrets and connections seek to the rows that they need', async () => {
  const { db, prepared, recorder } = await recorded('svc.db', GATEWAY_MIGRATIONS);
  sqliteMessages(recorder, () =>
    Promise.reject(new Error('No statement of the committer thread is run here')),
  );
  sqliteOutgoingEndpoints(recorder, () => {});
  sqliteAlerts(recorder);
  sqliteVault(recorder);
  sqliteConnections(recorder, manualClock());
  const { list } = alertSql(
    (table) => table,
    (column) => column,
  );
  for (const filter of subsets({ namespaceId: 'a', state: 'firing', kind: 'disk', rule: 'r' }))
    prepared.push(list(filter as Parameters<typeof list>[0]));
  const plans = prepared.map((source) => ({ source, plan: planOf(db, source) }));
  expect(plans.filter(({ source, plan }) => plan.some((line) => isUnbounded(line, source)))).toEqual([]);
  const planOfFilter = (filter: object) => planOf(db, list(filter as Parameters<typeof list>[0])).join();
  expect(planOfFilter({ namespaceId: 'a', kind: 'disk' })).toContain('alert_namespace_kind');
  expect(planOfFilter({ namespaceId: 'a', rule: 'r' })).toContain('alert_namespace_rule');
  expect(planOfFilter({ namespaceId: 'a', state: 'firing' })).toContain('alert_namespace_state');
});

/**
 * Reads of few rows: one row per endpoint or namespace with open deliveries, the first rows of a subquery, facts that are
 * deleted when they are handled, the chain of a delivery's replays, settings of operators, and partial indexes of open rows.
 */
const FEW_ROWS =
  /^SCAN (o|origin|e( VIRTUAL.*)?|n|troubled|newest|ended\w*|json_each.*|\(subquery-\d+\)|alert_setting|alert_fact|\w+ USING (COVERING )?INDEX (alert_notification_waiting|connection_failed))$/;
/** Sorts of few rows: those of given ids, of one message, of firing alerts, and the secrets of a namespace. */
const FEW_SORTED = /json_each|a\.message_id = :messageId|where state = 'firing'|from secret|from troubled/;

function isUnbounded(line: string, source: string): boolean {
  if (line.startsWith('USE TEMP B-TREE')) return !FEW_SORTED.test(source);
  // All endpoints are read once, at the start.
  const isAllEndpoints = line === 'SCAN outgoing_endpoint' && source.endsWith('from outgoing_endpoint');
  return line.startsWith('SCAN') && !FEW_ROWS.test(line) && !isAllEndpoints;
}

function subsets(filter: Record<string, string>): object[] {
  const found: object[] = [{}];
  for (const [key, value] of Object.entries(filter))
    found.push(...found.map((each) => ({ ...each, [key]: value })));
  return found;
}
