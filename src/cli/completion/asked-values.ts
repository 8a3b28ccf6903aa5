import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../kit/clock.ts';
import { type CommandContext, createContext } from '../context.ts';
import type { GlobalFlags } from '../globals.ts';
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
export async function askedValues(
  source: string,
  given: readonly string[],
  globals: GlobalFlags,
): Promise<Candidate[]> {
  const list = LISTS[source];
  if (!list) return [];
  const context = contextOf({ ...globals, json: false, quiet: true, input: false });
  const key = JSON.stringify([source, list.needs(given), globals.url, globals.namespace]);
  const file = join(context.folder().run, 'completion.json');
  // What one token may see is not kept for the next.
  const kept = globals.token === undefined ? readKept(file) : {};
  const now = context.clock.now();
  const fresh = kept[key];
  if (fresh && now - fresh.at < KEEP_MS && now >= fresh.at) return fresh.values;
  const values = await list.ask(context.client, given, AbortSignal.timeout(PATIENCE_MS));
  if (globals.token !== undefined) return values;
  const recent = Object.entries(kept).filter(([, { at }]) => now - at < KEEP_MS);
  try {
    writePrivateFile(file, JSON.stringify({ ...Object.fromEntries(recent), [key]: { at: now, values } }));
  } catch {
    // Nothing of a platform is here; it is elsewhere, and asked again the next time.
  }
  return values;
}

function readKept(file: string): Record<string, Kept> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Kept>;
  } catch {
    return {};
  }
}

function contextOf(globals: GlobalFlags): CommandContext {
  const { env, stdout, stderr } = process;
  const style = createStyle({}, env);
  return createContext({
    cwd: process.cwd(),
    env,
    globals,
    ui: createUi({ stdout, stderr, quiet: true, json: false, out: style, err: style }),
    clock: systemClock,
  });
}
