import { describe, expect, test } from 'vitest';
import { membersText } from '../../src/cli/members.ts';
import { createStyle } from '../../src/cli/style.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import type { NewMember } from '../../src/store/ports/index.ts';
import { migratePostgres, PostgresDatabase, postgresGatewayStore } from '../../src/store/postgres/index.ts';
import { atEnd } from '../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { testPlatform, withStandIns } from './platform.ts';

const MEMBER: NewMember = {
  ...{ kind: 'gateway', instance: 'a', version: '1.0.0', release: null, keys: null },
  ...{ leaseMs: 10_000, isSole: false },
};

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'members of a store' : POSTGRES_MISSING, () => {
  test('status and doctor show the nodes of a store as soon as there are two', async () => {
    const url = await emptyPostgres();
    const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
    const store = postgresGatewayStore(database, { clock: systemClock, logger: silentLogger });
    atEnd(() => store.close());
    await migratePostgres(database);
    const { svc } = await testPlatform(...withStandIns({ config: { store: { url } } }));
    const { members, feed } = store;

    const a = await members.join(MEMBER);
    await members.renew(a, { leaseMs: 10_000, url: 'http://10.0.0.1:4000' });
    expect((await svc('status')).json.result).not.toHaveProperty('members');
    await feed.noteRead(a, await feed.begin());
    await store.revocations.revokeToken('jti', systemClock.now() + 1e6, systemClock.now());
    await members.join({ ...MEMBER, kind: 'workflow', instance: 'b', version: '1.1.0', leaseMs: -5000 });

    const { result } = (await svc('status')).json;
    expect(result.members).toEqual([
      expect.objectContaining({
        ...{
          instance: 'a',
          kind: 'gateway',
          version: '1.0.0',
          url: 'http://10.0.0.1:4000',
          isExpired: false,
        },
        ...{ leaseAgeMs: expect.any(Number), feedLagMs: expect.any(Number) },
      }),
      expect.objectContaining({
        instance: 'b',
        kind: 'workflow',
        url: null,
        isExpired: true,
        feedLagMs: null,
      }),
    ]);
    expect(result.members[0].feedLagMs).toBeGreaterThan(0);
    expect(result.members[1].leaseAgeMs).toBeGreaterThanOrEqual(15_000);

    const { checks } = (await svc('doctor')).json.result;
    const found = checks.filter(({ name }: { name: string }) => name === 'cluster');
    expect(found.map(({ status }: { status: string }) => status)).toEqual(['ok', 'warn', 'warn']);
    expect(found[2].message).toBe('nodes run different versions: 1.0.0, 1.1.0');
    for (const instance of ['a', 'b'])
      await members.join({ ...MEMBER, kind: 'marketplace', instance, release: `project of ${instance}` });
    const later: Array<{ message: string }> = (await svc('doctor')).json.result.checks;
    expect(later.map(({ message }) => message)).toContain(
      'the plugin folders of the project differ between nodes',
    );
  }, 60_000);
});

test('the table of members fits into 80 columns and shows the end of long ids, in which they differ', () => {
  const view = {
    ...({
      instance: 'node_01b8dac5-b5c2-7c27-a83c-4825204b1967',
      kind: 'gateway',
      version: '0.1.0',
      schema: null,
      release: null,
    } as const),
    ...{
      url: 'http://svc-node-1.internal.example.com:4000',
      leaseAgeMs: 1200,
      isExpired: false,
      feedLagMs: 12,
    },
  };
  const text = membersText([view, { ...view, isExpired: true }], createStyle({ isTTY: false }, {}), 80);
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  for (const shown of ['node_…', '4825204b1967', 'gateway', '0.1.0', '1.2s', '12ms', 'http://svc-node-1'])
    expect(text).toContain(shown);
});
