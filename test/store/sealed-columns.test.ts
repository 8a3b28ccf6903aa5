import { expect, test } from 'vitest';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { SEALED_COLUMNS } from '../../src/store/ports/index.ts';
import { sqliteSealedSecrets } from '../../src/store/sqlite/svc/sealed-secrets.ts';
import { tempDir } from '../support/daemon.ts';

test('every table of sealed columns exists, and each value has a context of its own', async () => {
  const store = await sqliteSealedSecrets(await tempDir(), silentLogger);
  for (const { table } of SEALED_COLUMNS) expect(await store.after(table, null, 10)).toEqual([]);
  await store.close();
  const contexts = SEALED_COLUMNS.map(({ key, columns, context }) =>
    context(Object.fromEntries(key.map((column) => [column, 'x'])), columns[0]!),
  );
  expect(new Set(contexts).size).toBe(SEALED_COLUMNS.length);
});
