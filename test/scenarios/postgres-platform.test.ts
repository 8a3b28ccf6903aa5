import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CURRENT_SCHEMA } from '../../src/store/postgres/migrations.ts';
import { atEnd } from '../support/at-end.ts';
import { createPlatform, type Platform } from '../support/platform.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

const PLUGINS = [fileURLToPath(new URL('../fixtures/projects/webhooks/plugins/*', import.meta.url))];
const POLL = { timeout: 30_000, interval: 200 };

async function platformOn(url: string): Promise<Platform> {
  const platform = await createPlatform({ store: { url }, plugins: PLUGINS });
  atEnd(() => platform.dispose());
  return platform;
}

const pidOf = async ({ svc }: Platform, name: string): Promise<number | null> => {
  const { envelope } = await svc('status');
  const found = envelope.result.services.find((service: { name: string }) => service.name === name);
  return found.state === 'ready' ? found.pid : null;
};

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'a platform on PostgreSQL' : POSTGRES_MISSING, () => {
  test('starts once the database is migrated, and keeps its data when services are killed', async () => {
    const url = await emptyPostgres();
    const platform = await platformOn(url);
    const { svc } = platform;
    const refused = await svc('up', '-d');
    expect(refused.exitCode).not.toBe(0);
    expect(refused.envelope.error.message).toContain('svc migrate --yes');
    const first = await svc('migrate', '--yes');
    expect(first.envelope.result).toMatchObject({ before: 0, after: CURRENT_SCHEMA });
    expect(first.envelope.result.server).toBe(new URL(url).host + new URL(url).pathname);
    expect((await svc('migrate')).envelope.result).toMatchObject({
      before: CURRENT_SCHEMA,
      after: CURRENT_SCHEMA,
    });

    await platform.up();
    await svc('webhooks', 'provision', '@acme/orders', 'later');
    const sent = await svc(
      'webhooks',
      'send',
      '@acme/orders',
      'later',
      '--data',
      '{}',
      '--header',
      'X-Delivery: d1',
    );
    expect(sent.envelope.result.status).toBe(202);
    const deliveries = async () => (await svc('webhooks', 'deliveries')).envelope.result;
    await expect.poll(async () => (await deliveries()).items[0]?.status, POLL).toBe('succeeded');
    const client = await svc('clients', 'create', 'ci');
    expect(client.exitCode).toBe(0);

    for (const name of ['gateway', 'workflow', 'state']) {
      await expect.poll(() => pidOf(platform, name), POLL).not.toBe(null);
      const pid = (await pidOf(platform, name))!;
      process.kill(pid, 'SIGKILL');
      await expect.poll(async () => (await pidOf(platform, name)) ?? pid, POLL).not.toBe(pid);
    }
    await expect.poll(async () => (await svc('webhooks', 'deliveries')).exitCode, POLL).toBe(0);
    expect((await deliveries()).items).toHaveLength(1);
    const again = await svc(
      'webhooks',
      'send',
      '@acme/orders',
      'later',
      '--data',
      '{}',
      '--header',
      'X-Delivery: d1',
    );
    expect(again.envelope.result.body).toMatchObject({ status: 'duplicate' });
    expect(JSON.stringify((await svc('clients', 'list')).envelope.result)).toContain(
      client.envelope.result.clientId,
    );
  }, 120_000);

  test('a second node with other keys is refused', async () => {
    const url = await emptyPostgres();
    const one = await platformOn(url);
    await one.svc('migrate', '--yes');
    await one.up();
    const two = await platformOn(url);
    const { exitCode, envelope } = await two.svc('up', '-d');
    expect(exitCode).not.toBe(0);
    expect(envelope.error).toMatchObject({ code: 'CONFLICT' });
  }, 120_000);

  test('no output shows the password of the database', async () => {
    const platform = await platformOn('postgres://svc:hidden-word@127.0.0.1:1/svc');
    const replies = [
      await platform.svc('config', 'show'),
      await platform.svc('migrate', '--yes'),
      await platform.svc('up', '-d'),
      await platform.svc('doctor'),
    ];
    expect(replies.map(({ exitCode }) => exitCode === 0)).toEqual([true, false, false, false]);
    expect(JSON.stringify(replies)).not.toContain('hidden-word');
    expect(replies[1]!.envelope.error.message).toContain('127.0.0.1:1/svc');
  }, 60_000);
});
