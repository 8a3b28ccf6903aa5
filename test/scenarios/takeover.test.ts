import { describe, test } from 'vitest';
import { TakeoverNodes } from '../../bench/support/cluster/takeover.ts';
import { atEnd } from '../support/at-end.ts';
import { emptyPostgres, POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';

describe.skipIf(!POSTGRES_PROGRAMS)(POSTGRES_PROGRAMS ? 'takeover' : POSTGRES_MISSING, () => {
  test('the run of a killed workflow service continues, and so does that of a killed node', async () => {
    const nodes = await TakeoverNodes.start(await emptyPostgres());
    atEnd(() => nodes.stop());
    // Each resolves once the interrupted step was called again, which for a node happens while it is away.
    await nodes.takeOver('process', 0);
    await nodes.takeOver('machine', 1);
  }, 180_000);
});
