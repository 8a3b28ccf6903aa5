import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Database, type Migrations, openDatabase } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';

/** A database of ours and all that is prepared on it. */
export async function recorded(file: string, migrations: Migrations) {
  const db = await openDatabase({ file: join(await tempDir(), file), migrations });
  onTestFinished(() => db.close());
  const prepared: string[] = [];
  const prepare = ((source: string) => {
    prepared.push(source);
    return db.prepare(source);
  }) as Database['prepare'];
  return { db, prepared, recorder: { ...db, prepare } };
}

/** The lines of EXPLAIN QUERY PLAN; its parameters have no values. */
export function planOf({ prepare }: Database, source: string): string[] {
  const names = [...source.matchAll(/:(\w+)/g)].map(([, name]) => [name, null] as const);
  const values = Array.from(source.matchAll(/\?/g), () => null);
  const plan = prepare<unknown[], { detail: string }>(`explain query plan ${source}`);
  const lines = names.length > 0 ? plan.all(Object.fromEntries(names)) : plan.all(...values);
  return lines.map(({ detail }) => detail);
}
