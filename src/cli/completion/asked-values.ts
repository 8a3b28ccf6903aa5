import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../kit/clock.ts';
import { type CommandContext, createContext } from '../context.ts';
import { createStyle } from '../style.ts';
import { writePrivateFile } from '../supervisor/data-folder.ts';
import { createUi } from '../ui.ts';
import type { Candidate } from './complete.ts';
import { LISTS } from './lists.ts';

/** Tab is pressed in bursts; what is listed changes by hand. */
const KEEP_MS = 10_000;
/** Longer than this nobody waits for a completion. */
const PATIENCE_MS = 600;

interface Kept {
  at: number;
  values: Candidate[];
}

/** Asks the gateway as the operator would, or takes what it said a moment ago. Throws when it cannot be asked. */
export async function askedValues(source: string, given: readonly string[]): Promise<Candidate[]> {
  const list = LISTS[source];
  if (!list) return [];
  const context = contextOf();
  const key = [source, ...list.needs(given)].join(' ');
  const file = join(context.folder().run, 'completion.json');
  const kept = readKept(file);
  const now = context.clock.now();
  const fresh = kept[key];
  if (fresh && now - fresh.at < KEEP_MS && now >= fresh.at) return fresh.values;
  const values = await list.ask(context.client, given, AbortSignal.timeout(PATIENCE_MS));
  const recent = Object.entries(kept).filter(([, { at }]) => now - at < KEEP_MS);
  writePrivateFile(file, JSON.stringify({ ...Object.fromEntries(recent), [key]: { at: now, values } }));
  return values;
}

function readKept(file: string): Record<string, Kept> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Kept>;
  } catch {
    return {};
  }
}

function contextOf(): CommandContext {
  const { env, stdout, stderr } = process;
  const style = createStyle({}, env);
  return createContext({
    cwd: process.cwd(),
    env,
    globals: { json: false, quiet: true, debug: false, input: false, yes: false },
    ui: createUi({ stdout, stderr, quiet: true, out: style, err: style }),
    clock: systemClock,
  });
}
