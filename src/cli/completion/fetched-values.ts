import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../kit/time/clock.ts';
import { writePrivateFile } from '../../supervisor/data-folder.ts';
import type { CommandContext } from '../context.ts';
import { createContext } from '../create-context.ts';
import type { GlobalFlags } from '../globals.ts';
import { createStyle } from '../style.ts';
import { createUi } from '../ui.ts';
import type { Candidate } from './candidate.ts';
import { LISTS } from './value-lists.ts';

/** Cache TTL of completion values. Users press Tab several times in a row, while the lists change slowly. */
const CACHE_TTL_MS = 10_000;
/** Time limit of a request. A longer wait would make the Tab key unusable. */
const FETCH_TIMEOUT_MS = 600;

interface CachedValues {
  at: number;
  values: Candidate[];
}

/** Fetches values from the gateway and caches the values briefly. Throws if the gateway does not answer. */
export async function fetchedValues(
  source: string,
  given: readonly string[],
  globals: GlobalFlags,
): Promise<Candidate[]> {
  const list = LISTS[source];
  if (!list) return [];
  const context = contextOf({ ...globals, json: false, quiet: true, input: false });
  const key = JSON.stringify([source, list.needs(given), globals.url, globals.namespace]);
  const file = join(context.folder().run, 'completion.json');
  // Values fetched with an explicit token are not cached, because the next token might have fewer permissions.
  const cache = globals.token === undefined ? readCache(file) : {};
  const now = context.clock.now();
  const fresh = cache[key];
  if (fresh && now - fresh.at < CACHE_TTL_MS && now >= fresh.at) return fresh.values;
  const values = await list.fetchValues(context.client, given, AbortSignal.timeout(FETCH_TIMEOUT_MS));
  if (globals.token !== undefined) return values;
  const recent = Object.entries(cache).filter(([, { at }]) => now - at < CACHE_TTL_MS);
  try {
    writePrivateFile(file, JSON.stringify({ ...Object.fromEntries(recent), [key]: { at: now, values } }));
  } catch {
    // Without a local data folder, the values are not cached.
  }
  return values;
}

function readCache(file: string): Record<string, CachedValues> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, CachedValues>;
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
