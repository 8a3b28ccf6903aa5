import { describe, expect, onTestFinished, test } from 'vitest';
import type { Trace, TraceSpan } from '../../src/contracts/index.ts';
import { createPlatform, type Platform } from '../support/platform.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { startStockApi, tracedConfig, writeTracedProject } from '../support/traced-project.ts';

const POLL = { timeout: 30_000, interval: 300 };
/** Number of spans once the job and the run have ended. */
const WHOLE = 17;

interface Started {
  platform: Platform;
  /** Delivers an order in a namespace and returns its trace id. */
  deliver(order: string, namespace?: string): Promise<{ traceId: string; webhookId: string }>;
  trace(traceId: string, namespace?: string): Promise<Trace>;
  /** Makes a viewer of a namespace, and returns a function that reads a trace with the viewer's token. */
  viewerOf(namespace: string): Promise<(traceId: string) => Promise<Response>>;
}

async function start(onPostgres: boolean): Promise<Started> {
  const api = await startStockApi();
  const remote = onPostgres ? { store: { url: await emptyPostgres() } } : {};
  const platform = await createPlatform({ ...tracedConfig(api.host), ...remote });
  onTestFinished(async () => {
    await platform.dispose();
    api.close();
  });
  await writeTracedProject(platform.folder, api.host);
  if (onPostgres) await platform.svc('migrate', '--yes');
  const url = await platform.up();
  const svc = async (...args: string[]) => {
    const { exitCode, envelope } = await platform.svc(...args);
    if (exitCode !== 0) throw new Error(JSON.stringify(envelope));
    return envelope.result;
  };
  const within = (namespace?: string): string[] => (namespace ? ['--namespace', namespace] : []);
  const provisioned = new Set<string | undefined>();
  return {
    platform,
    async deliver(order, namespace) {
      const scope = within(namespace);
      if (!provisioned.has(namespace)) await svc('webhooks', 'provision', '@acme/shop', 'paid', ...scope);
      provisioned.add(namespace);
      const data = JSON.stringify({ id: order });
      const { webhookId } = await svc('webhooks', 'send', '@acme/shop', 'paid', '--data', data, ...scope);
      const { traceId } = await svc('webhooks', 'show', webhookId, ...scope);
      return { traceId, webhookId };
    },
    async viewerOf(namespace) {
      const { clientId, clientSecret } = await svc('clients', 'create', 'watcher', '--namespace', namespace);
      await svc('roles', 'grant', `client:${clientId}`, 'viewer', '--namespace', namespace);
      const granted = await fetch(`${url}/auth/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ clientId, clientSecret }),
      });
      const { accessToken } = (await granted.json()) as { accessToken: string };
      return (traceId) =>
        fetch(`${url}/api/v1/traces/${traceId}`, { headers: { authorization: `Bearer ${accessToken}` } });
    },
    trace: (traceId, namespace) => svc('traces', 'show', traceId, ...within(namespace)),
  };
}

const line = ({ kind, name, result }: TraceSpan): string => `${kind} ${name} ${result}`;

/** Returns each span with its ancestors, from the root down. */
function paths({ spans }: Trace): string[] {
  const path = (span: TraceSpan): string => {
    const parent = spans.find(({ id }) => id === span.parentId);
    return `${parent ? `${path(parent)} > ` : ''}${span.kind}`;
  };
  return spans.map((span) => `${path(span)} ${span.name}`);
}

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'traces on PostgreSQL' : POSTGRES_MISSING, () =>
  describeTraces(true),
);
describe('traces on SQLite', () => describeTraces(false));

function describeTraces(onPostgres: boolean): void {
  test('a trace joins a delivery with its verdict, handler, calls, job, run and steps', async () => {
    const { deliver, trace, platform } = await start(onPostgres);
    const { traceId, webhookId } = await deliver('o-1');
    await expect
      .poll(async () => (await trace(traceId)).spans.filter(({ status }) => status === 'ok').length, POLL)
      .toBeGreaterThanOrEqual(WHOLE);
    const found = await trace(traceId);
    expect(found.spans.map(line)).toEqual(
      expect.arrayContaining([
        'delivery @acme/shop paid succeeded',
        'verdict checks accepted',
        'handler @acme/shop paid exit code 0',
        'call cache.miss ok',
        expect.stringMatching(/^outgoing GET 127\.0\.0\.1:\d+ 200$/),
        'job @acme/shop/receipt succeeded',
        'run fulfil succeeded',
        'step main.note succeeded',
        'step main.ship succeeded',
        'handler @acme/shop shop-ship exit code 0',
      ]),
    );
    const handler = 'request > delivery > attempt > handler';
    expect(paths(found)).toEqual(
      expect.arrayContaining([
        'request > delivery > verdict checks',
        expect.stringContaining(`${handler} > outgoing GET`),
        `${handler} > request > job > attempt > handler @acme/shop receipt`,
        'request > delivery > attempt > request > run > step > handler @acme/shop shop-ship',
      ]),
    );
    expect(JSON.stringify(found)).not.toContain('hidden');
    expect(found).toMatchObject({ truncated: false, missing: [] });
    const run = found.spans.find(({ kind }) => kind === 'run')!;
    const job = found.spans.find(({ kind }) => kind === 'job')!;
    expect([run.deliveryId, job.deliveryId]).toEqual([webhookId, webhookId]);
    const [shown, submitted] = [
      (await platform.svc('workflows', 'show', run.runId!)).envelope.result.run,
      (await platform.svc('jobs', 'show', job.jobId!)).envelope.result,
    ];
    const origin = { traceId, deliveryId: webhookId };
    expect([shown, submitted]).toEqual([expect.objectContaining(origin), expect.objectContaining(origin)]);
    const cut = (await platform.svc('traces', 'show', traceId, '--limit', '3')).envelope.result;
    expect([cut.truncated, cut.spans.length]).toEqual([true, 3]);
  }, 120_000);

  test('a caller sees the parts of its namespace only, and an unknown trace is 404', async () => {
    const { deliver, trace, viewerOf } = await start(onPostgres);
    const theirs = await deliver('o-2', 'acme');
    await expect
      .poll(async () => (await trace(theirs.traceId, 'acme')).spans.length, POLL)
      .toBeGreaterThan(5);
    const read = await viewerOf('acme');
    expect((await read(theirs.traceId)).status).toBe(200);
    const others = await viewerOf('default');
    for (const traceId of [theirs.traceId, 'nothing-of-the-kind']) {
      const unknown = await others(traceId);
      expect([unknown.status, await unknown.json()]).toEqual([
        404,
        { error: { code: 'NOT_FOUND', message: expect.any(String), details: { traceId } } },
      ]);
    }
    expect((await read(`${theirs.traceId}?limit=0`)).status).toBe(400);
  }, 120_000);
}
