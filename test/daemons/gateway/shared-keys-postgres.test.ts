import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../../support/postgres.ts';

const newKey = (): string => randomBytes(32).toString('base64url');

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'keys of nodes on PostgreSQL' : POSTGRES_MISSING,
  () => {
    test.each([
      ['SVC_MASTER_KEY', { masterKey: newKey() }],
      ['GATEWAY_JWT_SECRET', { jwtSecret: newKey() }],
      ['GATEWAY_INTERNAL_SECRET', { internalSecret: newKey() }],
    ])('a node with another %s is refused with its name', async (variable, keys) => {
      const config = { store: { url: await migratedPostgres() } };
      await startGateway({ config, env: { SVC_INSTANCE: 'a' } });
      await expect(startGateway({ config, keys, env: { SVC_INSTANCE: 'b' } })).rejects.toMatchObject({
        code: 'CONFLICT',
        details: { variables: [variable] },
        message: expect.stringContaining(variable),
      });
    });
  },
);
